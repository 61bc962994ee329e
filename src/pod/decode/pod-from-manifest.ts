import { PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { defaultPod } from '../defaults/default-pod.ts'
import { conforms, fillDefaults } from '../schema/fill-defaults.ts'
import type { Pod } from '../schema/pod-schema.ts'
import { podSchema } from '../schema/pod-schema.ts'

/**
 * The typed, defaulted Pod of a manifest that was checked when it was accepted: one that was just decoded, or that is
 * in a pod's record. Fields this version doesn't know are left out.
 *
 * @throws PoddError MANIFEST_UNREADABLE where it isn't such a manifest.
 */
export function podFromManifest(manifest: JsonObject): Pod {
  const filled = fillDefaults(podSchema, manifest)
  if (!conforms(podSchema, filled)) {
    throw new PoddError(
      'MANIFEST_UNREADABLE',
      'the recorded manifest is not a Pod that this version can read',
    )
  }
  return defaultPod(filled)
}
