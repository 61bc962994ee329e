import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppliedReply, SourceObject, UnitObject } from '../../src/api/sources.ts'
import type { RemovedImage, ArchiveReport, GarbageReport } from '../../src/api/images.ts'
import type { ProbeReportObject } from '../../src/api/usage.ts'
import type { ResourceObject } from '../../src/api/resource.ts'
import type { DaemonStatus, DrainReply, ImageEntry } from '../../src/api/routes.ts'
import { PoddError } from '../../src/base/errors.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { judgeHealth } from '../../src/decide/node/judge-health.ts'
import type { HealthFacts } from '../../src/decide/node/judge-health.ts'
import type { ApiServer } from '../../src/server/api-server.ts'
import { startApiServer } from '../../src/server/api-server.ts'
import type { NetworkOptions } from '../../src/server/network-api.ts'
import type { NodeStats, PodCounts, RuntimeMetrics, RuntimeOperation } from '../../src/pod/state/usage.ts'
import type { PodReach, ApiReaders, PageReader, ResourceReader } from '../../src/server/requests/readers.ts'
import type { ResourceStore } from '../../src/control/serving/resource-store.ts'
import { createShown } from '../../src/control/serving/resource-store.ts'

/** The objects of one kind, in a store like the daemon's, and how many watch them. */
class KindRig<T extends ResourceObject> {
  readonly reader: ResourceReader<T>
  readonly #store: ResourceStore<T>
  /** How many watches there were. */
  subscriptions = 0
  #watchers = 0

  constructor(store: ResourceStore<T>) {
    this.#store = store
    this.reader = {
      get revision() {
        return store.revision
      },
      list: () => store.list(),
      listAt: (revision) => store.listAt(revision),
      changesAfter: (revision) => store.changesAfter(revision),
      subscribe: (listener) => {
        this.#watchers += 1
        this.subscriptions += 1
        const stop = store.subscribe(listener)
        return () => {
          this.#watchers -= 1
          stop()
        }
      },
    }
  }

  get watchers(): number {
    return this.#watchers
  }

  list(): readonly T[] {
    return this.#store.list()
  }

  put(object: T): void {
    const { name, uid } = object.metadata
    this.#store.put(`${name} ${uid}`, object)
  }

