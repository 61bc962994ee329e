import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { drainMark } from '../../src/control/node/drain.ts'
import { readIfExists } from '../../src/base/atomic-file.ts'
import { PoddError } from '../../src/base/errors.ts'
import { silentLogger } from '../../src/base/logger.ts'
import {
  ContainerLogDirectories,
  listRemovedPods,
  markRemoved,
} from '../../src/logs/container-log-directories.ts'
import { ApiObjects } from '../../src/sources/written/api-objects.ts'
import { OwnAuthority } from '../../src/server/access/own-authority.ts'
import { claimDirectory, readClaimOwner, takeClaimData } from '../../src/volumes/claims.ts'
import { claimUserRange } from '../../src/volumes/pod-directory.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import type { StateReport } from '../../src/store/state-report.ts'
import { ManualClock } from './manual-clock.ts'
import { chooseNetwork } from './state-files.ts'
import type { StateFile } from './state-files.ts'

const bootId = '7f6e8cbf-6a5b-4f4e-9c8a-7d3b8a0f9b11'

/** Text without a version, which is read whole or not at all. */
export interface TextFile extends StateFile {
  /** What a start gets from a file that is not whole; left out where it gets what the whole one gives, or makes it again. */
  readonly none?: unknown
  /** It is put aside, and another one is made. */
  readonly isReplaced?: boolean
}

export const textFiles: readonly TextFile[] = [
  {
    path: 'draining',
    none: false,
    write: (rootDir) => drainMark(join(rootDir, 'draining'), bootId).write(),
    read: async (rootDir) => drainMark(join(rootDir, 'draining'), bootId).read(),
  },
  {
    path: 'claims/default/.source-data',
    none: null,
    async write(rootDir) {
      const directory = claimDirectory(rootDir, 'default', 'data')
      await mkdir(directory, { recursive: true })
      await takeClaimData({ directory, isNew: true }, { source: 'http:fleet', readsDataOf: [] })
    },
    read: async (rootDir) => (await readClaimOwner(claimDirectory(rootDir, 'default', 'data'))) ?? null,
  },
  {
    path: 'pods/u/user-range',
    none: 'USER_RANGE',
    async write(rootDir) {
      await mkdir(join(rootDir, 'pods/u'), { recursive: true })
      for (const other of ['a', 'b']) {
        await mkdir(join(rootDir, 'pods', other), { recursive: true })
        claimUserRange(rootDir, other)
      }
      claimUserRange(rootDir, 'u')
    },
    async read(rootDir) {
      try {
        return claimUserRange(rootDir, 'u').firstId
      } catch (error) {
        return error instanceof PoddError ? error.code : 'another error'
      }
    },
  },
  {
    path: 'logs/default_p_u/.podd-removed',
    none: 0,
    async write(rootDir) {
      await mkdir(join(rootDir, 'logs/default_p_u'), { recursive: true })
      await markRemoved(join(rootDir, 'logs/default_p_u'), '/var/lib/podd', 1_700_000_000_000)
    },
    read: async (rootDir) => (await listRemovedPods(join(rootDir, 'logs'), '/var/lib/podd')).length,
  },
  {
    path: 'containerd/cni/10-podd.conflist',
    write: async (rootDir) => void (await chooseNetwork(rootDir, '10.86.1.0/24')),
    read: async (rootDir) => {
      const subnets = await chooseNetwork(rootDir, '10.86.1.0/24')
      return { subnets, conflist: await readIfExists(containerdPlaces(rootDir, '/run/podd').conflistPath) }
    },
  },
  {
    path: 'tls/ca.pem',
    isReplaced: true,
    write: async (rootDir) => void openAuthority(rootDir).trusted(),
    read: async (rootDir, report) => openAuthority(rootDir, report).trusted(),
  },
  {
    path: 'logs/default_p_u/.podd-owner',
    none: 0,
    write: async (rootDir) =>
      void (await openLogs(rootDir).prepare({ namespace: 'default', name: 'p', uid: 'u' }, 'c')),
    read: async (rootDir) => (await openLogs(rootDir).listOwn()).length,
  },
  {
    // It stays in place, and the source tells what is wrong with it.
    path: 'api/configmap.default.c.json',
    none: [],
    write: (rootDir) =>
      withApiObjects(rootDir, async (objects) => {
        const metadata = { name: 'c', namespace: 'default', uid: 'u' }
        await objects.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { k: 'v' } })
      }),
    read: (rootDir) =>
      withApiObjects(rootDir, async (objects) => objects.list().map(({ manifest }) => manifest)),
  },
]

function openLogs(rootDir: string): ContainerLogDirectories {
  return new ContainerLogDirectories({
    podLogsDir: join(rootDir, 'logs'),
    containerLogsDir: join(rootDir, 'links'),
    removed: { keptMs: 0, owner: '/var/lib/podd', clock: new ManualClock() },
  })
}

async function withApiObjects<T>(rootDir: string, work: (objects: ApiObjects) => Promise<T>): Promise<T> {
  const objects = new ApiObjects({
    directory: join(rootDir, 'api'),
    persistSecrets: true,
    clock: new ManualClock(),
    logger: silentLogger,
    watch: () => ({ close: async () => {} }),
  })
  const stop = new AbortController()
  const running = objects.run(async () => {}, stop.signal)
  try {
    return await objects.exclusively(() => work(objects))
  } finally {
    stop.abort()
    await running
  }
}

function openAuthority(rootDir: string, report: StateReport = () => {}): OwnAuthority {
  return new OwnAuthority(rootDir, ['localhost'], report, new ManualClock())
}
