import type { AppliedObjectEntry, AppliedPodEntry } from '../../api/sources.ts'
import { canonicalJson } from '../../base/json.ts'
import { keyOfObject } from '../../pod/objects/local-object.ts'
import { digestText } from '../../pod/values/hash.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import type { PodWorker } from '../worker/pod-worker.ts'

/** The manifests that the pods currently run by; of a pod that is being replaced, the old one until it is gone. */
export function listAppliedPods(workers: Iterable<PodWorker>): readonly AppliedPodEntry[] {
  return [...workers]
    .filter(({ state }) => state.stage !== 'stopped' && state.stage !== 'gone')
    .map(({ ref, state }) => ({
      key: podKey(ref),
      path: state.record.path,
      source: state.record.source,
      manifest: state.record.manifest,
      isPastChange: state.isPastChange,
      isUpToDate: state.pod.spec.containers.every(({ name, image }) => {
        const newest = state.observed.containers.find((container) => container.name === name)
        return newest === undefined || newest.image === image
      }),
    }))
}

/** The objects that pods refer to, by a hash of their manifests: they may be secret. */
export function listAppliedObjects(objects: Pick<ObjectStore, 'documents'>): readonly AppliedObjectEntry[] {
  return objects.documents().map(({ document: { object, manifest, place }, source }) => ({
    key: keyOfObject(object),
    path: place.path,
    source,
    hash: digestText(canonicalJson(manifest)),
  }))
}
