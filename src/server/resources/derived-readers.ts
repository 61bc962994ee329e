import type { LeaseObject } from '../../api/cluster-objects.ts'
import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import type { Clock } from '../../base/clock.ts'
import { jsonAt, objectOrEmpty } from '../../base/json.ts'
import type { ApiReaders, ResourceReader } from '../requests/readers.ts'

/** As long as a kubelet's (`pkg/kubelet/apis/config/v1beta1/defaults.go`, NodeLeaseDurationSeconds, 1.36). */
const leaseDurationSeconds = 40

const leaseNamespace = 'kube-node-lease'

/** With the node's lease among those that clients wrote. */
export function withNodeLease(readers: ApiReaders, clock: Pick<Clock, 'wallMs'>): ApiReaders {
  const { leases, nodes } = readers.resources
  const all = joinReaders(nodeLeaseReader(nodes, clock), leases)
  return {
    ...readers,
    resources: { ...readers.resources, leases: all },
    async whenListed(resource) {
      await readers.whenListed(resource)
      if (resource === 'leases') await readers.whenListed('nodes')
    },
  }
}

/**
 * The node's lease, made of the node and owned by it (`pkg/kubelet/util/nodelease.go` SetNodeOwnerFunc, 1.36): a list
 * has it renewed at that moment, and a watch gets each change of the node.
 */
function nodeLeaseReader(
  nodes: ResourceReader<ResourceObject>,
  clock: Pick<Clock, 'wallMs'>,
): ResourceReader<LeaseObject> {
  return mapReader(nodes, ({ apiVersion, kind, metadata }): LeaseObject => {
    const { name, uid, creationTimestamp, resourceVersion } = metadata
    const owned = { ownerReferences: [{ apiVersion, kind, name, uid }] }
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name,
        namespace: leaseNamespace,
        uid,
        ...owned,
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

/** The objects of two readers on one counter of revisions, those of the first before the others. */
function joinReaders<T extends ResourceObject>(
  first: ResourceReader<T>,
  second: ResourceReader<T>,
): ResourceReader<T> {
  const both = <I>(a: readonly I[] | undefined, b: readonly I[] | undefined): readonly I[] | undefined =>
    a === undefined || b === undefined ? undefined : a.concat(b)
  const byRevision = (a: ResourceChange<T>, b: ResourceChange<T>): number => a.revision - b.revision
  return {
    get revision() {
      return first.revision
    },
    list: () => first.list().concat(second.list()),
    listAt: (revision) => both(first.listAt(revision), second.listAt(revision)),
    changesAfter: (revision) =>
      both(first.changesAfter(revision), second.changesAfter(revision))?.toSorted(byRevision),
    subscribe(listener) {
      const endings = [first.subscribe(listener), second.subscribe(listener)]
      return () => {
        for (const end of endings) end()
      }
    },
  }
}

/** The same objects in another form. A change stays one object for all its listeners, so that they share its line. */
export function mapReader<T extends ResourceObject>(
  reader: ResourceReader<ResourceObject>,
  convert: (object: ResourceObject) => T,
): ResourceReader<T> {
  const known = new WeakMap<ResourceChange<ResourceObject>, ResourceChange<T>>()
  const convertChange = (change: ResourceChange<ResourceObject>): ResourceChange<T> => {
    const converted = known.get(change) ?? {
      ...change,
      object: convert(change.object),
      previous: change.previous === undefined ? undefined : convert(change.previous),
    }
    known.set(change, converted)
    return converted
  }
  return {
    get revision() {
      return reader.revision
    },
    list: () => reader.list().map((object) => convert(object)),
    listAt: (revision) => reader.listAt(revision)?.map((object) => convert(object)),
    changesAfter: (revision) => reader.changesAfter(revision)?.map((change) => convertChange(change)),
    subscribe: (listener) => reader.subscribe((change) => listener(convertChange(change))),
  }
}

/** The annotation in which kubectl keeps the whole manifest, including the values. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Shows a Secret with its keys, and the length of each value (`<7 bytes>`). */
export function redactSecret(object: ResourceObject): ResourceObject {
  const { annotations = {} } = object.metadata
  const shown = Object.entries(annotations).filter(([key]) => key !== lastApplied)
  const sizes = Object.entries(objectOrEmpty(jsonAt(object, 'data'))).map(([key, value]) => [
    key,
    `<${typeof value === 'string' ? Buffer.byteLength(value, 'base64') : 0} bytes>`,
  ])
  const metadata = { ...object.metadata, annotations: Object.fromEntries(shown) }
  const redacted = { ...object, metadata, data: Object.fromEntries(sizes) }
  return redacted
}
