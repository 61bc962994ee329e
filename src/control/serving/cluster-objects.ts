import type {
  NamespaceObject,
  NodeCondition,
  NodeObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
} from '../../api/cluster-objects.ts'
import { kubernetesVersion, poddVersion } from '../../api/resource.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { formatTime, PacedWork, sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { isJsonObject, textEntries } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { RuntimeClassFacts } from '../../decide/admission/resolve-classes.ts'
import type { PressureCondition } from '../../decide/node/judge-pressure.ts'
import { ownNodeOf } from '../../decide/writing/own-node.ts'
import type { OwnNode } from '../../decide/writing/own-node.ts'
import type { MachineInfo } from '../../host/facts/host-info.ts'
import type { WrittenMetadata, ObjectDocument } from '../../pod/objects/document.ts'
import { systemPriorities } from '../../pod/schema/pod-resources.ts'
import { uuidOfText } from '../../pod/values/hash.ts'
import type { ObjectStore } from './object-store.ts'
import type { ResourceStore, ShownResources } from './resource-store.ts'

interface ClusterFacts {
  readonly shown: ShownResources
  readonly objects: ObjectStore
  readonly machine: MachineInfo
  readonly hostName: string
  /** RuntimeClasses of the config, by name. */
  readonly runtimeClasses: ReadonlyMap<string, RuntimeClassFacts>
  /** The host's current state, without its identity and its images. */
  readonly readNode: () => Omit<NodeFacts, 'uid' | 'name' | 'machine' | 'createdMs' | 'images' | 'own'>
  /** The images that the runtime has. */
  readonly listImages: () => Promise<NodeFacts['images']>
  /** The manifests of namespaces that were created over the API. */
  readonly written: (kind: 'Namespace' | 'ServiceAccount') => readonly JsonObject[]
  /** The Node as clients wrote it. */
  readonly writtenNode: () => JsonObject | undefined
  /** When podd was set up on this host, in wall milliseconds. */
  readonly createdMs: number
  readonly clock: Clock
}

/** How long a list of nodes waits for the runtime's images; after that the last known ones are shown. */
const imagesMs = 1000

/** Namespaces that exist even when empty. */
const standingNamespaces = ['default', 'kube-system']

/**
 * Objects that follow from others: the host as a Node, the namespaces that are in use with their service accounts, and
 * classes. Writes the stores of their kinds, at once when what they follow from changes; the node also before it is shown.
 */
export class ClusterObjects {
  readonly #facts: ClusterFacts
  #images: NodeFacts['images'] = []
  /** Each looks at every object. */
  readonly #namespaceReviews: PacedWork
  #writtenNode: JsonObject | undefined

  constructor(facts: ClusterFacts) {
    this.#facts = facts
    this.#namespaceReviews = new PacedWork(facts.clock, () => this.showNamespaces())
  }

