import type { LeaseObject } from '../../api/kinds/derived-kinds.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { Clock } from '../../base/clock.ts'
import type { ResourceReader } from '../requests/readers.ts'
import { mapReader } from './map-reader.ts'

/** As long as a kubelet's (`pkg/kubelet/apis/config/v1beta1/defaults.go`, NodeLeaseDurationSeconds, 1.36). */
const leaseDurationSeconds = 40

export const leaseNamespace = 'kube-node-lease'

/**
 * The node's lease, made of the node and owned by it (`pkg/kubelet/util/nodelease.go` SetNodeOwnerFunc, 1.36): whoever
 * lists it has an answer of this moment, who watches it hears of each change of the node.
 */
export function leaseReader(
  nodes: ResourceReader<ResourceObject>,
  clock: Pick<Clock, 'wallMs'>,
): ResourceReader<ResourceObject> {
  return mapReader(nodes, ({ apiVersion, kind, metadata }): LeaseObject => {
    const { name, uid, creationTimestamp, resourceVersion } = metadata
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name,
        namespace: leaseNamespace,
        uid,
        ownerReferences: [{ apiVersion, kind, name, uid }],
        ...(creationTimestamp !== undefined && { creationTimestamp }),
        ...(resourceVersion !== undefined && { resourceVersion }),
      },
      spec: {
        holderIdentity: name,
        leaseDurationSeconds,
        renewTime: `${new Date(clock.wallMs()).toISOString().slice(0, 23)}000Z`,
      },
    }
  })
}

/** A kind without objects, on the counter of revisions of others. */
export function emptyReader(others: ResourceReader<ResourceObject>): ResourceReader<ResourceObject> {
  return {
    get revision() {
      return others.revision
    },
    list: () => [],
    listAt: () => [],
    changesAfter: () => [],
    subscribe: () => () => {},
  }
}
