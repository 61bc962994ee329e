import type { ObjectPolicies, ObjectReader } from '../../src/pod/objects/local-object.ts'
import type { ObjectRules } from '../../src/decide/sources/merge-snapshots.ts'

export const defaultObjectPolicies: ObjectPolicies = {
  file: { readsObjectsOf: [], givesClusterObjects: true },
  http: { readsObjectsOf: [], givesClusterObjects: false },
  api: { readsObjectsOf: ['file'], givesClusterObjects: true },
}

/** What counts where the configuration says nothing. */
export const plainObjectRules: ObjectRules = {
  policies: defaultObjectPolicies,
  runtimeClasses: new Map(),
}

/** What a pod sees where no source gives any object. */
export const noObjects: ObjectReader = {
  get: () => undefined,
  list: () => [],
  sourceOf: () => undefined,
  explainMissing: () => undefined,
}
