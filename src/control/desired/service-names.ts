import type { EndpointSliceObject } from '../../api/cluster-objects.ts'
import type { PodObject, ResourceChange } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { ServiceEndpoints, ServicePod } from '../../decide/services/service-names.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { HostAlias, Pod } from '../../pod/schema/pod-schema.ts'
import type { PodUid, SourceName } from '../../pod/values/ids.ts'
import { toObjectMeta } from '../../translate/volume-files.ts'
import { composeHostsFile } from '../pod/start.ts'
import type { PodHost } from '../pod/host.ts'
import type { PodWorker } from '../pod/worker.ts'
import type { SystemState } from '../runtime/runtime-watch.ts'
import type { ObjectStore } from '../serving/object-store.ts'
import type { ShownResources } from '../serving/resource-store.ts'
import type { StatusStore } from '../serving/status-store.ts'
import type { PodWorkers } from './pod-workers.ts'

interface NamesEnv extends Pick<PodHost, 'hostName' | 'hostIps' | 'readHostsFile'> {
  readonly volumes: Pick<PodHost['volumes'], 'refreshHostsFile'>
  readonly objects: ObjectStore
  readonly workers: PodWorkers
  readonly statuses: StatusStore
  readonly shown: Pick<ShownResources, 'endpointslices'>
  readonly state: Readonly<SystemState>
  /** Whether this source hasn't said yet what it gives. */
  readonly isSilent: (source: SourceName) => boolean
  readonly clock: Clock
  readonly logger: Logger
}

const loadCode = () => import('../../decide/services/service-names.ts')
type Code = Awaited<ReturnType<typeof loadCode>>

/** After how long a hosts file that could not be written is tried again. */
const retryMs = 5000

/**
 * The names of Services in the hosts files of pods. The files are written in place as soon as a pod behind a Service becomes
 * ready or no longer is, and stay while podd is down. Nothing is loaded or followed before there is a Service.
 */
export class ServiceNames {
  readonly #env: NamesEnv
  #code: Promise<Code> | undefined
  #problems: readonly Problem[] = []
  /** The text that each file is known to have. */
  readonly #written = new Map<PodUid, string>()
  #isDue = false
  #isRunning = false

