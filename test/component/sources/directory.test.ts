import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource, DecodeUnavailable } from '../../../src/sources/decode-source.ts'
import type { DirectorySourceOptions } from '../../../src/sources/directory/directory-files.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { movingMs } from '../../../src/sources/directory/pending-files.ts'
import type { SourceSnapshot } from '../../../src/pod/objects/document.ts'
import type { DirectoryHint } from '../../../src/sources/watch-directory.ts'
import type { MountEntry } from '../../../src/host/mounts.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { SourceRun, makeScratch, podYaml, summarize } from './source-rig.ts'
import { slowness } from '../../support/slowness.ts'

/** Ten times slower, so that an editor on a busy host stays within podd's patience. */
const slowClock: Clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() / 10,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs * 10, fire),
}

/** Ten times faster, where podd's own patience is what takes long. */
const fastClock: Clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() * 10,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs / 10, fire),
}

let scratch = ''
let pods = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  pods = join(scratch, 'pods')
  await mkdir(pods)
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  await removeScratch()
})

function start(options: Partial<DirectorySourceOptions> = {}): SourceRun {
  const run = new SourceRun(
    createDirectorySource({
      name: 'file',
      path: pods,
      clock: systemClock,
      logger: silentLogger,
      lastGood: createLastGoodStore(join(scratch, 'state')),
      decode: createDecodeSource(systemClock),
      ...options,
    }),
  )
  runs.push(run)
  return run
}

const write = (name: string, text: string): Promise<void> => writeFile(join(pods, name), text)
const sleep = (ms: number): Promise<void> => systemClock.sleep(ms)

/** Has time pass, in small steps between which podd may read, until something has happened. */
async function passing(clock: ManualClock, event: Promise<unknown>): Promise<void> {
  const state = { isOver: false }
  const over = event.finally(() => (state.isOver = true))
  while (!state.isOver) {
    await clock.advance(1)
    await Promise.race([over, sleep(1)])
  }
  await over
}

/** Writes beside the directory and renames into it. */
async function drop(name: string, text: string): Promise<void> {
  await writeFile(join(scratch, 'dropped'), text)
  await rename(join(scratch, 'dropped'), join(pods, name))
}

/** Puts a file of that text where the directory, or another file, is: all that is in it goes at once, however slow the machine is. */
async function replaceBy(text: string): Promise<void> {
  await rename(pods, join(await mkdtemp(join(scratch, 'replaced-')), 'pods'))
  await writeFile(pods, text)
}

/** Puts a directory that holds one manifest in the file's place. */
async function replaceByDirectory(name: string, text: string): Promise<void> {
  const made = await mkdtemp(join(scratch, 'made-'))
  await writeFile(join(made, name), text)
  await rm(pods)
  await rename(made, pods)
}

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted)