  begin(): void {
    const { shown, objects } = this.#facts
    for (const store of namespacedStores(shown))
      store.subscribe(({ type, object }) => {
        if (type === 'MODIFIED' || (type === 'ADDED' && this.#isInOlderNamespace(object))) return
        this.#namespaceReviews.ask()
      })
    // Every change of the host's state is an event.
    shown.events.subscribe(({ object }) => {
      if (object.involvedObject.kind === 'Node') this.refreshNode()
    })
    objects.follow(() => this.#showClasses())
    this.showNamespaces()
    this.#showClasses()
  }

  /** Resolves when the current state of the node is shown. */
  async whenNodeShown(): Promise<void> {
    const { clock, listImages } = this.#facts
    const listed = listImages().then(
      (images) => void (this.#images = images),
      // The runtime is unavailable; the node's conditions say so.
      () => {},
    )
    const patience = new AbortController()
    await Promise.race([listed, sleepUnlessAborted(clock, imagesMs, patience.signal)])
    patience.abort()
    this.refreshNode()
  }

  refreshNode(): void {
    const { shown, readNode, machine, hostName, createdMs, clock, writtenNode } = this.#facts
    this.#writtenNode = writtenNode()
    const own = ownNodeOf(this.#writtenNode)
    const uid = this.#uidOf('Node', hostName)
    const whole = { ...readNode(), name: hostName, machine, uid, createdMs, images: this.#images, own }
    shown.nodes.put(uid, toNodeObject(whole, clock.wallMs(), shown.nodes.get(uid)))
  }

  /** Shows what follows from the objects written over the API, at once; call it when they may have changed. */
  showWritten(): void {
    this.showNamespaces()
    if (this.#facts.writtenNode() !== this.#writtenNode) this.refreshNode()
  }

  /** Whether its namespace is shown already and would not change: it exists since its oldest object. */
  #isInOlderNamespace(object: ResourceObject): boolean {
    const { namespace = '' } = object.metadata
    const since = this.#facts.shown.namespaces.get(this.#uidOf('Namespace', namespace))?.metadata
      .creationTimestamp
    const createdAt = recordedTime(object)
    return since !== undefined && createdAt !== undefined && since <= createdAt
  }

  showNamespaces(): void {
    const { shown, createdMs, written: writtenOf } = this.#facts
    const since = new Map(standingNamespaces.map((name) => [name, formatTime(createdMs)]))
    for (const store of namespacedStores(shown))
      for (const object of store.values()) {
        const { namespace = '' } = object.metadata
        const creationTimestamp = recordedTime(object) ?? formatTime(createdMs)
        const known = since.get(namespace)
        if (known === undefined || creationTimestamp < known) since.set(namespace, creationTimestamp)
      }
    const written = new Map(
      writtenOf('Namespace').flatMap((manifest) => {
        const namespace = toNamespace(manifest)
        return namespace === undefined ? [] : [[namespace.metadata.name, namespace] as const]
      }),
    )
    for (const { metadata } of written.values()) since.set(metadata.name, metadata.creationTimestamp ?? '')
    const ownAccounts = writtenOf('ServiceAccount').flatMap((manifest) => toServiceAccount(manifest) ?? [])
    for (const { namespace = '', creationTimestamp = formatTime(createdMs) } of ownAccounts.map(
      ({ metadata }) => metadata,
    ))
      if (!since.has(namespace)) since.set(namespace, creationTimestamp)
    const namespaces = new Map<string, NamespaceObject>()
    const accounts = new Map<string, ServiceAccountObject>()
    for (const [name, creationTimestamp] of since) {
      const uid = this.#uidOf('Namespace', name)
      const namespace = written.get(name) ?? toNamespace({ metadata: { name, uid, creationTimestamp } })
      if (namespace !== undefined) namespaces.set(namespace.metadata.uid, namespace)
      accounts.set(name, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: {
          name: 'default',
          namespace: name,
          uid: this.#uidOf('ServiceAccount', `${name}/default`),
          creationTimestamp,
        },
      })
    }
    shown.namespaces.replaceAll(namespaces)
    for (const account of ownAccounts) accounts.set(account.metadata.uid, account)
    shown.serviceaccounts.replaceAll(accounts)
  }

  #showClasses(): void {
    const { shown, objects, runtimeClasses, createdMs } = this.#facts
    const creationTimestamp = formatTime(createdMs)
    const priorities = new Map<string, PriorityClassObject>()
    const runtimes = new Map<string, RuntimeClassObject>()
    const metaOf = (kind: string, name: string, kept?: WrittenMetadata): RuntimeClassObject['metadata'] => ({
      ...kept?.metadata,
      name,
      uid: kept?.uid ?? this.#uidOf(kind, name),
      creationTimestamp: kept === undefined ? creationTimestamp : formatTime(kept.createdAtMs),
    })
    const addPriority = (
      name: string,
      spec: Pick<PriorityClassObject, 'value' | 'description' | 'globalDefault' | 'preemptionPolicy'>,
      kept?: WrittenMetadata,
    ) =>
      priorities.set(name, {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { ...metaOf('PriorityClass', name, kept), generation: 1 },
        ...spec,
      })
    const addRuntime = (
      name: string,
      { handler, overhead }: RuntimeClassFacts,
      { kept, manifest }: Partial<ObjectDocument> = {},
    ) =>
      runtimes.set(name, {
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: metaOf('RuntimeClass', name, kept),
        handler,
        ...(overhead !== undefined && { overhead: { podFixed: overhead } }),
        ...(isJsonObject(manifest?.['scheduling']) && { scheduling: manifest['scheduling'] }),
      })
    for (const [name, { value, description }] of systemPriorities)
      addPriority(name, { value, description, preemptionPolicy: 'PreemptLowerPriority' })
    for (const { document } of objects.documents()) {
      const { object, kept } = document
      if (object.kind === 'PriorityClass') {
        const { value, globalDefault, description, preemptionPolicy, metadata } = object
        addPriority(
          metadata.name,
          {
            value,
            ...(globalDefault && { globalDefault }),
            ...(description !== '' && { description }),
            preemptionPolicy,
          },
          kept,
        )
      }
      if (object.kind === 'RuntimeClass')
        addRuntime(
          object.metadata.name,
          { handler: object.handler, overhead: object.overhead?.podFixed },
          document,
        )
    }
    for (const [name, runtimeClass] of runtimeClasses) addRuntime(name, runtimeClass)
    shown.priorityclasses.replaceAll(priorities)
    shown.runtimeclasses.replaceAll(runtimes)
  }

  /** Stable on this host, and different on any other. */
  #uidOf(kind: string, name: string): string {
    const { machine, hostName } = this.#facts
    return uuidOfText(JSON.stringify([kind, machine.machineId, hostName, name]))
  }
}

/** The kinds whose objects keep their namespace alive. */
function namespacedStores(
  shown: ShownResources,
): readonly Pick<ResourceStore<ResourceObject>, 'values' | 'subscribe'>[] {
  const { pods, configmaps, secrets, persistentvolumeclaims, leases, podtemplates, services } = shown
  const { deployments, statefulsets, daemonsets, jobs, cronjobs, roles, rolebindings, poddisruptionbudgets } =
    shown
  const idle = [roles, rolebindings, poddisruptionbudgets]
  const workloads = [deployments, statefulsets, daemonsets, jobs, cronjobs]
  return [
    pods,
    configmaps,
    secrets,
    persistentvolumeclaims,
    leases,
    podtemplates,
    services,
    ...workloads,
    ...idle,
  ]
}

/** Undefined where an object only has the time at which this podd first showed it: another podd gives another time. */
function recordedTime({ kind, metadata }: ResourceObject): string | undefined {
  const isConfig = ['ConfigMap', 'Secret', 'PersistentVolumeClaim', 'Service'].includes(kind)
  const isRecorded = !isConfig || metadata.annotations?.['podd.dev/source'] === 'api'
  return isRecorded ? metadata.creationTimestamp : undefined
}

/** Undefined without a name. */
function toServiceAccount({ metadata, ...fields }: JsonObject): ServiceAccountObject | undefined {
  if (!isJsonObject(metadata)) return undefined
  const { name, namespace, uid } = metadata
  if (typeof name !== 'string' || typeof namespace !== 'string' || typeof uid !== 'string') return undefined
  return {
    ...fields,
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { ...metadata, name, namespace, uid },
  }
}

/** Undefined without a name; a namespace that was deleted over the API terminates until nothing is left in it. */
function toNamespace({ metadata }: JsonObject): NamespaceObject | undefined {
  if (!isJsonObject(metadata)) return undefined
  const { name, uid, labels, deletionTimestamp } = metadata
  if (typeof name !== 'string' || typeof uid !== 'string') return undefined
  const isTerminating = typeof deletionTimestamp === 'string'
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      ...metadata,
      name,
      uid,
      labels: { ...textEntries(labels), 'kubernetes.io/metadata.name': name },
    },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: isTerminating ? 'Terminating' : 'Active' },
  }
}

