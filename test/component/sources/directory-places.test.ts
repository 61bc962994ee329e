import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import type { DirectorySourceOptions } from '../../../src/sources/directory/directory-files.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import type { ReportingSource } from '../../../src/sources/source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

let scratch = ''
let pods = ''
let removeScratch = async (): Promise<void> => undefined
let source: ReportingSource
const runs: SourceRun[] = []

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  pods = join(scratch, 'pods')
  await mkdir(pods, { mode: 0o755 })
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  await removeScratch()
})

function start(options: Partial<DirectorySourceOptions> = {}): SourceRun {
  source = createDirectorySource({
    name: 'file:edge',
    path: pods,
    clock: systemClock,
    logger: silentLogger,
    lastGood: createLastGoodStore(join(scratch, 'state')),
    decode: createDecodeSource(systemClock),
    ...options,
  })
  const run = new SourceRun(source)
  runs.push(run)
  return run
}

const put = (name: string, image?: string): Promise<void> =>
  writeFile(join(pods, name), podYaml(/(?<pod>[a-z]+)\.yaml$/u.exec(name)?.groups?.['pod'] ?? 'x', image))
const gives =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods.map((pod) => pod.replace('=busybox:1.36', ''))) === JSON.stringify(wanted)

describe('subdirectories', () => {
  it('are read where that is asked for, whenever they come and go', async () => {
    await mkdir(join(pods, 'team', 'web'), { recursive: true })
    await put('a.yaml')
    await put('team/b.yaml')
    await put('team/web/c.yaml')
    const run = start({ recursive: true })
    await run.until(gives('a', 'b', 'c'))
    expect(run.last()?.pods[2]?.place.path).toBe(join(pods, 'team/web/c.yaml'))
    await put('team/web/c.yaml', 'i:2')
    await run.until(gives('a', 'b', 'c=i:2'))
    await mkdir(join(pods, 'late'))
    await put('late/d.yaml')
    await run.until(gives('a', 'd', 'b', 'c=i:2'))
    await put('late/d.yaml', 'i:3')
    await run.until(gives('a', 'd=i:3', 'b', 'c=i:2'))
    await rename(join(pods, 'team', 'web'), join(pods, 'web'))
    await run.until(() => run.last()?.pods[3]?.place.path === join(pods, 'web/c.yaml'))
    expect(
      run.snapshots
        .filter(({ snapshot }) => snapshot.ready)
        .every(({ snapshot }) => snapshot.pods.length >= 3),
    ).toBe(true)
    await rm(join(pods, 'team'), { recursive: true })
    await run.until(gives('a', 'd=i:3', 'c=i:2'))
  })

  it('are not read where they are hidden, or links', async () => {
    await mkdir(join(pods, '.git'))
    await mkdir(join(scratch, 'else'))
    await symlink(join(scratch, 'else'), join(pods, 'link'))
    await put('.git/a.yaml')
    await writeFile(join(scratch, 'else', 'b.yaml'), podYaml('b'))
    await put('c.yaml')
    const run = start({ recursive: true })
    await run.until(gives('c'))
    expect(run.last()?.problems).toEqual([])
  })

  it('as Kubernetes mounts a ConfigMap: through a ..data that is swapped', async () => {
    for (const [version, image] of [
      ['..1', 'i:1'],
      ['..2', 'i:2'],
    ] as const) {
      await mkdir(join(pods, version))
      await put(`${version}/a.yaml`, image)
    }
    await symlink('..1', join(pods, '..data'))
    await symlink('..data/a.yaml', join(pods, 'a.yaml'))
    const run = start({ recursive: true })
    await run.until(gives('a=i:1'))
    await symlink('..2', join(pods, '..next'))
    await rename(join(pods, '..next'), join(pods, '..data'))
    await run.until(gives('a=i:2'))
    expect(run.last()?.problems).toEqual([])
  })
})

