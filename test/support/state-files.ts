import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { silentLogger } from '../../src/base/logger.ts'
import { preparePodNetwork } from '../../src/runtime/network/pod-network.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { readUnpackRecord, writeUnpackRecord } from '../../src/runtime/containerd/unpacked-images.ts'
import { readBatchState, writeBatchState } from '../../src/control/desired/batch-jobs.ts'
import { newJobRecord } from '../../src/decide/workloads/run-job.ts'
import { ArchiveRecords } from '../../src/control/images/archive-files.ts'
import { ImageUses } from '../../src/control/images/image-uses.ts'
import { readPodLogsDir, savePodLogsDir } from '../../src/control/node/logs.ts'
import { RingEventRecorder } from '../../src/control/serving/event-recorder.ts'
import { createShown } from '../../src/control/serving/resource-store.ts'
import type { ShownResources } from '../../src/control/serving/resource-store.ts'
import { HostShutdown } from '../../src/host/shutdown.ts'
import { readCgroupChoice, saveCgroupChoice } from '../../src/host/cgroups/layout.ts'
import { podFromManifest } from '../../src/pod/schema/default-pod.ts'
import {
  readHolds,
  readSignatureTimes,
  readTrialRecord,
  writeHolds,
  writeSignatureTimes,
  writeTrialRecord,
} from '../../src/store/source-records.ts'
import {
  createUnitRecord,
  noteFailed,
  noteHealthy,
  offerContent,
} from '../../src/decide/updates/unit-revisions.ts'
import { createLastGoodStore } from '../../src/store/last-good.ts'
import { PodRecordStore } from '../../src/store/pod-records.ts'
import { PullRecordStore } from '../../src/store/pull-records.ts'
import { createRevisionStore } from '../../src/store/revisions.ts'
import { smallFile } from '../../src/store/state-report.ts'
import type { StateReport } from '../../src/store/state-report.ts'
import { ManualClock } from './manual-clock.ts'

/** A file that podd writes and a later start reads, by the code of podd itself. */
export interface StateFile {
  /** Below the root directory. */
  readonly path: string
  /** It is reported, and not put aside. */
  readonly staysInPlace?: boolean
  /** It is put aside without a word. */
  readonly isSilent?: boolean
  write(rootDir: string): Promise<void>
  /** What a start gets from it. */
  read(rootDir: string, report: StateReport): Promise<unknown>
}

const manifest = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
}
const document = { pod: podFromManifest(manifest), manifest, place: { path: '/m' } }
const record = {
  version: 1 as const,
  uid: 'u',
  namespace: 'default',
  name: 'p',
  source: 'file' as const,
  path: '/m',
  manifest,
  acceptedAtMs: 1,
  conditions: {},
  containers: {},
}
const revisions = noteFailed(
  offerContent(
    noteHealthy(createUnitRecord({ source: 'file', unit: '/m' }, { hash: 'a', pods: 1 }, 1)),
    { hash: 'b', pods: 1 },
    2,
  ),
  {
    reason: 'r',
    message: 'm',
    atMs: 3,
    containers: [{ pod: 'default/p', container: 'c', exitCode: 1, lines: ['l'] }],
  },
  { why: 'failed', mayRollBack: true },
)
const openRevisions = (rootDir: string, report: StateReport = () => undefined) =>
  createRevisionStore(join(rootDir, 'revisions'), { persistSecrets: true, most: 10, report })
const pulled = { imageRef: 'i', updatedAtMs: 1, access: { i: { allPods: true, secrets: [] } } }
const pulledName = `sha256-${createHash('sha256').update(pulled.imageRef).digest('hex')}.json`
const unpackRecordPath = (rootDir: string) => containerdPlaces(rootDir, '/run/podd').unpackRecordPath
const archivesFile = (rootDir: string) => smallFile(join(rootDir, 'image-archives.json'))