interface NodeFacts {
  readonly name: string
  readonly uid: string
  /** When podd was set up on this host, in wall milliseconds. */
  readonly createdMs: number
  readonly machine: MachineInfo
  readonly bootId: string
  readonly kernel: string
  readonly architecture: string
  readonly addresses: readonly string[]
  readonly podCidrs: readonly string[]
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly runtime: { readonly name: string; readonly version: string | undefined }
  /** Why the runtime can't be used, or has no network for pods; undefined while it can be used for all. */
  readonly runtimeProblem: string | undefined
  /** Where a kubelet's paths are served over TCP; 0: nowhere. */
  readonly kubeletPort: number
  readonly pressure: readonly PressureCondition[]
  readonly draining: boolean
  readonly images: readonly { readonly names: readonly string[]; readonly sizeBytes: number }[]
  /** What clients have written of it. */
  readonly own: OwnNode
}

/** `pkg/kubelet/apis/config/v1beta1/defaults.go`, NodeStatusMaxImages, 1.36. */
const maxImages = 50
/** The heartbeat of an unchanged condition is renewed after this (NodeStatusReportFrequency, there). */
const heartbeatMs = 300_000

const pressures: readonly (readonly [PressureCondition, about: string, has: string])[] = [
  ['MemoryPressure', 'Memory', 'memory'],
  ['DiskPressure', 'Disk', 'disk'],
  ['PIDPressure', 'PID', 'PID'],
]

