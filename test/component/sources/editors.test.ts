import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { slowness } from '../../support/slowness.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

const run = promisify(execFile)

/** Slow enough that a program on a busy host writes a file within what a few milliseconds are to podd. */
const clock: Clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() / 50,
  startTimer: (delayMs, fire) => systemClock.startTimer(delayMs * 50, fire),
}

let scratch = ''
let pods = ''
let removeScratch = async (): Promise<void> => undefined
let source: SourceRun | undefined

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  pods = join(scratch, 'repository', 'pods')
  await mkdir(pods, { recursive: true })
  await writeFile(join(pods, 'a.yaml'), podYaml('a'))
  await writeFile(join(pods, 'b.yaml'), podYaml('b'))
})

afterEach(async () => {
  await source?.stop()
  source = undefined
  await removeScratch()
})

const hasProgram = (name: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((directory) => existsSync(join(directory, name)))

async function shell(script: string): Promise<void> {
  const environment = {
    HOME: scratch,
    TERM: 'xterm',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 't',
    GIT_AUTHOR_EMAIL: 't@localhost',
    GIT_COMMITTER_NAME: 't',
    GIT_COMMITTER_EMAIL: 't@localhost',
  }
  await run('/bin/sh', ['-ec', script], { cwd: pods, env: { ...process.env, ...environment } })
}

async function start(): Promise<SourceRun> {
  source = new SourceRun(
    createDirectorySource({
      name: 'file',
      path: pods,
      clock,
      logger: silentLogger,
      lastGood: createLastGoodStore(join(scratch, 'state')),
      decode: createDecodeSource(systemClock),
    }),
  )
  await source.untilReady()
  return source
}

/** nano on a terminal of its own, with these keys once it has drawn its screen. */
async function typeIntoNano(keys: string): Promise<void> {
  const nano = spawn('script', ['-qec', 'stty rows 24 cols 80; exec nano a.yaml', '/dev/null'], {
    cwd: pods,
    env: { ...process.env, HOME: scratch, TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let drawn = ''
  nano.stdout.on('data', (bytes: Buffer) => {
    const before = drawn
    drawn += bytes.toString()
    if (!before.includes('Replace') && drawn.includes('Replace')) nano.stdin.write(keys)
  })
  await once(nano, 'close')
}

const edited = 'a=busybox:1.37'

/** What it takes to change an image in a file, by program; `next` is a directory of what the files shall be. */
const edits: readonly (readonly [title: string, program: string, script: string])[] = [
  ['vim, by renaming', 'vim', `vim -u NONE -N -es -c 'set backupcopy=no' -c '%s/1.36/1.37/' -c wq a.yaml`],
  [
    'vim, with a backup that it keeps',
    'vim',
    `vim -u NONE -N -es -c 'set backup backupcopy=no' -c '%s/1.36/1.37/' -c wq a.yaml`,
  ],
  ['vim, in place', 'vim', `vim -u NONE -N -es -c 'set backupcopy=yes' -c '%s/1.36/1.37/' -c wq a.yaml`],
  ['rsync', 'rsync', 'rsync -rc ../../next/ ./'],
  ['rsync, in place', 'rsync', 'rsync -rc --inplace ../../next/ ./'],
  ['sed -i', 'sed', 'sed -i s/1.36/1.37/ a.yaml'],
  ['cp', 'cp', 'cp ../../next/a.yaml .'],
  ['cp --remove-destination', 'cp', 'cp --remove-destination ../../next/a.yaml .'],
  ['install', 'install', 'install -m 644 ../../next/a.yaml .'],
  ['tar', 'tar', 'tar c -C ../../next a.yaml b.yaml | tar x'],
]

const patience = { timeout: 30_000 * slowness }

describe('a manifest that a program changes', () => {
  for (const [title, program, script] of edits) {
    it.skipIf(!hasProgram(program))(`is never gone meanwhile: ${title}`, patience, async () => {
      const running = await start()
      await cp(pods, join(scratch, 'next'), { recursive: true })
      await writeFile(join(scratch, 'next', 'a.yaml'), podYaml('a', 'busybox:1.37'))
      await shell(script)
      await running.until(({ pods: [first] }) => first === edited, 20_000)
      expect(running.snapshots.every(({ snapshot }) => snapshot.pods.length === 2)).toBe(true)
    })
  }

  it.skipIf(!hasProgram('nano') || !hasProgram('script'))(
    'is never gone meanwhile: nano',
    patience,
    async () => {
      const running = await start()
      await typeIntoNano('\u001C1.36\r1.37\rA\u000F\r\u0018')
      await running.until(({ pods: [first] }) => first === edited, 20_000)
      expect(running.snapshots.every(({ snapshot }) => snapshot.pods.length === 2)).toBe(true)
    },
  )

  it.skipIf(!hasProgram('git'))('is never gone while git changes it', patience, async () => {
    await shell(`cd .. && git init -q && git add . && git commit -qm first
      cd pods && sed -i s/1.36/1.37/ a.yaml b.yaml && git commit -qam second && git branch other && git checkout -q HEAD~`)
    const running = await start()
    await shell('git checkout -q other')
    await running.until(({ pods: [first] }) => first === edited, 20_000)
    await shell('git reset -q --hard HEAD~')
    await running.until(({ pods: [first] }) => first === 'a=busybox:1.36', 20_000)
    await shell('git worktree add -q ../../linked HEAD && git merge -q HEAD@{1}')
    await running.until(({ pods: [first] }) => first === edited, 20_000)
    expect(running.snapshots.every(({ snapshot }) => snapshot.pods.length === 2)).toBe(true)
    await shell('git rm -q a.yaml && git commit -qm third')
    await running.until(({ pods: given }) => given.length === 1, 20_000)
  })

  it.skipIf(!hasProgram('rsync'))('goes when rsync removes it', patience, async () => {
    const running = await start()
    await shell('mkdir ../../next && cp a.yaml ../../next && rsync -r --delete ../../next/ ./')
    await running.until(({ pods: given }) => given.length === 1, 20_000)
    expect(running.last()?.problems).toEqual([])
  })
})