describe('what others than root can write', () => {
  it('is worth a warning until that is mended', async () => {
    await put('a.yaml')
    await chmod(join(pods, 'a.yaml'), 0o666)
    await chmod(pods, 0o777)
    const run = start({ unhealthyRescanMs: 20, rescanMs: 100 })
    await run.until(({ problems }) => problems.length === 2)
    expect(run.last()?.problems).toMatchObject([
      { severity: 'warning', place: { path: pods }, hint: `chown root:root ${pods}; chmod go-w ${pods}` },
      { severity: 'warning', place: { path: join(pods, 'a.yaml') }, message: 'can be written by everyone' },
    ])
    expect(run.last()?.pods).toHaveLength(1)
    await chmod(join(pods, 'a.yaml'), 0o644)
    await chmod(pods, 0o755)
    await run.until(({ problems }) => problems.length === 0)
  })

  it('is not read where that is strict, and takes no pod that runs', async () => {
    await put('a.yaml')
    await put('b.yaml')
    await chmod(join(pods, 'b.yaml'), 0o602)
    const run = start({ isStrict: true, rescanMs: 100, unhealthyRescanMs: 20 })
    await run.until(gives('a'))
    expect(run.last()?.problems).toMatchObject([{ severity: 'error', message: 'can be written by everyone' }])
    await chmod(pods, 0o757)
    await run.until(({ problems }) => problems.some((problem) => problem.includes('is not read')))
    await rm(join(pods, 'a.yaml'))
    await systemClock.sleep(300)
    expect(run.last()?.pods).toHaveLength(1)
    await put('a.yaml', 'i:2')
    await chmod(pods, 0o755)
    await chmod(join(pods, 'b.yaml'), 0o600)
    await run.until(gives('a=i:2', 'b'))
    expect(run.last()?.problems).toEqual([])
  })
})

describe('a subdirectory that others than root can write', () => {
  beforeEach(async () => {
    await mkdir(join(pods, 'sub/deep'), { recursive: true })
    await put('sub/deep/a.yaml')
    await chmod(join(pods, 'sub'), 0o777)
  })

  it('is worth a warning', async () => {
    const path = join(pods, 'sub')
    const run = start({ recursive: true, rescanMs: 100 })
    await run.until(gives('a'))
    expect(run.last()?.problems).toMatchObject([
      { severity: 'warning', place: { path }, hint: `chown root:root ${path}; chmod go-w ${path}` },
    ])
    await chmod(path, 0o755)
    await run.until(({ problems }) => problems.length === 0)
  })

  it('keeps all from being read where that is strict, and takes no pod that runs', async () => {
    const path = join(pods, 'sub')
    await chmod(path, 0o755)
    const run = start({ recursive: true, isStrict: true, rescanMs: 100, unhealthyRescanMs: 20 })
    await run.until(gives('a'))
    await chmod(path, 0o777)
    await run.until(({ problems }) => problems.some((problem) => problem.includes('is not read')))
    expect(run.last()?.problems[0]?.place.path).toBe(path)
    await rm(join(path, 'deep'), { recursive: true })
    await systemClock.sleep(300)
    expect(run.last()?.pods).toHaveLength(1)
    await chmod(path, 0o755)
    // A directory that was away may be about to be filled again.
    await run.until(gives(), 15_000)
    expect(run.last()?.problems).toEqual([])
  })
})

describe('a directory on a network file system', () => {
  it('is read again and again, and says so', async () => {
    const run = start({
      findNetwork: async () => 'NFS',
      watch: () => ({ close: async () => undefined }),
      unhealthyRescanMs: 20,
    })
    await run.until(({ problems }) => problems.length === 1)
    expect(run.last()?.problems[0]?.message).toBe(
      'changes by other hosts are noticed only every 0.02 s: the manifest directory is on a network file system (NFS)',
    )
    expect(source.report()).toMatchObject({ mode: 'poll', failure: undefined })
    await put('a.yaml')
    await run.until(gives('a'))
    await rm(join(pods, 'a.yaml'))
    await run.until(gives())
  })
})