/** The largest first; of one size by name: the runtime lists them in another order each time, which is no change of the node. */
function compareImages(a: NodeFacts['images'][number], b: NodeFacts['images'][number]): number {
  return b.sizeBytes - a.sizeBytes || (a.names.join(' ') < b.names.join(' ') ? -1 : 1)
}

/**
 * The host as a Node, in the words of `pkg/kubelet/nodestatus/setters.go`, 1.36.
 * @param before as it was last shown: conditions that still hold keep their times
 */
function toNodeObject(facts: NodeFacts, nowMs: number, before: NodeObject | undefined): NodeObject {
  const { capacity, allocatable, addresses, machine, runtime, podCidrs, own } = facts
  const [podCIDR] = podCidrs
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: facts.name,
      uid: facts.uid,
      creationTimestamp: formatTime(facts.createdMs),
      labels: {
        ...own.labels,
        'kubernetes.io/arch': facts.architecture,
        'kubernetes.io/hostname': facts.name,
        'kubernetes.io/os': 'linux',
      },
      ...(Object.keys(own.annotations).length > 0 && { annotations: own.annotations }),
    },
    spec: {
      ...(facts.draining && { unschedulable: true }),
      ...(podCIDR !== undefined && { podCIDR, podCIDRs: podCidrs }),
    },
    status: {
      capacity: { ...own.capacity, ...capacity },
      allocatable: { ...own.capacity, ...allocatable },
      conditions: conditionsOf(facts, nowMs, before?.status.conditions ?? []),
      addresses: [
        ...addresses.map((address) => ({ type: 'InternalIP', address }) as const),
        { type: 'Hostname', address: facts.name },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: facts.kubeletPort } },
      nodeInfo: {
        machineID: machine.machineId,
        systemUUID: machine.systemUuid,
        bootID: facts.bootId,
        kernelVersion: facts.kernel,
        osImage: machine.osImage,
        containerRuntimeVersion: runtime.version === undefined ? '' : `${runtime.name}://${runtime.version}`,
        kubeletVersion: `v${kubernetesVersion}.0+podd-${poddVersion}`,
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: facts.architecture,
      },
      images: facts.images.toSorted(compareImages).slice(0, maxImages),
    },
  }
}

function conditionsOf(
  { pressure, runtimeProblem }: NodeFacts,
  nowMs: number,
  before: readonly NodeCondition[],
): readonly NodeCondition[] {
  const lastHeartbeatTime = formatTime(nowMs - (nowMs % heartbeatMs))
  const condition = (
    type: NodeCondition['type'],
    holds: boolean,
    words: Pick<NodeCondition, 'reason' | 'message'>,
  ): NodeCondition => {
    const status = holds ? 'True' : 'False'
    const known = before.find((other) => other.type === type && other.status === status)
    const lastTransitionTime = known?.lastTransitionTime ?? formatTime(nowMs)
    return { type, status, ...words, lastHeartbeatTime, lastTransitionTime }
  }
  return [
    ...pressures.map(([type, about, has]) =>
      pressure.includes(type)
        ? condition(type, true, {
            reason: `KubeletHasInsufficient${about}`,
            message: `podd has insufficient ${has} available`,
          })
        : condition(type, false, {
            reason: type === 'DiskPressure' ? 'KubeletHasNoDiskPressure' : `KubeletHasSufficient${about}`,
            message:
              type === 'DiskPressure' ? 'podd has no disk pressure' : `podd has sufficient ${has} available`,
          }),
    ),
    runtimeProblem === undefined
      ? condition('Ready', true, { reason: 'KubeletReady', message: 'podd is posting ready status' })
      : condition('Ready', false, { reason: 'KubeletNotReady', message: runtimeProblem }),
  ]
}
