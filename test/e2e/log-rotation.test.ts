import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  endlessLines,
  expectAllLines,
  logDirectory,
  logFiles,
  numberedLines,
} from '../support/numbered-log.ts'
import { describePodd } from '../support/podd-rig.ts'
import { restartWith } from '../support/restart-with.ts'
import { shellPod } from '../support/shell-pods.ts'

const count = 36_000
/** Some 5 MB of log, for as long as several looks at it. */
const script = `${numberedLines(count, 3_600, 1)}; stay`

const rotation = { containerLogMaxSize: '1Mi', containerLogMonitorInterval: '3s' }

describe('logs that are rotated', () => {
  describePodd('few files', { config: { ...rotation, containerLogMaxFiles: 3 } }, (rig) => {
    it('are followed without a line lost, doubled or out of order, and keep to their number', async () => {
      const podd = rig()
      podd.drop('talker', shellPod('talker', podd.shared, script))
      await podd.untilReady('talker')
      const following = podd.spawnCli('logs', '-f', 'talker')
      try {
        await podd.untilLine('talker', / done$/u)
        await podd.until('the last line', () => following.output().includes(`\n${count - 1} `))
        expectAllLines(following.output(), count)
      } finally {
        following.child.kill()
      }
      // The last lot is put aside at the next look.
      const files = await podd.until('no file that is being compressed', () => {
        const found = logFiles(podd, 'talker')
        return found.length === 3 && !found.some((name) => name.endsWith('.tmp'))
          ? found.join(' ')
          : undefined
      })
      expect(files).toMatch(/^0\.log 0\.log\.\d{8}-\d{6}\.gz 0\.log\.\d{8}-\d{6}$/u)
      const { jobs } = await podd.status()
      expect(jobs.find(({ name }) => name === 'rotate-logs')).toMatchObject({
        periodSeconds: 3,
        running: false,
      })
    })
  })

  describePodd('many files', { config: { ...rotation, containerLogMaxFiles: 100 } }, (rig) => {
    it('lose no line although podd is killed, again and again', async () => {
      const podd = rig()
      podd.drop('talker', shellPod('talker', podd.shared, `${endlessLines('enough', 3_600, 1)}; stay`))
      await podd.untilReady('talker')
      let known: readonly string[] = []
      const hasNew = (like: RegExp): boolean =>
        logFiles(podd, 'talker').some((name) => like.test(name) && !known.includes(name))
      // When the log has been put aside, which the runtime is told next, and while the one before is compressed.
      for (const like of [/-\d+$/u, /\.tmp$/u, /-\d+$/u, /\.tmp$/u]) {
        known = logFiles(podd, 'talker')
        await podd.untilSpotted(`a new file like ${String(like)}`, () => hasNew(like))
        await podd.restartDaemon('SIGKILL')
      }
      podd.touchShared('enough')
      const done = await podd.untilLine('talker', / done$/u)
      const written = Number(/ (\d+) done$/u.exec(done.join('\n'))?.[1])
      expect(written).toBeGreaterThan(0)
      expectAllLines(await podd.cliOk('logs', 'talker'), written)
    })
  })

  describePodd('another directory', { config: { ...rotation, containerLogMaxFiles: 99 } }, (rig) => {
    it('is taken when no pod logs to the old one, and not before', async () => {
      const podd = rig()
      const other = join(podd.directory, 'other-logs')
      podd.drop('talker', shellPod('talker', podd.shared, script))
      const { metadata } = await podd.untilReady('talker')
      const [filesBefore, directory] = [logFiles(podd, 'talker').length, logDirectory(podd, 'talker')]
      await restartWith(podd, '--pod-logs-dir', other)
      expect((await podd.untilReady('talker')).metadata.uid).toBe(metadata.uid)
      await podd.untilLine('talker', / done$/u)
      await podd.until('rotation', () => logFiles(podd, 'talker').length > filesBefore)
      expectAllLines(await podd.cliOk('logs', 'talker'), count)
      const follow = shellPod('beside', podd.shared, 'echo beside; stay')
      podd.drop('beside', follow)
      await podd.untilReady('beside')
      expect(await podd.cliOk('logs', 'beside')).toBe('beside\n')
      expect(readdirSync(other)).toEqual([])
      for (const name of ['talker', 'beside']) podd.removeManifest(name)
      for (const name of ['talker', 'beside']) await podd.untilGone(name)
      expect(existsSync(join(podd.rootDir, 'pods', metadata.uid))).toBe(false)
      expect(existsSync(directory)).toBe(false)

      await restartWith(podd, '--pod-logs-dir', other)
      podd.drop('moved', shellPod('moved', podd.shared, 'echo moved; stay'))
      const moved = await podd.untilReady('moved')
      expect(await podd.cliOk('logs', 'moved')).toBe('moved\n')
      expect(readdirSync(other)).toEqual([`default_moved_${moved.metadata.uid}`])
    })
  })

  describePodd('11 MB', { config: { ...rotation, containerLogMaxFiles: 100 } }, (rig) => {
    it(
      'are followed to the end of their container without a line lost, beside tail -F',
      { tags: ['nightly'] },
      async () => {
        const podd = rig()
        const lines = 75_000
        const script = numberedLines(lines, 7_500, 2)
        podd.drop('loud', shellPod('loud', podd.shared, script, { spec: { restartPolicy: 'Never' } }))
        await podd.untilReady('loud')
        const beganMs = performance.now()
        const tail = tailFile(join(logDirectory(podd, 'loud'), '0.log'))
        let text = ''
        try {
          text = await podd.cliOk('logs', '-f', 'loud')
          const followedMs = performance.now() - beganMs
          expectAllLines(text, lines)
          await podd.until('the last line in tail', () => tail.lines() >= lines, 10_000).catch(() => {})
          console.log(
            `while it was written: podd logs -f ${rate(text.length, followedMs)}; tail -F ${rate(tail.bytes(), tail.lastMs() - beganMs)}, ${lines - tail.lines()} lines lost`,
          )
        } finally {
          tail.child.kill()
        }
        expect(logFiles(podd, 'loud').length).toBeGreaterThan(5)
        const againMs = performance.now()
        const again = await podd.cliOk('logs', '-f', 'loud')
        const poddMs = performance.now() - againMs
        expect(again === text).toBe(true)
        const directory = logDirectory(podd, 'loud')
        const zcatMs = performance.now()
        const options = { cwd: directory, maxBuffer: 2 ** 30 }
        const raw = execFileSync('sh', ['-c', 'zcat -f 0.log.* 0.log'], options)
        console.log(
          `read again: podd logs -f ${rate(again.length, poddMs)}; zcat ${rate(raw.length, performance.now() - zcatMs)}`,
        )
      },
    )
  })
})

function rate(bytes: number, ms: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB in ${(ms / 1000).toFixed(1)} s (${(bytes / 1000 / ms).toFixed(1)} MB/s)`
}

/** `tail -F`, which follows a file's name, from its first line. */
function tailFile(path: string) {
  const child = spawn('tail', ['-n', '+1', '-F', path], { stdio: ['ignore', 'pipe', 'ignore'] })
  let bytes = 0
  let lines = 0
  let lastMs = performance.now()
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    lastMs = performance.now()
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  })
  return { child, bytes: () => bytes, lines: () => lines, lastMs: () => lastMs }
}