  constructor(env: NamesEnv) {
    this.#env = env
    env.objects.follow(() => this.#takeObjects())
  }

  problems(): readonly Problem[] {
    return this.#problems
  }

  /** What the pod's hosts file has of Services now. */
  async hostAliases(pod: Pod, source: SourceName): Promise<readonly HostAlias[]> {
    const code = await this.#code
    return code === undefined ? [] : code.computeServiceNames(pod, this.#seenBy(code, source, this.#pods()))
  }

  async variables(pod: Pod, source: SourceName): Promise<ReadonlyMap<string, string>> {
    const code = await this.#code
    if (code === undefined) return new Map()
    return code.computeServiceVariables(pod, this.#seenBy(code, source, this.#pods()))
  }

  /** The pod's hosts file was written for a start of a container, by what was known when that began. */
  noteStart(uid: PodUid): void {
    this.#written.delete(uid)
    this.review()
  }

  /** Brings all hosts files up to date, soon; never throws. Without Services there is nothing to do. */
  review(): void {
    if (this.#code === undefined) return
    this.#isDue = true
    if (!this.#isRunning) void this.#run(this.#code)
  }

  #takeObjects(): void {
    const hasServices = this.#env.objects
      .documents()
      .some(({ document }) => document.object.kind === 'Service')
    if (!hasServices && this.#code === undefined) return
    if (this.#code === undefined) {
      this.#code = loadCode()
      this.#env.statuses.subscribe((change) => {
        if (concernsServices(change)) this.review()
      })
    }
    this.review()
  }

  async #run(loading: Promise<Code>): Promise<void> {
    this.#isRunning = true
    try {
      const code = await loading
      while (this.#isDue) {
        this.#isDue = false
        await this.#reviewAll(code)
      }
    } catch (error) {
      this.#env.logger.error({ err: error }, 'cannot bring the names of Services up to date')
    } finally {
      this.#isRunning = false
    }
  }

  async #reviewAll(code: Code): Promise<void> {
    const { state, workers, clock } = this.#env
    // Before that it is not known what runs, and the files stay as an earlier podd has left them.
    if (!state.isListed) return
    const pods = this.#pods()
    this.#showSlices(code, pods)
    const seen = new Map<SourceName, readonly ServiceEndpoints[]>()
    let hasFailed = false
    for (const worker of workers.all()) {
      const { source } = worker.state.record
      const services = seen.get(source) ?? this.#seenBy(code, source, pods)
      seen.set(source, services)
      if (!(await this.#refresh(worker, code, services))) hasFailed = true
    }
    for (const uid of this.#written.keys()) if (workers.get(uid) === undefined) this.#written.delete(uid)
    if (hasFailed) clock.startTimer(retryMs, () => this.review())
  }

  /** Whether it is up to date, as far as it can be; false where it could not be written. */
  async #refresh(worker: PodWorker, code: Code, services: readonly ServiceEndpoints[]): Promise<boolean> {
    const { state, isSilent, volumes, logger } = this.#env
    const { pod, observed, record, stage } = worker.state
    const ips = observed.sandboxes[0]?.ips ?? []
    const isKnown = state.objectsKnown || !isSilent(record.source)
    if (!isKnown || ips.length + Number(pod.spec.hostNetwork) === 0 || !code.findsServices(pod)) return true
    if (stage === 'stopped' || stage === 'gone') return true
    const { uid, name } = worker.ref
    const text = await composeHostsFile(this.#env, pod, ips, code.computeServiceNames(pod, services))
    if (this.#written.get(uid) === text) return true
    try {
      // A pod without a file gets one with its next container.
      if (await volumes.refreshHostsFile(uid, text)) this.#written.set(uid, text)
      return true
    } catch (error) {
      logger.warn({ pod: name, uid, err: error }, 'cannot write the hosts file of the pod')
      return false
    }
  }

  #showSlices(code: Code, pods: readonly ServicePod[]): void {
    const { objects, shown, hostName } = this.#env
    const slices = new Map<string, EndpointSliceObject>()
    const problems: Problem[] = []
    for (const { source, document } of objects.documents()) {
      const { object, place, kept } = document
      if (object.kind !== 'Service') continue
      const endpoints = code.selectEndpoints(object, source, pods, objects.rules.policies)
      problems.push(...code.listPortProblems(endpoints, place))
      const serviceUid = toObjectMeta(object, { source, place, kept }).uid
      for (const slice of code.computeEndpointSlices(endpoints, { serviceUid, nodeName: hostName }))
        slices.set(slice.metadata.uid, this.#dated(slice))
    }
    this.#problems = problems
    shown.endpointslices.replaceAll(slices)
  }

  /** With the time at which this podd first showed it. */
  #dated(slice: EndpointSliceObject): EndpointSliceObject {
    const { shown, clock } = this.#env
    const known = shown.endpointslices.get(slice.metadata.uid)?.metadata.creationTimestamp
    const creationTimestamp = known ?? formatTime(clock.wallMs())
    return { ...slice, metadata: { ...slice.metadata, creationTimestamp } }
  }

  /** The Services that the pods of a source see, with the pods behind them. */
  #seenBy(code: Code, source: SourceName, pods: readonly ServicePod[]): readonly ServiceEndpoints[] {
    const { objects } = this.#env
    const reader = objects.seenBy(source)
    return reader.list('Service').map((service) => {
      const { namespace, name } = service.metadata
      const giver = reader.sourceOf(`Service/${namespace}/${name}`) ?? source
      return code.selectEndpoints(service, giver, pods, objects.rules.policies)
    })
  }

  #pods(): readonly ServicePod[] {
    return [...this.#env.workers.all()].flatMap(({ ref: { uid }, state }): ServicePod[] => {
      const { pod, record, observed, stage } = state
      if (stage === 'stopped' || stage === 'gone') return []
      const status = this.#env.statuses.findPublished(uid)?.status
      const ready = status?.conditions.find(({ type }) => type === 'Ready') ?? record.conditions['Ready']
      const own = pod.spec.hostNetwork ? this.#env.hostIps() : (observed.sandboxes[0]?.ips ?? [])
      return [
        {
          uid,
          pod,
          source: record.source,
          ips: status === undefined ? own : (status.podIPs ?? []).map(({ ip }) => ip),
          isReady: ready?.status === 'True',
          isTerminating: record.ending !== undefined,
          isOver: status?.phase === 'Succeeded' || status?.phase === 'Failed' || record.failed !== undefined,
        },
      ]
    })
  }
}

/** Whether the change of a pod may change what is behind a Service. */
function concernsServices({ type, object, previous }: ResourceChange<PodObject>): boolean {
  if (type === 'DELETED' || previous === undefined) return true
  const factsOf = ({ metadata, status }: PodObject) => [
    status.phase,
    status.podIPs,
    status.conditions.find(({ type: condition }) => condition === 'Ready')?.status,
    metadata.deletionTimestamp === undefined,
    metadata.labels,
  ]
  return !sameData(factsOf(object), factsOf(previous))
}
