import type { ObjectRules } from '../../src/decide/merge-objects.ts'
import { defaultObjectPolicies } from '../../src/pod/object-policy.ts'

/** What counts where the configuration says nothing. */
export const plainObjectRules: ObjectRules = {
  policies: defaultObjectPolicies,
  runtimeClasses: new Map(),
}