function newRecorder(rootDir: string): { recorder: RingEventRecorder; shown: ShownResources } {
  const clock = new ManualClock()
  const shown = createShown(clock.wallMs())
  const shutdown = new HostShutdown(undefined, clock, silentLogger)
  const place = { rootDir, hostName: 'h', bootId: 'boot' }
  const recorder = new RingEventRecorder(place, shown, shutdown, clock, silentLogger)
  return { recorder, shown }
}

async function noteImage(rootDir: string, ageMs: number, report?: StateReport): Promise<number> {
  const clock = new ManualClock()
  const file = smallFile(join(rootDir, 'image-uses.json'))
  const uses = new ImageUses(file, report ?? (() => undefined), clock, silentLogger)
  const image = { id: 'i', names: ['i'], sizeBytes: 1, pinned: false }
  await uses.note([image], [])
  await clock.advance(ageMs)
  const [seen] = await uses.note([image], [])
  return clock.monotonicMs() - (seen?.firstSeenMs ?? 0)
}

/** @param free the one subnet that no other podd has claimed */
export async function chooseNetwork(rootDir: string, free: string): Promise<readonly string[]> {
  const places = containerdPlaces(rootDir, '/run/podd')
  await mkdir(places.rootDir, { recursive: true })
  const { subnets } = await preparePodNetwork(places, [], {
    routes: [],
    addresses: [],
    mtu: () => 1500,
    claim: async (subnet) => subnet === free,
    removeIdleBridge: async () => true,
  })
  return subnets
}

