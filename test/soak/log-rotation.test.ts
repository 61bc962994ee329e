import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { expectAllLines, logFiles, numberedLines } from '../support/numbered-log.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const kills = 20
/** 50 MB, more slowly than podd can be killed and started again so many times. */
const count = 470_000
const config = { containerLogMaxSize: '1Mi', containerLogMaxFiles: 200, containerLogMonitorInterval: '3s' }

describe('logs that are rotated, in the long run', () => {
  describePodd('many files', { config }, (rig) => {
    it('lose no line of 50 MB although podd is killed 20 times', async () => {
      const podd = rig()
      const script = numberedLines(count, 9_000, 3)
      podd.drop('talker', shellPod('talker', podd.shared, script, { spec: { restartPolicy: 'Never' } }))
      await podd.untilReady('talker')
      for (let kill = 0; kill < kills; kill += 1) {
        // About when it looks at the logs, a little later each time.
        await sleep(2900 + kill * 20)
        await podd.restartDaemon('SIGKILL')
      }
      expect(podd.lines('talker')).toEqual([])
      expectAllLines(await podd.cliOk('logs', '-f', 'talker'), count)
      expect(logFiles(podd, 'talker').length).toBeGreaterThan(10)
      const pod = await podd.findPod('talker')
      expect(pod?.status.containerStatuses?.[0]?.restartCount).toBe(0)
    })
  })
})
