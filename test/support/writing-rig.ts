import { defaultObjectPolicies } from './object-rules.ts'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PodObject } from '../../src/api/resource.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { systemClock } from '../../src/base/clock.ts'
import { ClusterObjects } from '../../src/control/serving/cluster-objects.ts'
import { ObjectStore } from '../../src/control/serving/object-store.ts'
import { LocalObjects, showKept } from '../../src/control/serving/local-objects.ts'
import { WrittenObjects } from '../../src/control/serving/written-objects.ts'
import { StatusStore } from '../../src/control/serving/status-store.ts'
import { presentPod } from '../../src/daemon/create-api.ts'
import type { ApiReaders } from '../../src/server/requests/readers.ts'
import { ApiObjects } from '../../src/sources/written/api-objects.ts'
import { ApiRig } from './api-rig.ts'
import { callApi } from './call-api.ts'
import type { ApiAnswer } from './call-api.ts'

/** An API whose pods are shown and never run: whoever deletes one has to end it. */
export class WritingRig extends ApiRig {
  readonly objects: ApiObjects
  readonly ended: string[] = []
  readonly debuggers: { readonly uid: string; readonly added: readonly JsonObject[] }[] = []
  /** How many changes were of no concern to pods. */
  sameSnapshots = 0
  readonly #writing: WrittenObjects
  readonly #stop = new AbortController()
  readonly #running: Promise<void>

  constructor(directory: string) {
    super(directory)
    this.objects = new ApiObjects({
      directory: join(directory, 'api'),
      persistSecrets: true,
      clock: systemClock,
      logger: silentLogger,
      watch: () => ({ close: async () => {} }),
    })
    const statuses = new StatusStore(this.shown.pods, presentPod(this.objects))
    const store = new ObjectStore({ policies: defaultObjectPolicies, runtimeClasses: new Map() })
    const local = new LocalObjects({
      objects: store,
      shown: this.shown,
      rootDir: directory,
      pods: () => [],
      clock: systemClock,
      logger: silentLogger,
    })
    local.begin()
    this.#writing = new WrittenObjects({
      objects: this.objects,
      pods: {
        showNew({ pod, kept: { uid } = { uid: '' } }, _source, last) {
          const pending = pendingPod(pod.metadata, uid)
          statuses.publishProvisional(uid, { ...pending, status: last ?? pending.status })
        },
        endPod: (uid, graceSeconds, asked) => {
          this.ended.push(`${uid} ${graceSeconds}${asked === 'evicted' ? ' evicted' : ''}`)
          if (graceSeconds === 0) statuses.remove(uid)
          return true
        },
        addDebuggers: async (uid, added) => {
          this.debuggers.push({ uid, added })
        },
        shortenGrace: (uid, graceSeconds) => {
          this.ended.push(`${uid} ${graceSeconds}`)
          return true
        },
        knowsPod: () => false,
      },
      statuses,
      shown: this.shown.pods,
      showClaims: () => local.measureClaims(),
      nodeName: 'here',
      maxPods: 20,
      logger: silentLogger,
    })
    this.#writing.begin()
    const cluster = new ClusterObjects({
      shown: this.shown,
      objects: store,
      machine: { machineId: 'm', systemUuid: 's', osImage: 'Linux' },
      hostName: 'here',
      written: (kind) => this.objects.list(kind).map(({ manifest }) => manifest),
      runtimeClasses: new Map(),
      writtenNode: () => this.objects.get({ kind: 'Node', namespace: '', name: 'here' })?.manifest,
      readNode: () => ({
        bootId: 'b',
        kernel: '6.1',
        architecture: 'amd64',
        addresses: [],
        podCidrs: [],
        kubeletPort: 0,
        capacity: { cpu: '2' },
        allocatable: { cpu: '1900m' },
        runtime: { name: 'containerd', version: '2.1.9' },
        runtimeProblem: undefined,
        pressure: [],
        draining: false,
      }),
      listImages: async () => [],
      createdMs: 0,
      clock: systemClock,
    })
    cluster.begin()
    cluster.refreshNode()
    this.#running = this.objects.run(async ({ objects }, isSame) => {
      if (isSame) this.sameSnapshots += 1
      else store.replace(objects.map((document) => ({ source: 'api', document })))
      showKept(this.shown, (kind) => this.objects.list(kind).map(({ manifest }) => manifest))
      cluster.showWritten()
    }, this.#stop.signal)
  }

  override readers(): ApiReaders {
    return { ...super.readers(), writer: this.#writing }
  }

  /** What a new podd does with what an earlier one kept. */
  async restore(): Promise<void> {
    await this.objects.whenLoaded
    await this.#writing.showHeld()
    await this.#writing.settle()
  }

  ask(method: string, path: string, body?: Json | Buffer, type?: string): Promise<ApiAnswer> {
    return callApi(this.socketPath, method, path, body, type)
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    await super[Symbol.asyncDispose]()
  }
}

/** @param directory one that an earlier rig has written; left out, a new one */
export async function startWritingRig(directory?: string): Promise<WritingRig> {
  const rig = new WritingRig(directory ?? (await mkdtemp(join(tmpdir(), 'podd-writing-'))))
  await rig.restore()
  await rig.listen()
  return rig
}

/** A pod that was written over the API, as it is shown before anything of it runs. */
export function pendingPod(
  { name, namespace: place }: { name: string; namespace: string },
  uid: string,
): PodObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: place,
      uid,
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: { 'podd.dev/source': 'api', 'podd.dev/path': '/api' },
    },
    spec: { nodeName: 'here', priority: 0 },
    status: { phase: 'Pending', conditions: [], qosClass: 'BestEffort' },
  }
}
