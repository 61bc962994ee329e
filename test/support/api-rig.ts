import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppliedReply } from '../../src/api/applied.ts'
import type { EventObject, PodObject } from '../../src/api/objects.ts'
import type { ArchiveReport } from '../../src/api/image-archives.ts'
import type { GarbageReport } from '../../src/api/garbage.ts'
import type { ProbeReportObject } from '../../src/api/probe-reports.ts'
import type { WatchEvent } from '../../src/api/resource.ts'
import type { DaemonStatus, ImageEntry } from '../../src/api/routes.ts'
import { PoddError } from '../../src/base/errors.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { silentLogger } from '../../src/base/logger.ts'
import type { ApiServer } from '../../src/server/api-server.ts'
import { startApiServer } from '../../src/server/api-server.ts'
import type { PodReach } from '../../src/server/pod-reach.ts'
import type { ApiReaders } from '../../src/server/readers.ts'

/** Holds objects of one kind and tells watchers of changes, as the daemon's stores do. */
class FakeStore<T extends { readonly metadata: { readonly name: string; readonly uid?: string } }> {
  readonly #objects = new Map<string, T>()
  readonly #listeners = new Set<(change: WatchEvent<T>) => void>()

  get watchers(): number {
    return this.#listeners.size
  }

  list(): readonly T[] {
    return [...this.#objects.values()]
  }

  put(object: T): void {
    const { name, uid } = object.metadata
    const key = `${name} ${uid}`
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED'
    this.#objects.set(key, object)
    this.#tell({ type, object })
  }

  remove(name: string): void {
    for (const [key, object] of this.#objects) {
      if (object.metadata.name !== name) continue
      this.#objects.delete(key)
      this.#tell({ type: 'DELETED', object })
    }
  }

  #tell(change: WatchEvent<T>): void {
    for (const listener of this.#listeners) listener(change)
  }

  watch(listener: (change: WatchEvent<T>) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

export interface Answer {
  readonly code: number
  readonly text: string
  readonly contentType: string | undefined
}

/** A real API server on a socket in a directory of its own, over stores that the test fills. */
export class ApiRig {
  readonly pods = new FakeStore<PodObject>()
  readonly events = new FakeStore<EventObject>()
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
  })
  /** What was pinned and unpinned. */
  readonly pins: string[] = []
  readonly imported: string[] = []
  /** When pods can be told of. */
  shown: Promise<void> = Promise.resolve()
  /** Of every pod. */
  probes: readonly ProbeReportObject[] = []
  importImages: (path: string) => Promise<readonly string[]> = async (path) => {
    this.imported.push(path)
    return ['localhost/web:1']
  }
  reach: PodReach = {
    startCommand: () => Promise.reject(new Error('no commands here')),
    dial: () => Promise.reject(new Error('no ports here')),
    restart: async () => [],
    usage: async () => [],
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
  applied: AppliedReply = { pods: [], objects: [], podNameSuffix: '' }
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

  readers(): ApiReaders {
    return {
      pods: {
        whenShown: () => this.shown,
        listPods: () => this.pods.list(),
        watchPods: (listener) => this.pods.watch(listener),
      },
      events: {
        listEvents: () => this.events.list(),
        watchEvents: (listener) => this.events.watch(listener),
      },
      status: { daemonStatus: () => this.status, applied: () => this.applied },
      probes: { listProbes: () => this.probes },
      objects: { listConfigs: () => [], listClaims: async () => [], purgeClaim: async () => {} },
      images: {
        listImages: async () => this.images,
        listArchives: () => this.archives,
        importImages: (path, { pin }) => this.importImages(pin ? path : `${path} unpinned`),
        collect: async (options) => this.collect(options),
        pinImage: async (image, pinned) => {
          if (!this.images.some(({ tags }) => tags.includes(image)))
            throw new PoddError('IMAGE_NOT_FOUND', `there is no image ${image}`)
          this.pins.push(`${image} ${pinned}`)
        },
      },
      reach: {
        startCommand: (request) => this.reach.startCommand(request),
        dial: (uid, port, signal) => this.reach.dial(uid, port, signal),
        restart: (uid, containers) => this.reach.restart(uid, containers),
        usage: (signal) => this.reach.usage(signal),
      },
    }
  }

  async listen(): Promise<void> {
    this.#server = await startApiServer({
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
