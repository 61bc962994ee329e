import type { PodObject } from '../../api/resource.ts'
import { objectAt, objectsAt, textAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import { parseQuantity, quantityMilliValue, quantityValue } from '../../pod/values/quantity.ts'
import { counter, gauge } from './render-metrics.ts'
import type { MetricFamily } from './render-metrics.ts'

type Labels = Readonly<Record<string, string>>
type Series = readonly { readonly labels: Labels; readonly value: number }[]

/** The series of all pods; each has the labels of its pod. */
type OfPods = (read: (pod: PodObject) => Series) => Series

const phases = ['Pending', 'Succeeded', 'Failed', 'Unknown', 'Running'] as const
const conditions = ['true', 'false', 'unknown'] as const
const reasons = ['Evicted', 'NodeAffinity', 'NodeLost', 'Shutdown', 'UnexpectedAdmissionError'] as const

/**
 * Of pods, those of the metrics of kube-state-metrics that alerts go by, with its names and labels
 * (kube-state-metrics 2.13, `internal/store/pod.go`). Each family is made when it is asked for.
 */
export function* stateMetrics(pods: readonly PodObject[], node: string): Generator<MetricFamily, void> {
  const ofPods: OfPods = (read) =>
    pods.flatMap((pod) => {
      const { namespace, name, uid } = pod.metadata
      return read(pod).map(({ labels, value }) => ({
        labels: { namespace, pod: name, uid, ...labels },
        value,
      }))
    })
  yield gauge(
    'kube_pod_info',
    'Information about pod.',
    ofPods(({ metadata: { ownerReferences: [made] = [] }, spec, status: { hostIP = '', podIP = '' } }) => {
      const owner = { created_by_kind: made?.kind ?? '', created_by_name: made?.name ?? '' }
      const priority = textAt(spec, 'priorityClassName') ?? ''
      const network = String(spec['hostNetwork'] === true)
      const labels = { host_ip: hostIP, pod_ip: podIP, node, ...owner }
      return [{ labels: { ...labels, priority_class: priority, host_network: network }, value: 1 }]
    }),
  )
  yield gauge(
    'kube_pod_owner',
    "Information about the Pod's owner.",
    ofPods(({ metadata: { ownerReferences: [owner] = [] } }) => {
      const { kind = '', name = '', controller = '' } = owner ?? {}
      const labels = { owner_kind: kind, owner_name: name, owner_is_controller: String(controller) }
      return [{ labels, value: 1 }]
    }),
  )
  yield gauge(
    'kube_pod_status_phase',
    'The pods current phase.',
    ofPods(({ status }) => oneOf('phase', phases, status.phase)),
  )
  yield gauge(
    'kube_pod_status_ready',
    'Describes whether the pod is ready to serve requests.',
    ofPods(({ status }) => {
      const ready = status.conditions.find(({ type }) => type === 'Ready')
      return ready === undefined ? [] : oneOf('condition', conditions, ready.status.toLowerCase())
    }),
  )
  yield gauge(
    'kube_pod_status_reason',
    'The pod status reasons',
    ofPods(({ status }) => oneOf('reason', reasons, status.reason)),
  )
  yield* containerMetrics('container', ofPods, ({ status }) => status.containerStatuses)
  yield* containerMetrics('init_container', ofPods, ({ status }) => status.initContainerStatuses)
  yield* resourceMetrics('container', ofPods, ({ spec }) => objectsAt(spec, 'containers'), node)
  yield* resourceMetrics('init_container', ofPods, ({ spec }) => objectsAt(spec, 'initContainers'), node)
}

/** A series for each value that a label may have: 1 for the one that it has. */
function oneOf(label: string, values: readonly string[], actual: string | undefined): Series {
  return values.map((value) => ({ labels: { [label]: value }, value: value === actual ? 1 : 0 }))
}

type Kind = 'container' | 'init_container'

/** The same for containers and for init containers, sidecars among them. */
function* containerMetrics(
  kind: Kind,
  ofPods: OfPods,
  statusesOf: (pod: PodObject) => readonly ContainerStatus[] | undefined,
): Generator<MetricFamily, void> {
  const what = kind.replace('_', ' ')
  const each = (read: (status: ContainerStatus, pod: PodObject) => Series): Series =>
    ofPods((pod) =>
      (statusesOf(pod) ?? []).flatMap((status) =>
        read(status, pod).map(({ labels, value }) => ({
          labels: { container: status.name, ...labels },
          value,
        })),
      ),
    )
  const withReason = (state: { readonly reason?: string } | undefined): Series =>
    state === undefined ? [] : [{ labels: { reason: state.reason ?? '' }, value: 1 }]
  const prefix = `kube_pod_${kind}`
  yield gauge(
    `${prefix}_info`,
    `Information about the ${what} of a pod.`,
    each(({ name, image, imageID, containerID = '' }, pod) => {
      const wanted = imageOf(pod, name)
      return [
        { labels: { image_spec: wanted, image, image_id: imageID, container_id: containerID }, value: 1 },
      ]
    }),
  )
  yield counter(
    `${prefix}_status_restarts_total`,
    `The number of restarts of the ${what}.`,
    each(({ restartCount }) => [{ labels: {}, value: restartCount }]),
  )
  yield gauge(
    `${prefix}_status_waiting_reason`,
    `Describes the reason the ${what} is currently in waiting state.`,
    each(({ state }) => withReason(state.waiting)),
  )
  yield gauge(
    `${prefix}_status_terminated_reason`,
    `Describes the reason the ${what} is currently in terminated state.`,
    each(({ state }) => withReason(state.terminated)),
  )
  yield gauge(
    `${prefix}_status_last_terminated_reason`,
    `Describes the last reason the ${what} was in terminated state.`,
    each(({ lastState }) => withReason(lastState.terminated)),
  )
  yield gauge(
    `${prefix}_status_ready`,
    `Describes whether the readiness check of the ${what} succeeded.`,
    each(({ ready }) => [{ labels: {}, value: ready ? 1 : 0 }]),
  )
}

function* resourceMetrics(
  kind: Kind,
  ofPods: OfPods,
  list: (pod: PodObject) => readonly JsonObject[],
  node: string,
): Generator<MetricFamily, void> {
  const series = (name: 'requests' | 'limits'): Series =>
    ofPods((pod) =>
      list(pod).flatMap((each) => {
        const container = textAt(each, 'name') ?? ''
        return resourcesOf(each, name).map(({ resource, unit, value }) => ({
          labels: { container, node, resource, unit },
          value,
        }))
      }),
    )
  const what = kind.replace('_', ' ')
  yield gauge(
    `kube_pod_${kind}_resource_requests`,
    `What the ${what} requests of a resource.`,
    series('requests'),
  )
  yield gauge(
    `kube_pod_${kind}_resource_limits`,
    `How much the ${what} may use of a resource.`,
    series('limits'),
  )
}

interface ResourceValue {
  readonly resource: string
  readonly unit: 'core' | 'byte' | 'integer'
  readonly value: number
}

/** A limit without a request is the request too, as the API server has it. */
function resourcesOf(container: JsonObject, name: 'requests' | 'limits'): readonly ResourceValue[] {
  const resources = objectAt(container, 'resources') ?? {}
  const limits = objectAt(resources, 'limits') ?? {}
  const given = name === 'limits' ? limits : { ...limits, ...objectAt(resources, 'requests') }
  return Object.keys(given).flatMap((key): readonly ResourceValue[] => {
    const text = textAt(given, key) ?? ''
    if (parseQuantity(text) === undefined) return []
    const resource = key.replaceAll(/[^a-zA-Z0-9_]/gu, '_')
    if (key === 'cpu') return [{ resource, unit: 'core', value: quantityMilliValue(text) / 1000 }]
    return [{ resource, unit: key.includes('/') ? 'integer' : 'byte', value: quantityValue(text) }]
  })
}

function imageOf({ spec }: PodObject, name: string): string {
  const all = [...objectsAt(spec, 'initContainers'), ...objectsAt(spec, 'containers')]
  const found = all.find((container) => container['name'] === name)
  return (found && textAt(found, 'image')) ?? ''
}
