/*
 * Services as names: which pods are behind each, under which names another pod finds them in its hosts file, and which
 * variables its containers get. There is no proxy and no address of a Service's own: a name leads to the pods themselves.
 */
import type { EndpointSliceObject } from '../../api/cluster-objects.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { ObjectPolicies } from '../../pod/objects/local-object.ts'
import { targetPortOf } from '../../pod/objects/object-kinds.ts'
import type { Service } from '../../pod/objects/object-kinds.ts'
import type { HostAlias, Pod } from '../../pod/schema/pod-schema.ts'
import { uuidOfText } from '../../pod/values/hash.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import type { PodUid, SourceName } from '../../pod/values/ids.ts'

/** A pod as Services see it. */
export interface ServicePod {
  readonly uid: PodUid
  readonly pod: Pod
  readonly source: SourceName
  /** The primary one first; none before it has a sandbox. */
  readonly ips: readonly string[]
  readonly isReady: boolean
  readonly isTerminating: boolean
  /** It has succeeded or failed. */
  readonly isOver: boolean
}

/** A pod behind a Service. */
interface Endpoint {
  readonly pod: ServicePod
  /** Whether it counts as ready: it is, or the Service publishes addresses that are not. */
  readonly isReady: boolean
}

export interface ServiceEndpoints {
  readonly service: Service
  /** In the order of the pods' names. */
  readonly endpoints: readonly Endpoint[]
}

/**
 * The pods behind a Service: those in its namespace that its selector matches, of its own source and of those whose
 * objects that one may read. Which of them count, and as ready: `pkg/controller/util/endpointslice`, ShouldPodBeInEndpoints,
 * and `staging/src/k8s.io/endpointslice/utils.go`, podToEndpoint, 1.36.
 * @param source what gives the Service
 */
export function selectEndpoints(
  service: Service,
  source: SourceName,
  pods: readonly ServicePod[],
  policies: ObjectPolicies,
): ServiceEndpoints {
  const { selector, publishNotReadyAddresses } = service.spec
  const wanted = Object.entries(selector)
  const seen = policies[kindOfSource(source)].readsObjectsOf
  const behind = pods.filter(
    (pod) =>
      !pod.isOver &&
      pod.ips.length > 0 &&
      wanted.length > 0 &&
      pod.pod.metadata.namespace === service.metadata.namespace &&
      wanted.every(([key, value]) => pod.pod.metadata.labels[key] === value) &&
      (pod.source === source || seen.includes(kindOfSource(pod.source))),
  )
  const endpoints = behind.map((pod) => ({
    pod,
    isReady: publishNotReadyAddresses || (pod.isReady && !pod.isTerminating),
  }))
  return { service, endpoints: endpoints.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)) }
}

function nameOf({ pod: { pod, uid } }: Endpoint): string {
  return `${pod.metadata.name} ${uid}`
}

/**
 * Whether a pod finds Services by name: where it would ask the DNS of a cluster (`pkg/kubelet/network/dns/dns.go`,
 * getPodDNSType, 1.36).
 */
export function findsServices({ spec }: Pod): boolean {
  return (
    spec.dnsPolicy === 'ClusterFirstWithHostNet' || (spec.dnsPolicy === 'ClusterFirst' && !spec.hostNetwork)
  )
}

const domain = 'svc.cluster.local'

/**
 * What the hosts file of a pod has of the Services that it sees, as the DNS of a cluster answers
 * (https://github.com/kubernetes/dns/blob/master/docs/specification.md, 1.1.0): each Service by its name in the pod's own
 * namespace, and by the longer ones everywhere, at the addresses of its ready pods; each of these with a `hostname` and the
 * Service's name as its `subdomain` by both. The longest name comes first, as a hosts file has the canonical one.
 */
export function computeServiceNames(pod: Pod, services: readonly ServiceEndpoints[]): readonly HostAlias[] {
  if (!findsServices(pod)) return []
  return services.flatMap(({ service, endpoints }) => {
    const { name, namespace } = service.metadata
    const isNear = namespace === pod.metadata.namespace
    const ready = endpoints.filter(({ isReady }) => isReady)
    const own = ready.flatMap(({ pod: { ips } }) => linesOf(ips, name, namespace, isNear))
    const ofPods = ready.flatMap(({ pod: { ips, pod: behind } }) => {
      const { hostname = '', subdomain = '' } = behind.spec
      if (hostname === '' || subdomain !== name) return []
      return linesOf(ips, `${hostname}.${name}`, namespace, isNear)
    })
    return [...own, ...ofPods]
  })
}

/** musl reads lines of at most 511 bytes; an address may take 45 of them. */
const maxLineNames = 440

function linesOf(
  ips: readonly string[],
  name: string,
  namespace: string,
  isNear: boolean,
): readonly HostAlias[] {
  const names = [
    `${name}.${namespace}.${domain}`,
    `${name}.${namespace}.svc`,
    `${name}.${namespace}`,
    ...(isNear ? [name] : []),
  ]
  const fits = names.join('\t').length <= maxLineNames
  const lines = fits ? [names] : names.map((each) => [each])
  return ips.flatMap((ip) => lines.map((hostnames) => ({ ip, hostnames })))
}

/**
 * The variables of the Services in the pod's namespace, but for headless ones, as the kubelet makes them
 * (`pkg/kubelet/envvars/envvars.go`, FromServices, 1.36). Where a cluster has a Service's own address stands its name, which
 * stays right when its pods get other addresses; in a pod that finds no Services by name, the address of the first ready
 * pod, and without one there are none.
 */
