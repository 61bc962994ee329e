import type { PodObject } from '../api/resource.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import type { LocalObjects } from '../control/serving/local-objects.ts'
import { WrittenObjects, presentWritten } from '../control/serving/written-objects.ts'
import { ApiObjects } from '../sources/written/api-objects.ts'
import { PodRecordStore } from '../store/pod-records.ts'

/** The objects that are written over the API; nothing is read yet. */
export function createApiObjects(
  { rootDir, persistSecrets }: PoddConfig,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): ApiObjects {
  const records = new PodRecordStore(rootDir)
  return new ApiObjects({
    directory: `${rootDir}/api`,
    persistSecrets,
    clock,
    logger,
    findRecorded: (uid) => records.find(uid),
  })
}

/** Presents pods: one that was written over the API is shown as it was written. */
export function presentPod(objects: ApiObjects): (object: PodObject) => PodObject {
  return (object) => {
    if (object.metadata.annotations?.['podd.dev/source'] !== 'api') return object
    const kept = objects.findPod(object.metadata.uid)
    return kept === undefined ? object : presentWritten(object, kept.manifest, kept.document?.manifest)
  }
}

/** Creates the writer of the API, which follows the pods from now on. */
export function createWriting(
  objects: ApiObjects,
  { pods, shown, hostName }: PodAssembly,
  { localObjects, logger }: { readonly localObjects: LocalObjects; readonly logger: Logger },
): WrittenObjects {
  const writing = new WrittenObjects({
    objects,
    pods: {
      showNew: (document, last) => pods.showNew(document, 'api', last),
      showGone: (uid) => pods.statuses.removeProvisional(uid),
      onHeld: (listener) => pods.statuses.onHeld(listener),
      refresh: (uid) => pods.statuses.refresh(uid),
      endPod: (uid, graceSeconds) => pods.endPod(uid, graceSeconds),
      knowsPod: (uid) => pods.knowsPod(uid),
    },
    shown: shown.pods,
    showClaims: () => localObjects.measureClaims(),
    nodeName: hostName,
    logger,
  })
  writing.begin()
  return writing
}
