import type {
  NamespaceObject,
  NodeObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
  LeaseObject,
  PodTemplateObject,
  ClaimObject,
  ConfigObject,
} from '../../api/cluster-objects.ts'
import type { EventObject, PodObject } from '../../api/resource.ts'
import { ResourceStore, Revisions, byName } from './resource-store.ts'

/** Everything that the API shows, kind by kind, all on one counter of revisions. */
export class ShownResources {
  readonly revisions: Revisions
  /** Written by StatusStore. */
  readonly pods: ResourceStore<PodObject>
  /** Written by RingEventRecorder, ordered by the last occurrence. */
  readonly events: ResourceStore<EventObject>
  /** These three are written by LocalObjects. */
  readonly configmaps: ResourceStore<ConfigObject>
  readonly secrets: ResourceStore<ConfigObject>
  readonly persistentvolumeclaims: ResourceStore<ClaimObject>
  /** These are written by ClusterObjects. */
  readonly namespaces: ResourceStore<NamespaceObject>
  readonly serviceaccounts: ResourceStore<ServiceAccountObject>
  readonly nodes: ResourceStore<NodeObject>
  readonly priorityclasses: ResourceStore<PriorityClassObject>
  readonly runtimeclasses: ResourceStore<RuntimeClassObject>
  /** These are written by KeptObjects. */
  readonly leases: ResourceStore<LeaseObject>
  readonly podtemplates: ResourceStore<PodTemplateObject>

  /** @param wallMs now */
  constructor(wallMs: number) {
    this.revisions = new Revisions(wallMs)
    this.pods = new ResourceStore<PodObject>(this.revisions, byName)
    this.events = new ResourceStore<EventObject>(this.revisions)
    this.configmaps = new ResourceStore<ConfigObject>(this.revisions, byName)
    this.secrets = new ResourceStore<ConfigObject>(this.revisions, byName)
    this.persistentvolumeclaims = new ResourceStore<ClaimObject>(this.revisions, byName)
    this.namespaces = new ResourceStore<NamespaceObject>(this.revisions, byName)
    this.serviceaccounts = new ResourceStore<ServiceAccountObject>(this.revisions, byName)
    this.nodes = new ResourceStore<NodeObject>(this.revisions, byName)
    this.priorityclasses = new ResourceStore<PriorityClassObject>(this.revisions, byName)
    this.runtimeclasses = new ResourceStore<RuntimeClassObject>(this.revisions, byName)
    this.leases = new ResourceStore<LeaseObject>(this.revisions, byName)
    this.podtemplates = new ResourceStore<PodTemplateObject>(this.revisions, byName)
  }
}