export function computeServiceVariables(
  pod: Pod,
  services: readonly ServiceEndpoints[],
): ReadonlyMap<string, string> {
  const variables = new Map<string, string>()
  if (!pod.spec.enableServiceLinks) return variables
  for (const { service, endpoints } of services) {
    const { name, namespace } = service.metadata
    const { clusterIP, ports } = service.spec
    const [first] = ports
    if (namespace !== pod.metadata.namespace || clusterIP === 'None' || first === undefined) continue
    const host = findsServices(pod)
      ? `${name}.${namespace}.${domain}`
      : endpoints.find(({ isReady }) => isReady)?.pod.ips[0]
    if (host === undefined) continue
    const prefix = toVariableName(name)
    variables.set(`${prefix}_SERVICE_HOST`, host)
    variables.set(`${prefix}_SERVICE_PORT`, String(first.port))
    for (const port of ports)
      if (port.name !== '')
        variables.set(`${prefix}_SERVICE_PORT_${toVariableName(port.name)}`, String(port.port))
    const urlHost = host.includes(':') ? `[${host}]` : host
    const urlOf = ({ protocol, port }: typeof first): string =>
      `${protocol.toLowerCase()}://${urlHost}:${port}`
    variables.set(`${prefix}_PORT`, urlOf(first))
    for (const each of ports) {
      const link = `${prefix}_PORT_${each.port}_${each.protocol}`
      variables.set(link, urlOf(each))
      variables.set(`${link}_PROTO`, each.protocol.toLowerCase())
      variables.set(`${link}_PORT`, String(each.port))
      variables.set(`${link}_ADDR`, host)
    }
  }
  return variables
}

function toVariableName(name: string): string {
  return name.replaceAll('-', '_').toUpperCase()
}

/** The number of a Service's port in a pod; undefined where the pod has no port of that name. */
function portIn({ spec }: Pod, port: Service['spec']['ports'][number]): number | undefined {
  const target = targetPortOf(port)
  if (typeof target === 'number') return target
  // `pkg/api/v1/pod/util.go`, FindPort, 1.36: of init containers those that keep running.
  const lasting = spec.initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...lasting]
    .flatMap(({ ports }) => ports)
    .find(({ name, protocol }) => name === target && protocol === port.protocol)?.containerPort
}

/**
 * The EndpointSlices of a Service: one for each family of addresses, and for each set of ports that its pods have
 * (`staging/src/k8s.io/endpointslice/reconciler.go`, 1.36).
 * @param serviceUid of the Service as it is shown
 */
export function computeEndpointSlices(
  { service, endpoints }: ServiceEndpoints,
  { serviceUid, nodeName }: { readonly serviceUid: string; readonly nodeName: string },
): readonly EndpointSliceObject[] {
  const { name, namespace, labels } = service.metadata
  const addresses = endpoints.flatMap((endpoint) =>
    endpoint.pod.ips.map((ip) => {
      const ports = service.spec.ports.map((port) => portIn(endpoint.pod.pod, port))
      return { endpoint, ip, ports, key: `${ip.includes(':') ? 'IPv6' : 'IPv4'} ${ports.join()}` }
    }),
  )
  const groups = [...Map.groupBy(addresses, ({ key }) => key)]
  const sets = groups.length > 0 ? groups : [['IPv4 ', []] as const]
  return sets.map(([key, members], index) => {
    const addressType = key.startsWith('IPv6') ? 'IPv6' : 'IPv4'
    const sliceName = `${name}-${addressType.toLowerCase()}${index === 0 ? '' : `-${index}`}`
    const numbers = members[0]?.ports
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: sliceName,
        namespace,
        uid: uuidOfText(JSON.stringify(['EndpointSlice', serviceUid, sliceName])),
        labels: {
          ...labels,
          'endpointslice.kubernetes.io/managed-by': 'podd',
          'kubernetes.io/service-name': name,
        },
        ownerReferences: [
          {
            apiVersion: 'v1',
            kind: 'Service',
            name,
            uid: serviceUid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      addressType,
      ports: service.spec.ports.flatMap((port, at) => {
        const number = numbers === undefined ? targetPortOf(port) : numbers[at]
        return typeof number === 'number' ? [{ name: port.name, protocol: port.protocol, port: number }] : []
      }),
      endpoints: members.map(({ endpoint: { pod, isReady }, ip }) => {
        const { hostname = '', subdomain = '' } = pod.pod.spec
        return {
          addresses: [ip],
          conditions: { ready: isReady, serving: pod.isReady, terminating: pod.isTerminating },
          ...(hostname !== '' && subdomain === name && { hostname }),
          nodeName,
          targetRef: { kind: 'Pod', namespace, name: pod.pod.metadata.name, uid: pod.uid },
        }
      }),
    }
  })
}

/** Warnings about ports by name that are others in the pods: of those by number decoding tells. */
export function listPortProblems(
  { service, endpoints }: ServiceEndpoints,
  place: Problem['place'],
): readonly Problem[] {
  return service.spec.ports.flatMap((port, index): readonly Problem[] => {
    const target = targetPortOf(port)
    if (typeof target === 'number') return []
    const numbers = new Set(endpoints.flatMap(({ pod }) => portIn(pod.pod, port) ?? []))
    numbers.delete(port.port)
    const [number] = numbers
    if (number === undefined) return []
    return [
      {
        severity: 'warning',
        place,
        object: `${service.metadata.namespace}/${service.metadata.name}`,
        field: `spec.ports[${index}].targetPort`,
        message: `podd has no proxy: the name leads to the pods themselves, whose port ${target} is ${number}, and nothing answers at ${port.port}`,
        hint: `Have clients use port ${number}, or the pods listen at ${port.port}.`,
      },
    ]
  })
}