describe('a directory with files', () => {
  it('gives all of them in one first snapshot, in the order of their names', async () => {
    await write('b.yaml', podYaml('b'))
    await write('a.yml', `${podYaml('a')}---\n${podYaml('a2')}`)
    await write(
      'c.json',
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[{"name":"x","image":"i"}]}}',
    )
    const run = start()
    await run.untilReady()
    expect(run.snapshots.filter(({ snapshot }) => snapshot.ready)).toHaveLength(1)
    expect(summarize(run.last()!)).toEqual({
      pods: ['a=busybox:1.36', 'a2=busybox:1.36', 'b=busybox:1.36', 'c=i'],
      problems: [],
    })
    expect(run.last()).toMatchObject({ source: 'file', ready: true, location: pods })
  })

  it('says once what all of its files give without effect', async () => {
    const account = (name: string): string =>
      `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}}\n`
    await write('a.yaml', `${account('a')}---\n${podYaml('a')}`)
    await write('b.yaml', `${podYaml('b')}---\n${account('b')}`)
    const run = start()
    await run.untilReady()
    expect(summarize(run.last()!)).toEqual({
      pods: ['a=busybox:1.36', 'b=busybox:1.36'],
      problems: [
        'taken without effect, as nothing on one host goes by it: ServiceAccount a, ServiceAccount b',
      ],
    })
  })

  it('is ready only when all are decoded, however long that takes, and gives the quick ones before', async () => {
    await write('quick.yaml', podYaml('quick'))
    await write('slow.yaml', podYaml('slow'))
    const decode = createDecodeSource(systemClock)
    const { promise: decoded, resolve: goOn } = Promise.withResolvers<undefined>()
    const run = start({
      decode: async (bytes, options) => {
        if (options.path.endsWith('slow.yaml')) await decoded
        return decode(bytes, options)
      },
    })
    await run.until(is('quick=busybox:1.36'))
    await write('late.yaml', podYaml('late'))
    await run.until(is('late=busybox:1.36', 'quick=busybox:1.36'))
    expect(run.last()?.ready).toBe(false)
    goOn(undefined)
    await run.untilReady()
    expect(summarize(run.last()!).pods).toHaveLength(3)
  })

  it('is not ready, and says why, while the system keeps one from being decoded; tries again until it is', async () => {
    await write('quick.yaml', podYaml('quick'))
    await write('big.yaml', podYaml('big'))
    const decode = createDecodeSource(systemClock)
    let isExhausted = true
    let tries = 0
    const { promise: triedAgain, resolve: tellTried } = Promise.withResolvers<undefined>()
    const run = start({
      clock: fastClock,
      decode: async (bytes, options) => {
        if (!options.path.endsWith('big.yaml')) return decode(bytes, options)
        tries += 1
        if (tries === 3) tellTried(undefined)
        if (isExhausted) throw new DecodeUnavailable('EAGAIN')
        return decode(bytes, options)
      },
    })
    await run.until(({ pods, problems }) => pods.length === 1 && problems.length === 1)
    expect(run.last()).toMatchObject({
      ready: false,
      problems: [{ place: { path: join(pods, 'big.yaml') }, message: 'cannot be decoded for now: EAGAIN' }],
    })
    await triedAgain
    expect(run.last()?.ready).toBe(false)
    isExhausted = false
    await run.until(is('big=busybox:1.36', 'quick=busybox:1.36'))
    expect(run.last()).toMatchObject({ ready: true, problems: [] })
  })

  it('keeps what a file gave while the system keeps its new version from being decoded', async () => {
    await write('a.yaml', podYaml('a'))
    const decode = createDecodeSource(systemClock)
    let isExhausted = false
    const run = start({
      clock: fastClock,
      decode: (bytes, options) => {
        if (isExhausted) return Promise.reject(new DecodeUnavailable('EAGAIN'))
        return decode(bytes, options)
      },
    })
    await run.untilReady()
    isExhausted = true
    await drop('a.yaml', podYaml('a', 'busybox:2'))
    await run.until(({ problems }) => problems.length === 1)
    expect(summarize(run.last()!).pods).toEqual(['a=busybox:1.36'])
    isExhausted = false
    await run.until(is('a=busybox:2'))
    expect(run.last()?.problems).toEqual([])
  })

  it('drops no pod whose file is renamed while the system keeps the new name from being decoded', async () => {
    await write('a.yaml', podYaml('a'))
    const decode = createDecodeSource(systemClock)
    let isExhausted = false
    let tries = 0
    const { promise: triedAgain, resolve: tellTried } = Promise.withResolvers<undefined>()
    const run = start({
      clock: fastClock,
      decode: (bytes, options) => {
        if (!isExhausted) return decode(bytes, options)
        tries += 1
        if (tries === 4) tellTried(undefined)
        return Promise.reject(new DecodeUnavailable('EAGAIN'))
      },
    })
    await run.untilReady()
    isExhausted = true
    await rename(join(pods, 'a.yaml'), join(pods, 'b.yaml'))
    await triedAgain
    const empty = run.snapshots.filter(({ snapshot }) => snapshot.ready && snapshot.pods.length === 0)
    expect(empty).toEqual([])
    isExhausted = false
    await run.until(({ problems }) => problems.length === 0)
    expect(summarize(run.last()!).pods).toEqual(['a=busybox:1.36'])
  })

  it('gives an empty snapshot for an empty directory, and is ready', async () => {
    const run = start()
    await run.until(is())
    expect(run.last()).toMatchObject({ ready: true, problems: [] })
  })

  it('never reads dotfiles, backups, temp files, other endings or directories inside', async () => {
    for (const name of [
      '.a.yaml',
      'a.yaml~',
      '#a.yaml#',
      '.a.yaml.swp',
      '4913',
      'a.yaml.bak',
      'a.yaml.tmp',
    ]) {
      await write(name, podYaml('wrong'))
    }
    await mkdir(join(pods, 'sub'))
    await writeFile(join(pods, 'sub', 'x.yaml'), podYaml('wrong'))
    await write('a.yaml', podYaml('right'))
    const run = start()
    await run.until(is('right=busybox:1.36'))
    expect(run.last()?.problems).toEqual([])
  })

  it('names once the files that are passed over, and reads those whose names end in capitals', async () => {
    for (const name of ['etcd.manifest', 'README', 'b.YAML', 'c.Yml', 'd.JSON'])
      await write(name, name === 'd.JSON' ? '{}' : podYaml(name.slice(0, 1)))
    const run = start()
    await run.until(({ pods: given }) => given.length === 2)
    const messages = run.last()?.problems.filter(({ severity }) => severity === 'warning')
    expect(messages?.map(({ place, message }) => `${place.path} ${message}`)).toEqual([
      `${pods} these files are not read, as their names end in none of .yaml, .yml and .json: README, etcd.manifest`,
    ])
  })

  it('says of a manifest whose name is not UTF-8 that it is not read', async () => {
    const name = Buffer.concat([Buffer.from(`${pods}/ok`), Buffer.from([0xff]), Buffer.from('.yaml')])
    writeFileSync(name, podYaml('wrong'))
    await write('a.yaml', podYaml('right'))
    const run = start()
    await run.until(is('right=busybox:1.36'))
    expect(run.last()?.problems).toEqual([
      {
        severity: 'error',
        place: { path: join(pods, String.raw`ok\xff.yaml`) },
        message: 'is not read: its name is not UTF-8',
        hint: 'rename it',
      },
    ])
  })

  it('follows a link whose target comes later, and what becomes of the target', async () => {
    const target = join(scratch, 'late', 'a.yaml')
    await symlink(target, join(pods, 'a.yaml'))
    const run = start({ unhealthyRescanMs: 200 })
    await run.until(({ problems }) => problems.includes('is a symlink to a file that is missing'))
    await mkdir(join(scratch, 'late'))
    await writeFile(target, podYaml('late'))
    await run.until(is('late=busybox:1.36'))
    await writeFile(target, podYaml('late', 'i:2'))
    await run.until(is('late=i:2'))
    expect(run.last()?.problems).toEqual([])
  })
})

