import type { JsonObject } from '../../../src/base/json.ts'
import { sameData } from '../../../src/base/json.ts'
import type { OrphanCollector } from '../../../src/decide/node/plan-orphans.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { completeConfig } from '../../../src/config/options.ts'
import type { PoddConfig } from '../../../src/config/options.ts'
import type { LogFields } from '../../../src/base/logger.ts'
import { computePodActions } from '../../../src/decide/plan/compute-pod-actions.ts'
import { planToJson } from '../../../src/decide/plan/facts-json.ts'
import { CriError } from '../../../src/runtime/cri-runtime.ts'
import { MakingCalls } from '../../../src/control/runtime/runtime-access.ts'
import { RuntimePulse } from '../../../src/control/runtime/runtime-watch.ts'
import { createHooks } from '../../../src/control/pod/hooks.ts'
import { ObjectStore } from '../../../src/control/serving/object-store.ts'
import type { AdmissionRules } from '../../../src/control/desired/pod-admission.ts'
import type { Eviction } from '../../../src/control/pod/worker.ts'
import { PodSystem } from '../../../src/control/pod-system.ts'
import type { PressureMeter } from '../../../src/control/node/measure-pods.ts'
import type { SystemEnv } from '../../../src/control/loops.ts'
import type { NodeSetup } from '../../../src/control/node/node-work.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import { openRules } from '../../support/object-rules.ts'
import { defaultContainerPolicy } from '../../../src/decide/node/plan-container-garbage.ts'
import type { PodHost } from '../../../src/control/pod/host.ts'
import type {
  ObjectDocument,
  PodDocument,
  SourceName,
  SourceSnapshot,
} from '../../../src/pod/objects/document.ts'
import type { ContainerId, PodUid } from '../../../src/pod/values/ids.ts'
import type { PodObject } from '../../../src/api/resource.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { NodeEvent, PodEvent } from '../../../src/pod/state/pod-event.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import type { Probe } from '../../../src/pod/schema/container-schema.ts'
import type { ContainerStatus } from '../../../src/pod/state/status.ts'
import type { ProbeOutcome } from '../../../src/probes/probe-outcome.ts'
import type { ObjectKey } from '../../../src/pod/objects/local-object.ts'
import type { ObjectRules } from '../../../src/decide/sources/merge-snapshots.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { HostShutdown } from '../../../src/host/shutdown.ts'
import { noCredentials, plainPodHost } from '../../support/plain-pod-host.ts'
import { factsFromLog } from '../../support/pod-builders.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { MemoryRecords, MemoryRevisions } from './memory-records.ts'

/** A manifest with one container `main` of image `app:1`, changed where a test cares. */
export function podManifest(name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'main', image: 'app:1' }], ...spec },
  }
}

/** One container with a port on the host. */
export function onHostPort(hostPort: number): JsonObject {
  return { containers: [{ name: 'main', image: 'app:1', ports: [{ containerPort: 80, hostPort }] }] }
}

export interface PodRigOptions {
  readonly sources?: readonly SourceName[]
  /** Over the defaults of the config; pulls aren't limited. */
  readonly settings?: Partial<PoddConfig>
  readonly admission?: AdmissionRules
  /** Which objects count, and for whose pods. */
  readonly objectRules?: ObjectRules
  /** Images are collected, on a disk of this capacity. */
  readonly imageDiskBytes?: number
  /** What the host has of memory, disks and the like; left out, no pod is evicted. */
  readonly observe?: PressureMeter['observe']
}

/**
 * The loops of podd over a runtime in memory, records in memory and a clock that the test moves. podd can be
 * killed and started again over the same runtime and records.
 */
