import type { JsonObject } from '../base/json.ts'
import type { ResourceObject } from './resource.ts'

/** coordination.k8s.io/v1 Lease: as a client wrote it, or the node's, which says that podd is alive. */
export interface LeaseObject extends ResourceObject {
  readonly kind: 'Lease'
  readonly spec?: JsonObject
}

/** core/v1 PodTemplate: as a client wrote it; podd makes no pod of it. */
export interface PodTemplateObject extends ResourceObject {
  readonly kind: 'PodTemplate'
  readonly template?: JsonObject
}