describe('changes', () => {
  it('follows a file that comes, changes and goes', async () => {
    const run = start()
    await run.until(is())
    await drop('a.yaml', podYaml('a'))
    await run.until(is('a=busybox:1.36'))
    await drop('a.yaml', podYaml('a', 'busybox:2'))
    await run.until(is('a=busybox:2'))
    await write('a.yaml', podYaml('a', 'busybox:37'))
    await run.until(is('a=busybox:37'))
    await unlink(join(pods, 'a.yaml'))
    await run.until(is())
    expect(run.snapshots.map(({ snapshot }) => snapshot.problems)).toEqual([[], [], [], [], []])
  })

  it('yields nothing when a file is touched, or written with what it held', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    await write('a.yaml', podYaml('a'))
    await drop('a.yaml', podYaml('a'))
    // Whatever these had led to comes before this, or with it.
    await write('b.yaml', podYaml('b'))
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'))
    expect(run.snapshots).toHaveLength(2)
  })

  it('takes a renamed file at once and a written one as soon as it is quiet', async () => {
    const run = start()
    await run.until(is())
    await drop('warm.yaml', podYaml('warm'))
    await run.until(is('warm=busybox:1.36'))
    const renamed: number[] = []
    const written: number[] = []
    for (let round = 0; round < 7; round += 1) {
      const image = `busybox:${round}`
      let fromMs = performance.now()
      await drop('warm.yaml', podYaml('warm', image))
      renamed.push((await run.until(is(`warm=${image}`))) - fromMs)
      fromMs = performance.now()
      await write('warm.yaml', podYaml('warm', `${image}00`))
      written.push((await run.until(is(`warm=${image}00`))) - fromMs)
    }
    const median = (values: number[]): number => values.sort((a, b) => a - b)[3]!
    // Far below the longer wait, also on a machine that is busy with other tests.
    expect(median(renamed)).toBeLessThan(60 * slowness)
    expect(median(written)).toBeLessThan(120 * slowness)
  })

  it('doesn’t drop a pod whose file is moved to another name', async () => {
    await write('a.yaml', podYaml('a'))
    await write('b.yaml', podYaml('b'))
    const run = start()
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'))
    await rename(join(pods, 'a.yaml'), join(pods, 'z.yaml'))
    await run.until(() => run.last()?.pods.some(({ place }) => place.path === join(pods, 'z.yaml')) === true)
    // Its own file is gone for longer than this one when this one is given up.
    await unlink(join(pods, 'b.yaml'))
    await run.until(is('a=busybox:1.36'))
    expect(run.snapshots.every(({ snapshot }) => summarize(snapshot).pods.includes('a=busybox:1.36'))).toBe(
      true,
    )
  })

  it('doesn’t drop pods whose files are swapped by renames, however long each takes to decode', async () => {
    await write('a.yaml', podYaml('one'))
    await write('b.yaml', podYaml('two'))
    const decode = createDecodeSource(systemClock)
    let slowOne = ''
    const run = start({
      decode: async (bytes, options) => {
        if (options.path.endsWith(slowOne)) await sleep(300)
        return decode(bytes, options)
      },
    })
    await run.until(is('one=busybox:1.36', 'two=busybox:1.36'))
    const inPods = (name: string): string => join(pods, name)
    const isIn = (file: string, pod: string): boolean =>
      run.last()?.pods.find(({ place }) => place.path === inPods(file))?.pod.metadata.name === pod
    const seen: SourceSnapshot[] = []
    for (const [turn, slow] of ['a.yaml', 'b.yaml', '', ''].entries()) {
      slowOne = slow === '' ? 'none' : slow
      const before = run.snapshots.length
      const beganMs = performance.now()
      await rename(inPods('a.yaml'), inPods('.x'))
      await sleep(turn * 10)
      await rename(inPods('b.yaml'), inPods('a.yaml'))
      await sleep(turn * 10)
      await rename(inPods('.x'), inPods('b.yaml'))
      const tookMs = performance.now() - beganMs
      await run.until(() => isIn('a.yaml', turn % 2 === 0 ? 'two' : 'one'))
      // On a busy host it may take so long that nothing seems to move any more.
      if (tookMs < movingMs / 2) seen.push(...run.snapshots.slice(before).map(({ snapshot }) => snapshot))
    }
    for (const snapshot of seen.filter(({ ready }) => ready)) {
      expect(snapshot.pods).toHaveLength(2)
      expect(new Set(snapshot.pods.map(({ pod }) => pod.metadata.name)).size).toBe(2)
    }
  })

  it('drops a pod whose file was replaced by another’s', async () => {
    await write('a.yaml', podYaml('a'))
    await write('b.yaml', podYaml('b'))
    const run = start()
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'))
    await rename(join(pods, 'b.yaml'), join(pods, 'a.yaml'))
    await run.until(is('b=busybox:1.36'))
    await drop('a.yaml', podYaml('c'))
    await run.until(is('c=busybox:1.36'))
    expect(run.last()?.problems).toEqual([])
  })

  it('doesn’t drop a pod while an editor saves by moving the old file aside', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start({ clock: slowClock })
    await run.until(is('a=busybox:1.36'))
    await rename(join(pods, 'a.yaml'), join(pods, 'a.yaml~'))
    await sleep(30)
    await write('a.yaml', podYaml('a', 'busybox:1.37'))
    await unlink(join(pods, 'a.yaml~'))
    await run.until(is('a=busybox:1.37'))
    expect(run.snapshots.every(({ snapshot }) => snapshot.pods.length === 1)).toBe(true)
  })

  it('follows symlinks: to a file elsewhere, and through a swapped ..data', async () => {
    const elsewhere = join(scratch, 'elsewhere.yaml')
    await writeFile(elsewhere, podYaml('e'))
    await symlink(elsewhere, join(pods, 'e.yaml'))
    await mkdir(join(pods, '..1'))
    await mkdir(join(pods, '..2'))
    await writeFile(join(pods, '..1', 'd.yaml'), podYaml('d', 'i:1'))
    await writeFile(join(pods, '..2', 'd.yaml'), podYaml('d', 'i:2'))
    await symlink('..1', join(pods, '..data'))
    await symlink('..data/d.yaml', join(pods, 'd.yaml'))
    const run = start()
    await run.until(is('d=i:1', 'e=busybox:1.36'))
    await symlink('..2', join(pods, '..data_tmp'))
    await rename(join(pods, '..data_tmp'), join(pods, '..data'))
    await run.until(is('d=i:2', 'e=busybox:1.36'))
    await writeFile(elsewhere, podYaml('e', 'i:3'))
    await run.until(is('d=i:2', 'e=i:3'))
    await unlink(elsewhere)
    await run.until(({ problems }) => problems.includes('is a symlink to a file that is missing'))
    expect(summarize(run.last()!).pods).toEqual(['d=i:2', 'e=i:3'])
  })
})