export class PodRig {
  readonly clock = new ManualClock()
  readonly fake = new FakeRuntime({ clock: this.clock, images: ['app:1', 'app:2', 'side:1'] })
  readonly objects: ObjectStore
  /** Of claims whose data is on disk. */
  claimOwners: ReadonlyMap<ObjectKey, SourceName> = new Map()
  readonly records = new MemoryRecords()
  readonly revisions = new MemoryRevisions()
  /** What the host says of itself; undefined where there is nobody to ask. */
  hostState: 'running' | 'stopping' | 'busy' | 'silent' | undefined
  /** What stands in the run directory of a drain. */
  isMarkedDrained = false
  /** What Jobs have done, as it is on the disk. */
  jobs: string | undefined
  jobsFailure: Error | undefined
  /** Why that can't be read. */
  jobsUnread: Error | undefined
  readonly events: PodEvent[] = []
  readonly nodeEvents: NodeEvent[] = []
  /** What is available on the disk that holds the images, beside what was made by removing some. */
  availableBytes = 0
  /** The image that the runtime makes sandboxes of, where it is known. */
  sandboxImage: string | undefined
  /** What an earlier podd knew of images. */
  imageUses: string | undefined
  /** What probes find; success unless told. */
  probe: (containerId: string, probe: Probe, podIps: readonly string[]) => ProbeOutcome = () => ({
    result: 'success',
    output: '',
  })
  /** Overrides of what acting for a pod needs of the host. */
  host: Partial<PodHost> = {}
  /** Set where the runtime is podd's own. */
  onRuntimeSilence: ((silentMs: number) => void) | undefined
  readonly failures: unknown[] = []
  /** How many decisions were logged, and the newest of these lines. */
  decisions = 0
  decision = ''
  /** By container name: the newest log that is there before podd makes one. */
  readonly logged = new Map<string, number | undefined>()
  /** The containers whose logs were linked, and those whose links were kept. */
  readonly linked: ContainerId[] = []
  readonly retained: ContainerId[] = []
  linkFailure: Error | undefined
  /** What containers write as their termination message. */
  lastWords = ''
  /** The end of each container's log. */
  lastLines = ''
  /** The pods whose volumes were made or brought up to date. */
  readonly prepared: PodUid[] = []
  /** Objects that the directory holds beside its pods. */
  given: readonly ObjectDocument[] = []
  /** What the URL gives beside its pods. */
  givenByUrl: readonly ObjectDocument[] = []
  /** The runtime takes no commands for containers. */
  isExecAway = false
  /** The host's addresses. */
  hostIps: readonly string[] = ['192.0.2.1']
  /** Has podd look at what follows the host's network. */
  hint: () => void = () => {}
  /** Those that have a directory when podd begins. */
  podDirectories: readonly PodUid[] = []
  /** What a new version of a pod is asked before it takes the old one's place. */
  checkHostPaths: (pod: Pod) => Promise<void> = async () => {}
  /** When the runtime may be asked; at once unless told. */
  opened: Promise<void> = Promise.resolve()
  /** Those whose volumes were taken down. */
  readonly tornDown: PodUid[] = []
  /** What podd shows, of all kinds. */
  shown = createShown(0)
  /** What the next podd is configured with. */
  sources: readonly SourceName[]
  settings: Partial<PoddConfig>
  readonly #options: PodRigOptions
  #documents = new Map<SourceName, PodDocument[]>()
  #system: PodSystem | undefined
  #stop = new AbortController()
  #running: Promise<void> | undefined

  constructor(options: PodRigOptions = {}) {
    this.#options = options
    this.sources = options.sources ?? ['file']
    this.settings = options.settings ?? {}
    this.objects = new ObjectStore(options.objectRules ?? plainObjectRules)
  }

