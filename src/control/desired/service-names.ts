import type { EndpointSliceObject } from '../../api/cluster-objects.ts'
import type { PodObject, ResourceChange } from '../../api/resource.ts'
import { formatTime, mapInTurns, PacedWork, TurnPace } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { ServiceEndpoints, ServicePod } from '../../decide/services/service-names.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { Service } from '../../pod/objects/object-kinds.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import type { PodUid, SourceName } from '../../pod/values/ids.ts'
import { servicesSection } from '../../translate/network.ts'
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
  /** Those that are configured. */
  readonly sources: readonly SourceName[]
  /** Whether it isn't known yet which objects this source gives. */
  readonly awaitsObjects: (source: SourceName) => boolean
  readonly clock: Clock
  readonly logger: Logger
}

const loadCode = () => import('../../decide/services/service-names.ts')
type Code = Awaited<ReturnType<typeof loadCode>>

/** The pods behind a Service that this source gives. */
type SelectEndpoints = (service: Service, giver: SourceName) => ServiceEndpoints

/** After how long a hosts file that could not be written is tried again. */
const retryMs = 5000
/** For how long after podd's start containers wait for sources that have not spoken. */
const patienceMs = 15_000

/**
 * The names of Services in the hosts files of pods. The files are written in place as soon as a pod behind a Service becomes
 * ready or no longer is, and stay while podd is down. Nothing is loaded or followed before there is a Service.
 */
export class ServiceNames {
  readonly #env: NamesEnv
  #code: Promise<Code> | undefined
  #loaded: Code | undefined
  #problems: readonly Problem[] = []
  /** The text that each file is known to have, or gets now. */
  readonly #written = new Map<PodUid, string>()
  /** Of all hosts files. */
  readonly #reviews: PacedWork
  /** Set while a file could not be written. */
  #retry: Timer | undefined
  #hasStopped = false
  /** Pods whose containers wait for their Services, while `#isPatient`. */
  readonly #waiting = new Set<PodUid>()
  readonly #patience: Timer
  #isPatient = true