describe('half-written files', () => {
  it('are neither taken nor reported while their writer goes on', async () => {
    await write('a.yaml', `${podYaml('a')}---\n${podYaml('b')}`)
    const run = start({ clock: slowClock })
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'))
    const whole = `${podYaml('a', 'i:2')}---\n${podYaml('b', 'i:2')}`
    const file = await open(join(pods, 'a.yaml'), 'w')
    // Ends of lines and of documents, where what is there so far parses.
    const cuts = [0, 20, podYaml('a', 'i:2').length, podYaml('a', 'i:2').length + 20, whole.length]
    for (const [index, cut] of cuts.entries()) {
      await file.write(whole.slice(index === 0 ? 0 : cuts[index - 1], cut))
      await sleep(40)
    }
    await file.close()
    await run.until(is('a=i:2', 'b=i:2'))
    expect(run.snapshots).toHaveLength(2)
  })

  it('are reported when they stay that way, and their pods go on', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    await write('a.yaml', podYaml('a').slice(0, 60))
    await run.until(({ problems }) => problems.length > 0)
    expect(summarize(run.last()!).pods).toEqual(['a=busybox:1.36'])
    await write('a.yaml', podYaml('a', 'i:2'))
    await run.until(({ problems, pods }) => problems.length === 0 && pods[0] === 'a=i:2')
  })

  it('an empty file keeps its pods, and is told of when it stays empty', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    const fromMs = performance.now()
    await write('a.yaml', '')
    const told = run.until(
      ({ pods, problems }) =>
        pods.join() === 'a=busybox:1.36' &&
        problems.join() === 'empty: what it gave before stays; delete the file to end that',
    )
    expect((await told) - fromMs).toBeGreaterThan(350)
    await rm(join(pods, 'a.yaml'))
    await run.until(is())
  })

  it('a file of nothing but comments gives nothing any more, and says so', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    await write('a.yaml', '# not now\n')
    await run.until(is())
    expect(run.last()?.problems).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('holds nothing') },
    ])
  })
})

