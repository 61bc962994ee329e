import { notFound } from './requests/api-error.ts'
import { jsonResponse } from './requests/api-request.ts'
import type { ApiReaders } from './requests/readers.ts'
import type { Route } from './requests/route.ts'

/** As long as a kubelet's (`pkg/kubelet/apis/config/v1beta1/defaults.go`, NodeLeaseDurationSeconds, 1.36). */
const leaseDurationSeconds = 40

/** The node's lease, which says that podd is alive: whoever gets it has an answer of this moment. */
export function leaseRoutes({ resources }: Pick<ApiReaders, 'resources'>): readonly Route[] {
  return [
    {
      method: 'GET',
      pattern: '/apis/coordination.k8s.io/v1/namespaces/*/leases/*',
      async handle({ names: [namespace = '', name = ''], clock }) {
        await resources.nodes.whenListed()
        const node = resources.nodes.reader.list().find(({ metadata }) => metadata.name === name)
        if (namespace !== 'kube-node-lease' || node === undefined)
          throw notFound('leases.coordination.k8s.io', name)
        const { uid, creationTimestamp, resourceVersion } = node.metadata
        return jsonResponse({
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name, namespace, uid, creationTimestamp, resourceVersion },
          spec: {
            holderIdentity: name,
            leaseDurationSeconds,
            renewTime: `${new Date(clock.wallMs()).toISOString().slice(0, 23)}000Z`,
          },
        })
      },
    },
  ]
}