  remove(name: string): void {
    for (const { metadata } of this.#store.list())
      if (metadata.name === name) this.#store.remove(`${name} ${metadata.uid}`)
  }
}

export interface Answer {
  readonly code: number
  readonly text: string
  readonly contentType: string | undefined
}

/** An idle host without pods. */
export const plainStats: NodeStats = {
  atMs: 1_767_225_660_000,
  host: {
    cpuNanoSeconds: 12.5e9,
    cpus: 2,
    bootedAtMs: 1_767_000_000_000,
    memoryCapacityBytes: 1000,
    memoryAvailableBytes: 600,
    memoryUsageBytes: 700,
    memoryWorkingSetBytes: 400,
    swapUsedBytes: 0,
    processes: 100,
    maxProcesses: 32_768,
    rootFs: {
      path: '/var/lib/podd',
      capacityBytes: 10_000,
      availableBytes: 4000,
      inodes: 100,
      inodesFree: 90,
    },
    imageFs: undefined,
  },
  pods: [],
}

/** A real API server on a socket in a directory of its own, over stores that the test fills. */
export class ApiRig {
  readonly shown = createShown(Date.now())
  readonly pods = new KindRig(this.shown.pods)
  readonly events = new KindRig(this.shown.events)
  readonly configmaps = new KindRig(this.shown.configmaps)
  readonly secrets = new KindRig(this.shown.secrets)
  readonly claims = new KindRig(this.shown.persistentvolumeclaims)
  readonly namespaces = new KindRig(this.shown.namespaces)
  readonly nodes = new KindRig(this.shown.nodes)
  readonly deployments = new KindRig(this.shown.deployments)
  readonly statefulsets = new KindRig(this.shown.statefulsets)
  readonly jobs = new KindRig(this.shown.jobs)
  readonly cronjobs = new KindRig(this.shown.cronjobs)
  readonly replicasets = new KindRig(this.shown.replicasets)
  readonly images: ImageEntry[] = []
  archives: readonly ArchiveReport[] = []
  /** What a collection of garbage comes to. */
  collect: (options: { dryRun: boolean; young: boolean }) => GarbageReport = ({ dryRun }) => ({
    dryRun,
    images: {
      disk: { path: '/images', capacityBytes: 1000, availableBytes: 500, usedPercent: 50 },
      removed: [],
      failed: [],
      kept: [],
      freedBytes: 0,
    },
    items: [],
  })
  /** What was pinned and unpinned. */
  readonly pins: string[] = []
  readonly imported: string[] = []
  /** When pods can be listed. */
  shownAt: Promise<void> = Promise.resolve()
  /** Of every pod. */
  probes: readonly ProbeReportObject[] = []
  importImages: (path: string) => Promise<readonly string[]> = async (path) => {
    this.imported.push(path)
    return ['localhost/web:1']
  }
  pullImage: (
    image: string,
    onProgress: (progress: { doneBytes: number; totalBytes: number | undefined }) => void,
  ) => Promise<{ id: string; sizeBytes: number }> = async () => ({ id: 'sha256:1', sizeBytes: 2_500_000 })
  exportImages: (images: readonly string[]) => AsyncIterable<Uint8Array> = async function* (images) {
    yield Buffer.from(`archive of ${images.join(' ')}`)
  }
  removeImage: (image: string, force: boolean) => Promise<RemovedImage> = async (image) => {
    const found = this.images.find(({ tags }) => tags.includes(image))
    if (found === undefined) throw new PoddError('IMAGE_NOT_FOUND', `there is no image ${image}`)
    return { id: found.id, names: found.tags, freedBytes: found.sizeBytes }
  }
  reach: PodReach = {
    startCommand: () => Promise.reject(new Error('no commands here')),
    attach: () => Promise.reject(new Error('no containers here')),
    dial: () => Promise.reject(new Error('no ports here')),
    checkpoint: () => Promise.reject(new Error('no checkpoints here')),
    restart: async () => [],
    usage: async () => [],
    nodeUsage: async () => ({ atMs: 0, windowMs: 1000, cpuNanoCores: 250_000_000, memoryBytes: 1024 ** 3 }),
  }
  status: DaemonStatus = {
    version: '0.1.0',
    pid: 42,
    startedAt: '2026-01-01T00:00:00Z',
    runtime: { endpoint: 'embedded', healthy: true, name: 'containerd', version: '2.1.0', calls: {} },
    sources: [{ source: 'file', path: '/etc/pods', ready: true, pods: 0 }],
    problems: [],
    crashes: [],
    jobs: [],
  }
  /** What is measured of the host and its pods. */
  stats: NodeStats = plainStats
  runtimeMetrics: RuntimeMetrics = { families: [], failed: false }
  counts: PodCounts = {
    terminations: [],
    starts: [],
    failedStarts: [],
    podStarts: { buckets: [], count: 0, sum: 0 },
    passes: [],
  }
  operations: readonly RuntimeOperation[] = []
  /** What podd knows of its own work. */
  health: HealthFacts = { nowMs: 0, relistPeriodMs: 60_000, isRuntimeDown: false, isNetworkDown: false }
  applied: AppliedReply = { pods: [], objects: [], podNameSuffix: '' }
  sources: readonly SourceObject[] = []
  units: readonly UnitObject[] = []
  /** Which units were to go back, and where to. */
  readonly rollbacks: string[] = []
  /** The names of those that are held. */
  readonly held = new Set<string>()
  drained: DrainReply = { ended: 2, stuck: [] }
  undone = 0
  restarts = 0
  /** Undefined: there is no status page. */
  page: PageReader | undefined
  readonly directory: string
  readonly socketPath: string
  readonly podLogsDir: string
  readonly #clock: Clock
  #server: ApiServer | undefined

  constructor(directory: string, clock: Clock = systemClock) {
    this.directory = directory
    this.#clock = clock
    this.socketPath = join(directory, 'podd.sock')
    this.podLogsDir = join(directory, 'logs')
  }

  static async start(clock?: Clock): Promise<ApiRig> {
    const rig = new ApiRig(await mkdtemp(join(tmpdir(), 'podd-api-')), clock)
    await rig.listen()
    return rig
  }

  renewSocket(): Promise<boolean> {
    return this.#server?.renewSocket() ?? Promise.resolve(false)
  }