describe('bad documents', () => {
  it('leave the others alone, and hold their own last good form', async () => {
    await write('a.yaml', `${podYaml('one')}---\n${podYaml('two')}`)
    const run = start()
    await run.until(is('one=busybox:1.36', 'two=busybox:1.36'))
    await drop('a.yaml', `${podYaml('one', 'i:2')}---\n${podYaml('two').replace('image:', 'imagee:')}`)
    await run.until(is('one=i:2', 'two=busybox:1.36'))
    expect(run.last()?.problems).toEqual([
      {
        severity: 'error',
        place: { path: join(pods, 'a.yaml'), line: 17, column: 5 },
        reason: 'UnknownField',
        field: 'spec.containers[0].imagee',
        message: 'unknown field "imagee" in spec.containers[0]; did you mean "image"?',
        object: 'default/two',
      },
    ])
  })

  it('hold all that their file gave when nobody can tell which they are', async () => {
    await write('a.yaml', `${podYaml('one')}---\n${podYaml('two')}`)
    const run = start()
    await run.until(is('one=busybox:1.36', 'two=busybox:1.36'))
    await drop('a.yaml', `${podYaml('three')}---\n"\n`)
    await run.until(is('three=busybox:1.36', 'one=busybox:1.36', 'two=busybox:1.36'))
    expect(run.last()?.problems).toHaveLength(1)
    await drop('a.yaml', podYaml('three'))
    await run.until(is('three=busybox:1.36'))
  })

  it('are told apart from what is no text, no file, or far too large', async () => {
    await writeFile(join(pods, 'binary.yaml'), Buffer.from([0xff, 0xfe, 0x00, 0x41]))
    await mkdir(join(pods, 'directory.yaml'))
    await writeFile(join(pods, 'large.yaml'), 'x'.repeat(10 * 1024 * 1024 + 1))
    await symlink('loop.yaml', join(pods, 'loop.yaml'))
    await write('ok.yaml', podYaml('ok'))
    const run = start()
    await run.until(is('ok=busybox:1.36'))
    expect(summarize(run.last()!).problems).toEqual([
      'not a text in UTF-8 but in UTF-16: save it as UTF-8',
      'is a directory: what is in it is not read',
      'is larger than 10 MiB',
      'is a symlink that leads round in a circle',
    ])
  })

  it('are what cannot be read, which holds up nothing', async () => {
    execFileSync('mkfifo', [join(pods, 'fifo.yaml')])
    await symlink('nowhere', join(pods, 'link.yaml'))
    await write('ok.yaml', podYaml('ok'))
    await write('private.yaml', podYaml('private'))
    const run = start()
    await run.until(is('ok=busybox:1.36', 'private=busybox:1.36'))
    expect(summarize(run.last()!).problems).toEqual([
      'is not a regular file',
      'is a symlink to a file that is missing',
    ])
    await unlink(join(pods, 'ok.yaml'))
    execFileSync('mkfifo', [join(pods, 'ok.yaml')])
    await run.until(({ problems }) => problems.length === 3)
    expect(summarize(run.last()!).pods).toEqual(['ok=busybox:1.36', 'private=busybox:1.36'])
  })

  // Root may read everything.
  it.skipIf(process.getuid?.() === 0)('are what podd may not read, whose pods are kept', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    await drop('a.yaml', podYaml('a', 'i:2'))
    await chmod(join(pods, 'a.yaml'), 0o000)
    await run.until(({ problems }) => problems.includes('cannot be read: EACCES'))
    expect(summarize(run.last()!).pods).toHaveLength(1)
    await chmod(join(pods, 'a.yaml'), 0o644)
    await run.until(({ problems }) => problems.length === 0)
    expect(summarize(run.last()!).pods).toEqual(['a=i:2'])
  })

  it.each([
    ['a file of long ago', -10 * 365 * 86_400],
    ['a file from the future', 10 * 365 * 86_400],
  ])('are not %s, whatever the clock says', async (_what, ageSeconds) => {
    const run = start()
    await run.until(is())
    const whenSeconds = systemClock.wallMs() / 1000 + ageSeconds
    await writeFile(join(scratch, 'dropped'), podYaml('a'))
    await utimes(join(scratch, 'dropped'), whenSeconds, whenSeconds)
    await rename(join(scratch, 'dropped'), join(pods, 'a.yaml'))
    await run.until(is('a=busybox:1.36'))
    await write('a.yaml', podYaml('a', 'i:2'))
    await utimes(join(pods, 'a.yaml'), whenSeconds, whenSeconds)
    await run.until(is('a=i:2'))
    expect(run.last()?.problems).toEqual([])
  })

  it('decodes large ones in a worker, while small ones go first', async () => {
    const run = start()
    await run.until(is())
    const many = Array.from({ length: 800 }, (_, index) => podYaml(`p${index}`)).join('---\n')
    expect(many.length).toBeGreaterThan(64 * 1024)
    await drop('large.yaml', many)
    await drop('small.yaml', podYaml('small'))
    await run.until(({ pods }) => pods.includes('small=busybox:1.36'))
    await run.until(({ pods }) => pods.length === 801, 10_000)
  })
})

