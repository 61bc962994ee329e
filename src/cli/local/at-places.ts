import type { DaemonPlaces } from '../../api/routes.ts'
import type { PoddConfig } from '../../config/options.ts'

/** The settings of the podd that reports these places; what it doesn't report is as given. */
export function atPlaces(config: PoddConfig, places: DaemonPlaces): PoddConfig {
  // What a podd leaves out it doesn't have, but an older one may only not report it.
  const unsaid = places.podCidrs === undefined ? {} : { staticPodPath: undefined }
  return { ...config, imageServiceEndpoint: undefined, cgroupRoot: undefined, ...unsaid, ...places }
}
