import type { PodObject } from '../../api/resource.ts'
import { isJsonObject } from '../../base/json.ts'

/** The annotation that names the default container; kubectl reads it, the API doesn't. */
const annotation = 'kubectl.kubernetes.io/default-container'

export function containerNames(
  pod: PodObject,
  list: 'initContainers' | 'containers' | 'ephemeralContainers',
): readonly string[] {
  const containers = pod.spec[list]
  if (!Array.isArray(containers)) return []
  return containers.flatMap((container: unknown) =>
    isJsonObject(container) && typeof container['name'] === 'string' ? [container['name']] : [],
  )
}

/** The container named by the pod's annotation, whether it exists or not. */
export function annotatedContainer({ metadata }: PodObject): string | undefined {
  const name = metadata.annotations?.[annotation]
  return name === '' ? undefined : name
}

/**
 * The first of the pod's main containers, with a note where it has others (kubectl `cmd/util/podcmd/podcmd.go`
 * FindOrDefaultContainerByName, 1.36).
 */
export function firstContainer(pod: PodObject, notify: (line: string) => void): string {
  const names = namesOfAll(pod)
  const [first = ''] = containerNames(pod, 'containers')
  if (names.length > 1) notify(`Defaulted container ${JSON.stringify(first)} out of: ${names.join(', ')}`)
  return first
}

/** The names of all containers, as kubectl lists them. */
export function namesOfAll(pod: PodObject): readonly string[] {
  return [
    ...containerNames(pod, 'containers'),
    ...containerNames(pod, 'ephemeralContainers').map((name) => `${name} (ephem)`),
    ...containerNames(pod, 'initContainers').map((name) => `${name} (init)`),
  ]
}