describe('the directory itself', () => {
  it('is a problem while it is missing, and is read as soon as it is there', async () => {
    await rm(pods, { recursive: true })
    const run = start()
    await run.until(({ problems }) => problems[0] === 'the manifest directory does not exist')
    expect(run.last()).toMatchObject({ ready: false, pods: [] })
    await mkdir(pods)
    await write('a.yaml', podYaml('a'))
    await run.until(is('a=busybox:1.36'), 1500)
    expect(run.last()).toMatchObject({ ready: true, problems: [] })
    await write('b.yaml', podYaml('b'))
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36'), 500)
  })

  it('keeps its pods when it vanishes, and when it comes back empty for a while', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start({ clock: slowClock, unhealthyRescanMs: 20 })
    await run.until(is('a=busybox:1.36'))
    await rm(pods, { recursive: true })
    await run.until(({ problems }) => problems.length > 0)
    expect(summarize(run.last()!)).toEqual({
      pods: ['a=busybox:1.36'],
      problems: ['the manifest directory does not exist; the pods it gave before are kept (1)'],
    })
    await mkdir(pods)
    // It has been seen empty.
    await run.until(({ problems }) => problems.length === 0)
    await write('a.yaml', podYaml('a', 'i:2'))
    await run.until(is('a=i:2'))
    expect(run.snapshots.every(({ snapshot }) => snapshot.pods.length === 1)).toBe(true)
  })

  it('keeps its pods over a restart while its disk is not mounted, until it is, or is meant to be empty', async () => {
    const mount = (mountPoint: string): MountEntry => ({
      mountPoint,
      root: '/',
      fsType: 'ext4',
      superOptions: [],
    })
    let mounts = [mount('/'), mount(pods)]
    const readMounts = (): readonly MountEntry[] => mounts
    await write('a.yaml', podYaml('a'))
    const first = start({ readMounts })
    await first.until(is('a=busybox:1.36'))
    await first.stop()
    await unlink(join(pods, 'a.yaml'))
    mounts = [mount('/')]
    const away = start({ readMounts })
    await away.until(({ problems }) => problems.length > 0)
    expect(summarize(away.last()!)).toEqual({
      pods: ['a=busybox:1.36'],
      problems: [
        'the manifest directory is empty, and on another filesystem than before; the pods it gave before are kept (1)',
      ],
    })
    mounts = [mount('/'), mount(pods)]
    await write('a.yaml', podYaml('a', 'busybox:2'))
    await away.until(({ pods: found, problems }) => problems.length === 0 && found.includes('a=busybox:2'))
    await away.stop()
    await unlink(join(pods, 'a.yaml'))
    mounts = [mount('/')]
    await write('none.yaml', '# none\n')
    const empty = start({ readMounts })
    await empty.until(is())
    await empty.stop()
    // Nothing of it is wanted any more.
    await unlink(join(pods, 'none.yaml'))
    const after = start({ readMounts })
    await after.until(({ problems }) => problems.length === 0)
    expect(summarize(after.last()!).pods).toEqual([])
  })

  it('keeps its pods when it vanishes just after a file of its own did', async () => {
    await write('a.yaml', podYaml('a'))
    const clock = new ManualClock()
    const hints: ((hint: DirectoryHint) => void)[] = []
    const run = start({
      clock,
      watch: (_path, { onHint }) => {
        hints.push(onHint)
        return { close: async () => undefined }
      },
    })
    await passing(clock, run.until(is('a=busybox:1.36')))
    await unlink(join(pods, 'a.yaml'))
    hints[0]!({ kind: 'renamed', name: 'a.yaml' })
    // It has seen that, and would believe it in a moment.
    await expect.poll(() => clock.nextTimerMs, { interval: 1 }).toBeLessThan(100)
    await rm(pods, { recursive: true })
    // Nobody told of the directory: podd looks before it believes that the file alone is gone.
    await passing(
      clock,
      run.until(({ problems }) => problems.length > 0),
    )
    await mkdir(pods)
    await write('a.yaml', podYaml('a', 'i:2'))
    await passing(clock, run.until(is('a=i:2')))
    expect(run.snapshots.every(({ snapshot }) => snapshot.pods.length === 1)).toBe(true)
  })

  it('may be a symlink, which is followed as soon as it leads elsewhere', async () => {
    const link = join(scratch, 'current')
    await mkdir(join(scratch, 'next'))
    await write('a.yaml', podYaml('a'))
    await writeFile(join(scratch, 'next', 'a.yaml'), podYaml('a', 'i:2'))
    await writeFile(join(scratch, 'next', 'b.yaml'), podYaml('b'))
    await symlink('pods', link)
    const run = start({ path: link })
    await run.until(is('a=busybox:1.36'))
    await symlink('next', join(scratch, 'swapped'))
    await rename(join(scratch, 'swapped'), link)
    await run.until(is('a=i:2', 'b=busybox:1.36'))
    await writeFile(join(scratch, 'next', 'c.yaml'), podYaml('c'))
    await run.until(is('a=i:2', 'b=busybox:1.36', 'c=busybox:1.36'))
    expect(run.last()?.problems).toEqual([])
  })

  it('may hold a thousand files', { timeout: 60_000 * slowness }, async () => {
    const count = 1000
    const names = Array.from({ length: count }, (_, index) => `p${index}`)
    await Promise.all(names.map((name) => write(`${name}.yaml`, podYaml(name))))
    const run = start()
    await run.until(({ pods: given }) => given.length === count, 50_000)
    expect(run.last()?.problems).toEqual([])
    // A snapshot for each file would take quadratic time.
    expect(run.snapshots.length).toBeLessThan(count / 4)
    await write('p7.yaml', podYaml('p7', 'i:2'))
    await run.until(({ pods: given }) => given.includes('p7=i:2'), 10_000)
    expect(run.last()?.pods).toHaveLength(count)
  })

  it('may be a single file, whatever its name', async () => {
    await rm(pods, { recursive: true })
    await writeFile(pods, podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    expect(run.last()).toMatchObject({ ready: true, problems: [], pods: [{ place: { path: pods } }] })
    await writeFile(pods, podYaml('a', 'i:2'))
    await run.until(is('a=i:2'))
    await writeFile(join(scratch, 'next'), podYaml('a', 'i:3'))
    await rename(join(scratch, 'next'), pods)
    await run.until(is('a=i:3'))
    await unlink(pods)
    await run.until(({ problems }) => problems.length > 0)
    expect(summarize(run.last()!).pods).toEqual(['a=i:3'])
    await run.stop()
    const second = start()
    await second.until(({ problems }) => problems.length > 0)
    expect(summarize(second.last()!).pods).toEqual(['a=i:3'])
  })

  it('takes a file in its place for it, and is itself again when it is back', async () => {
    await write('a.yaml', podYaml('a'))
    await write('b.yaml', `${podYaml('b')}---\n${podYaml('c')}`)
    const run = start({ clock: fastClock })
    await run.until(is('a=busybox:1.36', 'b=busybox:1.36', 'c=busybox:1.36'))
    await replaceBy(podYaml('b', 'i:2'))
    await run.until(is('b=i:2'))
    expect(run.last()).toMatchObject({ problems: [], pods: [{ place: { path: pods } }] })
    await rm(pods)
    await mkdir(pods)
    await write('d.yaml', podYaml('d'))
    await run.until(is('d=busybox:1.36'))
    expect(run.last()?.problems).toEqual([])
    await run.stop()
    const second = start()
    await second.until(is('d=busybox:1.36'))
    expect(second.snapshots.map(({ snapshot }) => snapshot.problems)).toEqual([[]])
  })

  it('keeps its pods while a file stands in its place that is no manifest, and then forgets that', async () => {
    await write('a.yaml', podYaml('a'))
    await write('bad.yaml', 'kind: [')
    const run = start({ clock: fastClock })
    // The first snapshot may come before all is read.
    await run.until(({ pods: given, problems }) => given.length === 1 && problems.length === 1)
    const readAt = run.snapshots.length
    await replaceBy('x\n')
    const isAbsence = (problem: string): boolean => problem.includes('does not exist')
    await run.until(({ problems }) => problems.length === 2 && !problems.some(isAbsence))
    // Longer than a directory has to be filled again.
    await sleep(700)
    expect(summarize(run.last()!).pods).toEqual(['a=busybox:1.36'])
    expect(run.last()?.problems.map(({ place }) => place.path)).toEqual([pods, join(pods, 'bad.yaml')])
    await replaceByDirectory('a.yaml', podYaml('a', 'i:2'))
    await run.until(({ pods: given, problems }) => given[0] === 'a=i:2' && problems.length === 0)
    expect(run.snapshots.slice(readAt).every(({ snapshot }) => snapshot.pods.length === 1)).toBe(true)
    await replaceBy('x\n')
    await run.until(({ problems }) => problems.length === 1 && !problems.some(isAbsence))
    await rm(pods)
    await mkdir(pods)
    await run.until((summary) => summary.pods.length + summary.problems.length === 0)
  })

  it('that became one, or a file, while podd was away takes the place of what was there', async () => {
    await write('a.yaml', podYaml('a'))
    const first = start()
    await first.until(is('a=busybox:1.36'))
    await first.stop()
    await replaceBy(podYaml('b'))
    const second = start()
    await second.until(is('b=busybox:1.36'))
    await second.stop()
    await rm(pods)
    await mkdir(pods)
    await write('c.yaml', podYaml('c'))
    const third = start()
    await third.until(() => true)
    expect(summarize(third.last()!)).toEqual({ pods: ['c=busybox:1.36'], problems: [] })
  })

  it('is a problem when it lies under a file', async () => {
    await writeFile(join(scratch, 'file'), '')
    const run = start({ path: join(scratch, 'file', 'pods') })
    await run.until(
      ({ problems }) => problems[0] === 'the manifest directory lies under something that is no directory',
    )
    expect(run.last()?.ready).toBe(false)
  })

  it('is read again and again when the system refuses to watch it', async () => {
    const refused = Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), {
      code: 'ENOSPC',
    })
    const run = start({
      unhealthyRescanMs: 50,
      watch: (_path, { onFailure }) => {
        onFailure(refused)
        return { close: async () => undefined }
      },
    })
    await run.until(({ problems }) => problems.length > 0)
    expect(run.last()?.problems[0]).toMatchObject({
      severity: 'warning',
      hint: expect.stringContaining('inotify'),
    })
    await write('a.yaml', podYaml('a'))
    await run.until(is('a=busybox:1.36'))
  })
})

