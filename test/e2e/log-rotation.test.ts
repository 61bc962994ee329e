import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const count = 160_000
const filling = 'x'.repeat(100)

/** Writes numbered lines, 16,000 at a time, with a pause after each lot: some 18 MB of log, for as long as several looks at it. */
const script = `i=0
while [ $i -lt ${count} ]; do
  echo "$i ${filling}"; i=$((i + 1))
  [ $((i % 16000)) != 0 ] || sleep 1
done
say done; stay`

/** The files of the only container's log. */
function logFiles(podd: PoddRig, pod: string): string[] {
  const directory = readdirSync(podd.logsDir).find((name) => name.startsWith(`default_${pod}_`)) ?? ''
  return readdirSync(join(podd.logsDir, directory, 'main')).toSorted()
}

/** Fails with the first number that is out of its place. */
function expectAllLines(text: string): void {
  const numbers = text
    .trimEnd()
    .split('\n')
    .map((line) => Number(line.split(' ')[0]))
  const at = numbers.findIndex((number, index) => number !== index)
  expect(at === -1 ? 'in order' : `${numbers.slice(Math.max(0, at - 2), at + 3).join()} at ${at}`).toBe(
    'in order',
  )
  expect(numbers).toHaveLength(count)
}

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
        expectAllLines(following.output())
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
      podd.drop('talker', shellPod('talker', podd.shared, script))
      await podd.untilReady('talker')
      const isDone = (): boolean => podd.lines('talker').some((line) => line.endsWith(' done'))
      for (let kills = 0; !isDone() && kills < 8; kills += 1) {
        // About when it looks at the logs, a little later each time.
        await sleep(2950 + kills * 15)
        await podd.restartDaemon('SIGKILL')
      }
      await podd.untilLine('talker', / done$/u)
      expectAllLines(await podd.cliOk('logs', 'talker'))
      expect(logFiles(podd, 'talker').length).toBeGreaterThan(2)
    })
  })
})
