import type { NodeObject } from '../api/cluster-objects.ts'
import { notFound } from './requests/api-error.ts'
import { jsonResponse } from './requests/api-request.ts'
import type { ApiResponse } from './requests/api-request.ts'
import type { ApiReaders } from './requests/readers.ts'
import type { Call, Route } from './requests/route.ts'

/** As long as a kubelet's (`pkg/kubelet/apis/config/v1beta1/defaults.go`, NodeLeaseDurationSeconds, 1.36). */
const leaseDurationSeconds = 40

const leaseNamespace = 'kube-node-lease'
const apiVersion = 'coordination.k8s.io/v1'

/** The node's lease, which says that podd is alive: whoever gets it has an answer of this moment. */
export function leaseRoutes({ resources }: Pick<ApiReaders, 'resources'>): readonly Route[] {
  const { reader, whenListed } = resources.nodes
  const root = '/apis/coordination.k8s.io/v1'
  const list = async ({ names: [namespace = leaseNamespace], clock }: Call): Promise<ApiResponse> => {
    await whenListed()
    const nodes = namespace === leaseNamespace ? reader.list() : []
    const items = nodes.map((node) => leaseOf(node, clock.wallMs()))
    const metadata = { resourceVersion: String(reader.revision) }
    return jsonResponse({ apiVersion, kind: 'LeaseList', metadata, items })
  }
  return [
    { method: 'GET', pattern: `${root}/leases`, handle: list },
    { method: 'GET', pattern: `${root}/namespaces/*/leases`, handle: list },
    {
      method: 'GET',
      pattern: `${root}/namespaces/*/leases/*`,
      async handle({ names: [namespace = '', name = ''], clock }) {
        await whenListed()
        const node = reader.list().find(({ metadata }) => metadata.name === name)
        if (namespace !== leaseNamespace || node === undefined)
          throw notFound('leases.coordination.k8s.io', name)
        return jsonResponse(leaseOf(node, clock.wallMs()))
      },
    },
  ]
}

/** Owned by its node (`pkg/kubelet/util/nodelease.go` SetNodeOwnerFunc, 1.36). */
function leaseOf({ apiVersion: owner, kind, metadata }: NodeObject, wallMs: number): object {
  const { name, uid, creationTimestamp, resourceVersion } = metadata
  return {
    apiVersion,
    kind: 'Lease',
    metadata: {
      name,
      namespace: leaseNamespace,
      uid,
      creationTimestamp,
      resourceVersion,
      ownerReferences: [{ apiVersion: owner, kind, name, uid }],
    },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds,
      renewTime: `${new Date(wallMs).toISOString().slice(0, 23)}000Z`,
    },
  }
}
