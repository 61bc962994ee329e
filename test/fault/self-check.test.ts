import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { evaluate } from '../support/evaluate.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

describePodd('podd under a service manager', {}, (rig) => {
  it('tells it how it is, and restarts itself for the memory it takes without touching a pod', async () => {
    const podd = rig()
    // Stands for systemd-notify.
    const programs = join(podd.directory, 'programs')
    const told = join(podd.directory, 'told')
    mkdirSync(programs)
    writeFileSync(told, '')
    writeFileSync(join(programs, 'systemd-notify'), `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >>${told}\n`)
    chmodSync(join(programs, 'systemd-notify'), 0o755)
    const count = (assignment: string): number =>
      readFileSync(told, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(`/run/notify ${assignment}`)).length
    await podd.stopDaemon()
    podd.launch([
      'env',
      `PATH=${programs}:${podd.env['PATH']}`,
      'NOTIFY_SOCKET=/run/notify',
      'WATCHDOG_USEC=4000000',
    ])
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    const before = await podd.until('the daemon', () => podd.untilReady('steady').catch(() => undefined))
    expect(count('READY=1 STATUS=starting: waiting for the container runtime')).toBe(1)
    await podd.until('what it says once it has seen what runs', () => count('STATUS=') >= 1)
    await podd.until('signs of life', () => count('WATCHDOG=1 STATUS=1 pod') >= 2)
    const { startedAt, pid } = await podd.status()

    // An hour has passed, and podd takes a terabyte.
    await evaluate(
      podd,
      `{ process.memoryUsage.rss = () => 1e12; const real = process.hrtime; process.hrtime = () => { const [s, ns] = real(); return [s + 3600, ns] } } 1`,
    )
    const status = await podd.until('the new daemon', async () => {
      const now = await podd.status()
      // The old one believes to have started an hour earlier.
      return Date.parse(now.startedAt) > Date.parse(startedAt) && now.runtime.healthy ? now : undefined
    })
    expect(status).toMatchObject({ pid, crashes: [] })
    expect(await podd.cliOk('events')).toContain('DaemonMemoryLimit')
    expect(containerOf(await podd.untilReady('steady'), 'main')).toEqual(containerOf(before, 'main'))
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
    // The new one is the same service.
    expect(count('READY=1')).toBe(2)
    const fed = count('WATCHDOG=1')
    await podd.until('signs of life', () => count('WATCHDOG=1') > fed)
    expect(count('STOPPING=1')).toBe(0)
    await podd.restartDaemon()
    expect(count('STOPPING=1')).toBe(1)
  })
})
