import type { JsonObject } from '../../base/json.ts'
import type { Fields, ObjectType } from '../schema/types.ts'
import type { Issues } from '../validation/issues.ts'
import { leaseSchema, validateLease } from './lease.ts'
import { podTemplateSchema } from './pod-template.ts'

/** The entry of a kind that podd keeps for clients. */
interface KeptKindEntry {
  readonly schema: ObjectType<Fields>
  /** Kubernetes' validation beyond the schema; metadata is validated already. */
  readonly validate: (manifest: JsonObject, issues: Issues) => void
}

/**
 * The kinds that the API keeps for its clients as they write them: no pod refers to them, and no source but the API has
 * them. A PodTemplate's template is validated as the pod that it describes (`kept-problems`).
 */
export const keptKinds = {
  Lease: { schema: leaseSchema, validate: validateLease },
  PodTemplate: { schema: podTemplateSchema, validate: () => {} },
} as const satisfies Record<string, KeptKindEntry>

export type KeptKind = keyof typeof keptKinds

export function isKeptKind(kind: unknown): kind is KeptKind {
  return typeof kind === 'string' && Object.hasOwn(keptKinds, kind)
}
