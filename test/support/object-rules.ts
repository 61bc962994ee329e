import type { AdmissionRules } from '../../src/control/desired/pod-admission.ts'
import type { HostLimits } from '../../src/decide/admission/admit-pod.ts'
import type { ObjectPolicies, ObjectReader } from '../../src/pod/objects/local-object.ts'
import type { ObjectRules } from '../../src/decide/sources/merge-snapshots.ts'
import type { SecurityPolicy } from '../../src/pod/validation/security-policy.ts'

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

const unbound: SecurityPolicy = {
  level: 'privileged',
  allowedHostPaths: [],
  allowedCapabilities: [],
  allowedHostPorts: [],
  allowedRegistries: [],
}

/** Rules that admit whatever the host has resources for. */
export function openRules(limits: HostLimits): AdmissionRules {
  return {
    limits,
    allowedUnsafeSysctls: [],
    appArmor: false,
    runtimeClasses: new Map(),
    policies: { file: unbound, http: unbound, api: unbound },
  }
}
