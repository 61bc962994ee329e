import type { ClaimObject, ConfigObject } from '../../api/local-objects.ts'
import type { EventObject, PodObject } from '../../api/objects.ts'
import { ResourceStore, Revisions, byName } from './resource-store.ts'

/** Everything that the API shows, kind by kind, all on one counter of revisions. */
export class ShownResources {
  readonly revisions: Revisions
  /** Written by StatusStore. */
  readonly pods: ResourceStore<PodObject>
  /** Written by RingEventRecorder; in the order in which they last happened. */
  readonly events: ResourceStore<EventObject>
  /** These three are written by LocalObjects. */
  readonly configmaps: ResourceStore<ConfigObject>
  readonly secrets: ResourceStore<ConfigObject>
  readonly persistentvolumeclaims: ResourceStore<ClaimObject>

  /** @param wallMs now */
  constructor(wallMs: number) {
    this.revisions = new Revisions(wallMs)
    this.pods = new ResourceStore<PodObject>(this.revisions, byName)
    this.events = new ResourceStore<EventObject>(this.revisions)
    this.configmaps = new ResourceStore<ConfigObject>(this.revisions, byName)
    this.secrets = new ResourceStore<ConfigObject>(this.revisions, byName)
    this.persistentvolumeclaims = new ResourceStore<ClaimObject>(this.revisions, byName)
  }
}