  get system(): PodSystem {
    if (this.#system === undefined) throw new Error('podd does not run')
    return this.#system
  }

  /** Starts podd, lets it see the runtime and gives it the manifests there are. */
  async start(): Promise<void> {
    this.boot()
    for (const source of this.sources) this.system.offerSnapshot(this.snapshot(source))
    await this.settle()
  }

  /** Starts podd without telling it of any manifest. */
  boot(): void {
    this.#stop = new AbortController()
    this.#system = new PodSystem(this.#systemEnv())
    this.#running = this.#system.run(this.#stop.signal, this.opened).catch((error: unknown) => {
      this.failures.push(error)
    })
  }

  /** Each decision follows again from its facts as they are logged. */
  #replay({ facts, plan }: LogFields): void {
    if (facts === undefined) return
    this.decisions += 1
    this.decision = JSON.stringify({ facts, plan })
    const logged: unknown = JSON.parse(JSON.stringify(plan))
    const replayed = planToJson(computePodActions(factsFromLog(JSON.stringify(facts))))
    if (!sameData(replayed, logged)) this.failures.push({ decision: this.decision, replayed })
  }

  /** Whether there is such a pod, that has not ended and isn't ending already. */
  evict(uid: PodUid, eviction: Eviction): boolean {
    return this.system.findPod(uid)?.evict(eviction) ?? false
  }

  /** SIGTERM: podd lets go of the pods. */
  async terminate(): Promise<void> {
    this.#stop.abort(new Error('stopped'))
    let ended = false
    void this.#running?.then(() => (ended = true))
    await this.settle()
    if (!ended) await this.clock.advance(5000)
    await this.#running
    this.#system = undefined
  }

  /** SIGKILL: nothing is written or called any more, whatever was in flight. */
  async kill(): Promise<void> {
    const failures = [this.records.failure, this.revisions.failure]
    this.records.failure = new Error('podd was killed')
    this.revisions.failure = this.records.failure
    await this.terminate()
    this.records.failure = failures[0]
    this.revisions.failure = failures[1]
  }

  /** Puts manifests where the source finds them, one file each, and shows podd. */
  async apply(...manifests: readonly JsonObject[]): Promise<void> {
    await this.put('file', ...manifests)
  }

  async put(source: SourceName, ...manifests: readonly JsonObject[]): Promise<void> {
    const documents = this.#documents.get(source) ?? []
    for (const manifest of manifests) {
      const document = toDocument(source, manifest)
      const at = documents.findIndex(({ place }) => place.path === document.place.path)
      if (at === -1) documents.push(document)
      else documents[at] = document
    }
    this.#documents.set(source, documents)
    await this.offer(source)
  }

  async remove(name: string, source: SourceName = 'file'): Promise<void> {
    const documents = this.#documents.get(source) ?? []
    this.#documents.set(
      source,
      documents.filter(({ pod }) => pod.metadata.name !== name),
    )
    await this.offer(source)
  }

  /** Only these are left of the directory. */
  async replaceAll(...manifests: readonly JsonObject[]): Promise<void> {
    this.#documents.set('file', [])
    await this.apply(...manifests)
  }

  /** Shows podd what the source holds, changed or not. */
  async offer(source: SourceName = 'file'): Promise<void> {
    this.#system?.offerSnapshot(this.snapshot(source))
    await this.settle()
  }

  snapshot(source: SourceName, ready = true): SourceSnapshot {
    const pods = [...(this.#documents.get(source) ?? [])]
    const objects = source === 'file' ? this.given : this.givenByUrl
    return { source, location: `/${source}`, ready, isAnswer: ready, pods, objects, problems: [] }
  }

  /** Lets everything happen that takes no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await this.clock.settle()
  }

  /** All pods of this name that podd shows, oldest first. */
  pods(name: string): readonly PodObject[] {
    return this.system.statuses.list().filter(({ metadata }) => metadata.name === name)
  }

  /** The one pod of this name; throws when there is none or several. */
  pod(name: string): PodObject {
    const [pod, ...more] = this.pods(name)
    if (pod === undefined || more.length > 0)
      throw new Error(`there are ${more.length} pods too many of ${name}`)
    return pod
  }

  container(podName: string, name = 'main'): ContainerStatus {
    const { containerStatuses = [], initContainerStatuses = [] } = this.pod(podName).status
    const found = [...initContainerStatuses, ...containerStatuses].find((status) => status.name === name)
    if (found === undefined) throw new Error(`${podName} has no container ${name}`)
    return found
  }

  condition(podName: string, type: string): string | undefined {
    return this.pod(podName).status.conditions.find((condition) => condition.type === type)?.status
  }

  /** The reasons of a pod's events, in their order. */
  reasons(podName: string): readonly string[] {
    return this.events.filter(({ pod }) => pod.name === podName).map(({ reason }) => reason)
  }

  /** Names of containers that run, with their pod's: `web/main`. */
  running(): readonly string[] {
    return [...this.fake.world.containers.values()]
      .filter(({ state }) => state === 'CONTAINER_RUNNING')
      .map(({ config, sandbox }) => `${sandbox.config.metadata?.name}/${config.metadata?.name}`)
      .sort()
  }

  /** What the runtime holds is all of the pods that run: no remains. */
  isEmpty(): boolean {
    const { containers, sandboxes } = this.fake.world
    return containers.size === 0 && sandboxes.size === 0 && this.records.saved.size === 0
  }

  #podDirectoryCollector(): OrphanCollector {
    const isOrphan = (uid: PodUid): boolean => !this.system.knowsPod(uid)
    return {
      kind: 'volumes',
      list: async () =>
        this.podDirectories.filter(isOrphan).map((id) => ({ kind: 'volumes', id, message: 'lost' })),
      remove: async ({ id }) => {
        this.tornDown.push(id)
        this.podDirectories = this.podDirectories.filter((uid) => uid !== id)
        return true
      },
    }
  }

  #systemEnv(): SystemEnv {
    const { clock, fake } = this
    const settings = { ...completeConfig({}), registryPullQps: 0, ...this.settings }
    return {
      host: this.#host(),
      objects: this.objects,
      runtime: fake.runtime,
      pulse: new RuntimePulse(clock, () => fake.runtime.version({})),
      onRuntimeSilence: this.onRuntimeSilence,
      images: fake.images,
      credentials: noCredentials,
      pullContent: undefined,
      archives: { problems: () => [], recheck: () => {}, run: async () => {} },
      runtimeEvents: fake.events,
      records: this.records,
      revisions: this.revisions,
      batchFile: {
        path: '/jobs.json',
        read: async () => {
          if (this.jobsUnread !== undefined) throw this.jobsUnread
          return this.jobs
        },
        write: async (text) => {
          if (this.jobsFailure !== undefined) throw this.jobsFailure
          this.jobs = text
        },
      },
      events: {
        record: (event) => void this.events.push(event),
        recordNode: (event) => void this.nodeEvents.push(event),
        reviewTimes: () => {},
      },
      shown: (this.shown = createShown(clock.wallMs())),
      presentPod: undefined,
      runProbe: async (probe, { containerId, podIps }) => this.probe(containerId, probe, podIps),
      clock,
      random: () => 0,
      logger: { ...silentLogger, debug: (fields) => this.#replay(fields) },
      sources: this.sources,
      runtimeName: () => 'containerd',
      settings,
      admission: this.#options.admission ?? openRules({ maxPods: settings.maxPods }),
      containerPolicy: defaultContainerPolicy,
      node: this.#node(),
    }
  }

  #node(): NodeSetup {
    return {
      imageGarbage: this.#imageGarbage(),
      drainMark: {
        read: () => this.isMarkedDrained,
        write: async () => void (this.isMarkedDrained = true),
        remove: async () => void (this.isMarkedDrained = false),
      },
      pressure: {
        observe: this.#options.observe ?? (async () => new Map()),
        diskOf: async () => 'both',
        listContainerStats: async () => [],
        listPodStats: async () => [],
        podMemoryBytes: () => undefined,
        logDirectory: () => '/logs',
        volumeDirectories: () => [],
        measureDirectory: async () => ({ bytes: 0, inodes: 0 }),
      },
      logSpace: {
        measure: async () => ({ files: [], kept: [] }),
        remove: async () => {},
        totalBytes: async () => undefined,
        keptMs: 0,
      },
      orphans: {
        collectors: [this.#podDirectoryCollector()],
        makingSinceMs: () => undefined,
        disturbances: () => 0,
      },
      jobs: [],
      logRotation: undefined,
    }
  }

  #imageGarbage(): NodeSetup['imageGarbage'] {
    const { imageDiskBytes: capacityBytes } = this.#options
    const { fake } = this
    const isCollected = capacityBytes !== undefined
    return {
      host: {
        listImages: async () => (await fake.images.listImages({})).images,
        listContainers: async () => (await fake.runtime.listContainers({})).containers,
        removeImage: async (id) => {
          const sizeBytes = fake.world.images.get(id)?.sizeBytes ?? 0
          await fake.images.removeImage({ image: { image: id } })
          this.availableBytes += sizeBytes
        },
        imagesPath: async () => (isCollected ? '/images' : undefined),
        readDisk: async () => ({ capacityBytes: capacityBytes ?? 0, availableBytes: this.availableBytes }),
        sandboxImage: async () => this.sandboxImage,
      },
      policy: {
        highThresholdPercent: isCollected ? 85 : 100,
        lowThresholdPercent: 80,
        minimumAgeMs: 120_000,
        maximumAgeMs: 0,
      },
      usesFile: {
        path: '/image-uses.json',
        read: async () => this.imageUses,
        write: async (text) => void (this.imageUses = text),
      },
    }
  }

  async #isHostStopping(): Promise<boolean> {
    if (this.hostState === 'silent') throw new Error('no answer')
    if (this.hostState === 'busy') await new Promise(() => undefined)
    return this.hostState === 'stopping'
  }

  #host(): PodHost {
    const { clock, fake } = this
    const plain = plainPodHost(this.objects)
    return {
      ...plain,
      calls: new MakingCalls(fake.runtime, { clock, limit: 64 }).runtime,
      volumes: {
        ...plain.volumes,
        prepare: async (input) => {
          this.prepared.push(input.uid)
          return await plain.volumes.prepare(input)
        },
        readTerminationLog: async () => this.lastWords,
        listClaimOwners: async () => this.claimOwners,
        checkHostPaths: (pod) => this.checkHostPaths(pod),
        teardown: async (uid) => void this.tornDown.push(uid),
      },
      logs: {
        ...plain.logs,
        prepare: async (_ref, container) => !this.logged.has(container),
        newestInstance: async (_ref, container) => this.logged.get(container),
        tail: async () => this.lastLines,
        link: async (_ref, { id }) => {
          if (this.linkFailure !== undefined) throw this.linkFailure
          this.linked.push(id)
          return true
        },
        retainLinks: async (_ref, containers) => void this.retained.push(...containers.map(({ id }) => id)),
      },
      hooks: createHooks(
        (request, options) => {
          if (this.isExecAway) return Promise.reject(new CriError('RUNTIME_UNAVAILABLE', 'no connection'))
          return fake.runtime.execSync(request, options)
        },
        () => undefined,
        { record: (event) => void this.events.push(event) },
        clock,
      ),
      hostIps: () => this.hostIps,
      shutdown: new HostShutdown(
        this.hostState === undefined ? undefined : () => this.#isHostStopping(),
        clock,
        silentLogger,
      ),
      followResolver: async (onHint) => {
        this.hint = onHint
      },
      ...this.host,
    }
  }
}

/** A pod of the API has the identity that the API gave it. */
export function toDocument(source: SourceName, manifest: JsonObject): PodDocument {
  const pod = podFromManifest(manifest)
  const { name } = pod.metadata
  const kept = { uid: `uid-of-${name}`, createdAtMs: Date.parse('2026-01-01T00:00:00Z'), metadata: {} }
  const place = { path: `/${source}/${name}.yaml`, line: 1 }
  return { pod, manifest, place, ...(source === 'api' && { kept }) }
}