  constructor(env: NamesEnv) {
    this.#env = env
    this.#patience = env.clock.startTimer(patienceMs, () => {
      this.#isPatient = false
      this.#wakeWaiting()
    })
    this.#reviews = new PacedWork(env.clock, () => this.#tryToReview())
    env.objects.follow(() => this.#takeObjects())
  }

  /** No file is written any more. */
  stop(): void {
    this.#hasStopped = true
    this.#reviews.stop()
    this.#retry?.cancel()
    this.#patience.cancel()
  }

  problems(): readonly Problem[] {
    return this.#problems
  }

  /** What the pod's hosts file has of Services now; undefined while it isn't known which there are. */
  async hostsSection(pod: Pod, source: SourceName): Promise<string | undefined> {
    if (!this.#knowsObjectsFor(source)) return undefined
    const code = await this.#code
    return code === undefined
      ? ''
      : servicesSection(code.computeServiceNames(pod, this.#seenNow(code, source)))
  }

  async variables(pod: Pod, source: SourceName): Promise<ReadonlyMap<string, string>> {
    const code = await this.#code
    return code === undefined ? new Map() : code.computeServiceVariables(pod, this.#seenNow(code, source))
  }

  /**
   * Why no container of a pod that had variables of Services starts yet: it isn't known which there are (as
   * `pkg/kubelet/kubelet_pods.go`, makeEnvironmentVariables, 1.36). That is not awaited for long, as a server that doesn't
   * answer must not keep its pods from starting again. The pod is woken when it is over.
   */
  startBlock(source: SourceName, uid: PodUid): string | undefined {
    if (!this.#isPatient || this.#knowsObjectsFor(source)) return undefined
    this.#waiting.add(uid)
    return 'its Services are not known yet, as its source has not been read since podd started'
  }

  #wakeWaiting(): void {
    for (const uid of this.#waiting) {
      const worker = this.#env.workers.get(uid)
      if (worker !== undefined && this.#isPatient && !this.#knowsObjectsFor(worker.state.record.source))
        continue
      this.#waiting.delete(uid)
      worker?.wake()
    }
  }

  /** The pod's hosts file was written for a start of a container, by what was known when that began. */
  noteStart(uid: PodUid): void {
    this.#written.delete(uid)
    this.review()
  }

  /** Brings all hosts files up to date, soon; never throws. Without Services there is nothing to do. */
  review(): void {
    this.#wakeWaiting()
    if (this.#loaded !== undefined) this.#reviews.ask()
  }

  #takeObjects(): void {
    const { objects, statuses, logger } = this.#env
    if (this.#code !== undefined) return this.review()
    if (!objects.documents().some(({ document }) => document.object.kind === 'Service')) return
    this.#code = loadCode()
    this.#code.then(
      (code) => {
        this.#loaded = code
        statuses.subscribe((change) => {
          if (concernsServices(change)) this.review()
        })
        this.review()
      },
      (error: unknown) => logger.error({ err: error }, 'cannot load what makes the names of Services'),
    )
  }

  async #tryToReview(): Promise<void> {
    const { state, logger } = this.#env
    // Before that it is not known what runs, and the files stay as an earlier podd has left them.
    if (this.#loaded === undefined || !state.isListed) return
    try {
      await this.#reviewAll(this.#loaded)
    } catch (error) {
      logger.error({ err: error }, 'cannot bring the names of Services up to date')
    }
  }

  /** In turns: there may be thousands of pods. What changes meanwhile counts at the next review. */
  async #reviewAll(code: Code): Promise<void> {
    const { workers, clock } = this.#env
    this.#retry?.cancel()
    const pods = await mapInTurns(clock, workers.all(), (worker) => this.#podOf(worker))
    const select = this.#selector(code, pods)
    await this.#showSlices(code, select)
    const seen = new Map<SourceName, readonly ServiceEndpoints[] | undefined>()
    // The pods of a source and a namespace find the same names.
    const sections = new Map<string, string>()
    const pace = new TurnPace(clock)
    let hasFailed = false
    for (const worker of workers.all()) {
      if (pace.isOver) await pace.next()
      if (this.#hasStopped) return
      const { source } = worker.state.record
      if (!seen.has(source))
        seen.set(source, this.#knowsObjectsFor(source) ? this.#seenBy(source, select) : undefined)
      const services = seen.get(source)
      if (services === undefined || !this.#needsNames(worker, code)) continue
      const { pod } = worker.state
      const key = `${source} ${pod.metadata.namespace}`
      const section = sections.get(key) ?? servicesSection(code.computeServiceNames(pod, services))
      sections.set(key, section)
      if (!(await this.#refresh(worker, section))) hasFailed = true
    }
    for (const uid of this.#written.keys()) if (workers.get(uid) === undefined) this.#written.delete(uid)
    if (hasFailed && !this.#hasStopped) this.#retry = clock.startTimer(retryMs, () => this.review())
  }

  #needsNames({ state: { pod, observed, stage } }: PodWorker, code: Code): boolean {
    if (stage === 'stopped' || stage === 'gone' || !code.findsServices(pod)) return false
    return pod.spec.hostNetwork || (observed.sandboxes[0]?.ips ?? []).length > 0
  }

  /** Whether its hosts file is up to date, as far as it can be; false where it could not be written. */
  async #refresh(worker: PodWorker, section: string): Promise<boolean> {
    const { volumes, logger } = this.#env
    const { pod, observed } = worker.state
    const { uid, name } = worker.ref
    const text = await composeHostsFile(this.#env, pod, observed.sandboxes[0]?.ips ?? [], section)
    if (this.#written.get(uid) === text) return true
    // Known from now on, unless a container starts meanwhile: that may write an older text.
    this.#written.set(uid, text)
    try {
      // A pod without a file gets one with its next container.
      if (!(await volumes.refreshHostsFile(uid, text))) this.#written.delete(uid)
      return true
    } catch (error) {
      this.#written.delete(uid)
      logger.warn({ pod: name, uid, err: error }, 'cannot write the hosts file of the pod')
      return false
    }
  }

  /** Whether it is known which Services the pods of this source see: until then none has gone. */
  #knowsObjectsFor(source: SourceName): boolean {
    const { objects, sources, awaitsObjects } = this.#env
    const read = objects.rules.policies[kindOfSource(source)].readsObjectsOf
    return !sources.some(
      (each) => (each === source || read.includes(kindOfSource(each))) && awaitsObjects(each),
    )
  }

  async #showSlices(code: Code, select: SelectEndpoints): Promise<void> {
    const { objects, shown, hostName, clock } = this.#env
    const slices = new Map<string, EndpointSliceObject>()
    const problems: Problem[] = []
    await mapInTurns(clock, objects.documents(), ({ source, document }) => {
      const { object, place, kept } = document
      if (object.kind !== 'Service') return
      const endpoints = select(object, source)
      problems.push(...code.listPortProblems(endpoints, place))
      const serviceUid = toObjectMeta(object, { source, place, kept }).uid
      for (const slice of code.computeEndpointSlices(endpoints, { serviceUid, nodeName: hostName }))
        slices.set(slice.metadata.uid, this.#dated(slice))
    })
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

  /** The Services that the pods of a source see now, with the pods behind them. */
  #seenNow(code: Code, source: SourceName): readonly ServiceEndpoints[] {
    const pods = [...this.#env.workers.all()].map((worker) => this.#podOf(worker))
    return this.#seenBy(source, this.#selector(code, pods))
  }

  #selector(code: Code, pods: readonly (ServicePod | undefined)[]): SelectEndpoints {
    const { policies } = this.#env.objects.rules
    const present = pods.filter((pod) => pod !== undefined)
    return (service, giver) => code.selectEndpoints(service, giver, present, policies)
  }

  #seenBy(source: SourceName, select: SelectEndpoints): readonly ServiceEndpoints[] {
    const reader = this.#env.objects.seenBy(source)
    return reader.list('Service').map((service) => {
      const { namespace, name } = service.metadata
      return select(service, reader.sourceOf(`Service/${namespace}/${name}`) ?? source)
    })
  }

  /** Undefined where it has stopped. */
  #podOf({ ref: { uid }, state }: PodWorker): ServicePod | undefined {
    const { pod, record, observed, stage } = state
    if (stage === 'stopped' || stage === 'gone') return undefined
    const status = this.#env.statuses.findPublished(uid)?.status
    const ready = status?.conditions.find(({ type }) => type === 'Ready') ?? record.conditions['Ready']
    const own = pod.spec.hostNetwork ? this.#env.hostIps() : (observed.sandboxes[0]?.ips ?? [])
    return {
      uid,
      pod,
      source: record.source,
      ips: status === undefined ? own : (status.podIPs ?? []).map(({ ip }) => ip),
      isReady: ready?.status === 'True',
      isTerminating: record.ending !== undefined,
      isOver: status?.phase === 'Succeeded' || status?.phase === 'Failed' || record.failed !== undefined,
    }
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