  readers(): ApiReaders {
    return {
      resources: {
        ...this.shown,
        pods: this.pods.reader,
        events: this.events.reader,
        configmaps: this.configmaps.reader,
        secrets: this.secrets.reader,
        persistentvolumeclaims: this.claims.reader,
        namespaces: this.namespaces.reader,
        nodes: this.nodes.reader,
        deployments: this.deployments.reader,
        statefulsets: this.statefulsets.reader,
        jobs: this.jobs.reader,
        cronjobs: this.cronjobs.reader,
        replicasets: this.replicasets.reader,
      },
      whenListed: (resource) => (resource === 'pods' ? this.shownAt : Promise.resolve()),
      status: { daemonStatus: () => this.status, applied: () => this.applied },
      sources: {
        list: () => this.sources,
        hold: async (name) => !this.held.has(name) && this.held.add(name).has(name),
        resume: async (name) => this.held.delete(name),
      },
      units: {
        list: () => this.units,
        rollBack: async (name, to) => {
          if (to === 9)
            throw new PoddError('UPDATE_REFUSED', `${name}: revision 9 is not kept; there are 1, 2`)
          this.rollbacks.push(`${name} to ${to ?? 'the one before'}`)
          return to ?? 1
        },
        resume: async (name) => {
          this.rollbacks.push(`${name} resumed`)
          return true
        },
      },
      health: { checks: () => judgeHealth(this.health) },
      probes: { listProbes: () => this.probes },
      kubelet: {
        nodeName: 'box',
        config: { maxPods: 110 },
        measure: async () => this.stats,
        runtimeMetrics: async () => this.runtimeMetrics,
        process: () => ({ cpuSeconds: 1.5, residentBytes: 50_000_000, startedAtSeconds: 1_767_225_600 }),
        counts: () => this.counts,
        operations: () => this.operations,
      },
      restart: () => void (this.restarts += 1),
      page: this.page,
      claims: { purgeClaim: async () => {} },
      drain: { run: async () => this.drained, undo: async () => void (this.undone += 1) },
      images: {
        listImages: async ({ users }) =>
          users
            ? this.images.map((image) => Object.assign({ usedBy: ['pod default/web'] }, image))
            : this.images,
        listArchives: () => this.archives,
        importImages: (path, { pin }) => this.importImages(pin ? path : `${path} unpinned`),
        collect: async (options) => this.collect(options),
        pullImage: (image, onProgress) => this.pullImage(image, onProgress),
        exportImages: (images) => this.exportImages(images),
        removeImage: (image, force) => this.removeImage(image, force),
        pinImage: async (image, pinned) => {
          if (!this.images.some(({ tags }) => tags.includes(image)))
            throw new PoddError('IMAGE_NOT_FOUND', `there is no image ${image}`)
          this.pins.push(`${image} ${pinned}`)
        },
      },
      reach: {
        startCommand: (request, signal) => this.reach.startCommand(request, signal),
        checkpoint: (request) => this.reach.checkpoint(request),
        attach: (request, signal) => this.reach.attach(request, signal),
        dial: (uid, port, signal) => this.reach.dial(uid, port, signal),
        restart: (uid, containers) => this.reach.restart(uid, containers),
        usage: (signal) => this.reach.usage(signal),
        nodeUsage: (signal) => this.reach.nodeUsage(signal),
      },
    }
  }

  /** @param network listens over TLS too */
  async listen(network?: NetworkOptions): Promise<void> {
    this.#server = await startApiServer({
      network,
      readOnly: undefined,
      socketPath: this.socketPath,
      podLogsDir: this.podLogsDir,
      readers: this.readers(),
      clock: this.#clock,
      logger: silentLogger,
    })
  }

  async close(graceMs?: number): Promise<void> {
    await this.#server?.close(graceMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0)
    await rm(this.directory, { recursive: true, force: true })
  }

  open(path: string, method = 'GET', headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socketPath, path, method, headers, agent: false }, resolve)
      call.on('error', reject)
      call.end()
    })
  }

  async call(path: string, method = 'GET', headers: Record<string, string> = {}): Promise<Answer> {
    const response = await this.open(path, method, headers)
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    return {
      code: response.statusCode ?? 0,
      text: Buffer.concat(chunks).toString(),
      contentType: response.headers['content-type'],
    }
  }
}
