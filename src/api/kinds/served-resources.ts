import type {
  NamespaceObject,
  NodeObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
} from '../cluster-objects.ts'
import type { LeaseObject, PodTemplateObject } from '../kept-objects.ts'
import type { ClaimObject, ConfigObject } from '../local-objects.ts'
import type { EventObject, PodObject } from '../objects.ts'

/** The objects that are served, by the names of their resources. */
export interface ServedResources {
  readonly pods: PodObject
  readonly events: EventObject
  readonly configmaps: ConfigObject
  readonly secrets: ConfigObject
  readonly persistentvolumeclaims: ClaimObject
  readonly namespaces: NamespaceObject
  readonly serviceaccounts: ServiceAccountObject
  readonly nodes: NodeObject
  readonly priorityclasses: PriorityClassObject
  readonly runtimeclasses: RuntimeClassObject
  readonly leases: LeaseObject
  readonly podtemplates: PodTemplateObject
}