describe('the last good copy', () => {
  it('stands in for a directory that is missing at the start', async () => {
    await write('a.yaml', podYaml('a'))
    const first = start()
    await first.until(is('a=busybox:1.36'))
    await first.stop()
    await rm(pods, { recursive: true })
    const second = start()
    await second.until(is('a=busybox:1.36'))
    expect(second.last()).toMatchObject({ ready: true, problems: [{ severity: 'error' }] })
  })

  it('stands in for a document that is bad at the start, and for nothing that was taken away', async () => {
    await write('a.yaml', podYaml('a'))
    await write('b.yaml', podYaml('b'))
    await write('c.yaml', podYaml('c'))
    const first = start()
    await first.until(({ pods }) => pods.length === 3)
    await first.stop()
    await write('a.yaml', 'kind: [')
    await unlink(join(pods, 'b.yaml'))
    await write('c.yaml', podYaml('c', 'i:2'))
    const second = start()
    await second.until(() => true)
    expect(second.snapshots).toHaveLength(1)
    expect(summarize(second.last()!).pods).toEqual(['a=busybox:1.36', 'c=i:2'])
    expect(second.last()?.problems).toHaveLength(1)
  })

  it('is a private file, and not another directory’s', async () => {
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    await run.stop()
    const state = join(scratch, 'state')
    expect(await readdir(state)).toEqual(['file.json'])
    expect((await stat(join(state, 'file.json'))).mode & 0o777).toBe(0o600)
    const other = start({ path: join(scratch, 'other') })
    await other.until(({ problems }) => problems.length > 0)
    expect(other.last()).toMatchObject({ ready: false, pods: [] })
  })

  it('that can’t be read is passed over, and one that can’t be saved is a warning', async () => {
    const state = join(scratch, 'state')
    await mkdir(state)
    await writeFile(join(state, 'file.json'), '{"version":1,')
    await write('a.yaml', podYaml('a'))
    const run = start()
    await run.until(is('a=busybox:1.36'))
    await run.stop()
    expect(JSON.parse(await readFile(join(state, 'file.json'), 'utf8'))).toMatchObject({ version: 1 })
    await rm(state, { recursive: true })
    await writeFile(state, 'in the way')
    await appendFile(join(pods, 'a.yaml'), `---\n${podYaml('b')}`)
    const second = start()
    await second.until(({ problems }) => problems.some((problem) => problem.includes('cannot be saved')))
    expect(summarize(second.last()!).pods).toHaveLength(2)
  })
})