/** With a version: JSON whose next version an older podd puts aside. */
export const versionedFiles: readonly StateFile[] = [
  {
    path: 'records/u.json',
    async write(rootDir) {
      const store = new PodRecordStore(rootDir)
      await store.load()
      await store.save(record)
    },
    read: async (rootDir, report) => (await new PodRecordStore(rootDir, report).load()).records,
  },
  {
    path: 'ended-by-down.json',
    write: (rootDir) => new PodRecordStore(rootDir).saveEndedByDown([record]),
    read: (rootDir, report) => new PodRecordStore(rootDir, report).loadEndedByDown(),
  },
  ...['sources', 'sources/worked', 'sources/held'].map((directory) => ({
    path: `${directory}/file.json`,
    write: (rootDir: string) => createLastGoodStore(join(rootDir, directory)).save('file', '/m', [document]),
    read: async (rootDir: string, report: StateReport) =>
      (await createLastGoodStore(join(rootDir, directory), { report }).load('file', '/m'))?.documents.length,
  })),
  {
    path: `revisions/${createHash('sha256').update('file\n/m').digest('hex').slice(0, 32)}.json`,
    write: async (rootDir) =>
      void (await openRevisions(rootDir).save(
        revisions,
        new Map(['a', 'b'].map((hash) => [hash, [document]])),
      )),
    read: async (rootDir, report) => {
      const store = openRevisions(rootDir, report)
      return [await store.load(), (await store.contents(revisions, ['b'])).get('b')?.documents.length]
    },
  },
  {
    path: 'holds.json',
    write: (rootDir) =>
      writeHolds(
        smallFile(join(rootDir, 'holds.json')),
        new Map([['http:fleet', { sinceMs: 1, hasCopy: true }]]),
      ),
    read: async (rootDir, report) => [...(await readHolds(smallFile(join(rootDir, 'holds.json')), report))],
  },
  {
    path: 'signatures.json',
    write: (rootDir) =>
      writeSignatureTimes(smallFile(join(rootDir, 'signatures.json')), {
        signed: new Map([['/m', { K: { timestamp: 7, digest: 'd' } }]]),
        forgotten: { K: { timestamp: 5 } },
      }),
    async read(rootDir, report) {
      const { signed } = await readSignatureTimes(smallFile(join(rootDir, 'signatures.json')), report)
      return [...signed]
    },
  },
  {
    path: 'trial.json',
    write: (rootDir) =>
      writeTrialRecord(smallFile(join(rootDir, 'trial.json')), {
        bootId: 'b',
        running: true,
        crashes: 1,
        reports: [7],
        worked: { file: { location: '/m', fingerprint: 'f', digest: 'd' } },
        held: { http: { location: '/m', fingerprint: 'f', podd: '1' } },
      }),
    read: (rootDir, report) => readTrialRecord(smallFile(join(rootDir, 'trial.json')), report),
  },
  {
    path: 'events.json',
    async write(rootDir) {
      const { recorder } = newRecorder(rootDir)
      recorder.recordNode({ type: 'Normal', reason: 'r', message: 'm' })
      await recorder.flush()
    },
    async read(rootDir, report) {
      const { recorder, shown } = newRecorder(rootDir)
      await recorder.load()
      const [event, ...others] = shown.events.list()
      if (event?.reason !== 'StateUnreadable') return [event, ...others]
      await recorder.flush()
      report({ path: join(rootDir, 'events.json.unreadable'), message: event.message })
      return []
    },
  },
  {
    path: 'cgroups.json',
    write: async (rootDir) => saveCgroupChoice(rootDir, { root: '/p', driver: 'cgroupfs' }),
    async read(rootDir, report) {
      const known = readCgroupChoice(rootDir)
      saveCgroupChoice(rootDir, known ?? { root: '/', driver: 'systemd' }, report)
      return known
    },
  },
  {
    path: 'pod-logs.json',
    write: async (rootDir) => savePodLogsDir(rootDir, '/logs', () => undefined),
    async read(rootDir, report) {
      const known = readPodLogsDir(rootDir)
      savePodLogsDir(rootDir, known ?? '/others', report)
      return known
    },
  },
  {
    path: 'image-uses.json',
    write: async (rootDir) => void (await noteImage(rootDir, 3_600_000)),
    read: async (rootDir, report) => (await noteImage(rootDir, 0, report)) > 0,
  },
  {
    path: 'jobs.json',
    write: (rootDir) =>
      writeBatchState(smallFile(join(rootDir, 'jobs.json')), {
        jobs: { 'file default/once': newJobRecord('r', 1) },
        cronJobs: { 'file default/backup': { createdAtMs: 1, jobs: [] } },
      }),
    read: (rootDir, report) => readBatchState(smallFile(join(rootDir, 'jobs.json')), report),
  },
  {
    path: 'image-archives.json',
    write: (rootDir) =>
      new ArchiveRecords(archivesFile(rootDir), () => undefined, silentLogger).set('a.tar', {
        sizeBytes: 1,
        modifiedAtMs: 1,
        digest: 'd',
        images: ['i'],
      }),
    async read(rootDir, report) {
      const records = new ArchiveRecords(archivesFile(rootDir), report, silentLogger)
      await records.load()
      return [...records.all]
    },
  },
  {
    path: `image-pulls/pulled/${pulledName}`,
    // Until the image has another record, its credentials are verified because of it.
    staysInPlace: true,
    write: (rootDir) => new PullRecordStore(rootDir).saveRecord(pulled),
    read: async (rootDir, report) => (await new PullRecordStore(rootDir, report).load()).records,
  },
  {
    path: `image-pulls/pulling/${pulledName}`,
    staysInPlace: true,
    write: (rootDir) => new PullRecordStore(rootDir).saveIntent({ image: pulled.imageRef }),
    read: async (rootDir, report) => (await new PullRecordStore(rootDir, report).load()).intents,
  },
  {
    path: 'containerd/pod-network.json',
    isSilent: true,
    write: async (rootDir) => void (await chooseNetwork(rootDir, '10.86.1.0/24')),
    read: (rootDir) => chooseNetwork(rootDir, '10.86.2.0/24'),
  },
  {
    path: 'containerd/unpacking.json',
    isSilent: true,
    async write(rootDir) {
      await mkdir(join(rootDir, 'containerd'), { recursive: true })
      await writeUnpackRecord(smallFile(unpackRecordPath(rootDir)), { bootId: 'b', written: ['i'] })
    },
    read: (rootDir) => readUnpackRecord(smallFile(unpackRecordPath(rootDir))),
  },
]
