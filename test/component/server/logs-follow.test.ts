import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ApiRig } from '../../support/api-rig.ts'
import { startCli } from '../../support/cli-rig.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

it('follows a log over restarts of podd, each line once', async () => {
  rig.pods.put(podObject({ status: { containerStatuses: [containerStatus('main')] } }))
  const directory = join(rig.podLogsDir, 'default_web_uid-web', 'main')
  await mkdir(directory, { recursive: true })
  let written = ''
  const say = (millisecond: number, text: string): Promise<void> => {
    written += `${text}\n`
    const time = `2026-01-01T00:00:00.${String(millisecond).padStart(3, '0')}000001Z`
    return appendFile(join(directory, '0.log'), `${time} stdout F ${text}\n`)
  }
  await say(1, 'one')
  // Of the same millisecond, and of the same time.
  await say(2, 'two')
  await say(2, 'two')
  using call = startCli(['logs', '--socket', rig.socketPath, 'web', '-f', '--tail', '3'])
  await expect.poll(() => call.stdout()).toBe(written)
  for (let round = 0; round < 3; round += 1) {
    await rig.close(0)
    await say(2 + round, `while podd was away ${round}`)
    await expect.poll(() => call.stderr()).toBe('podd is unavailable; waiting for it to return\n')
    await rig.listen()
    await expect.poll(() => call.stdout()).toBe(written)
    await say(2 + round, `afterwards ${round}`)
    await expect.poll(() => call.stdout()).toBe(written)
  }
  call.interrupt()
  expect((await call.outcome).exitCode).toBe(130)
})

it('gives up at once where podd does not run', async () => {
  await rig.close(0)
  using call = startCli(['logs', '--socket', rig.socketPath, 'web', '-f'])
  expect(await call.outcome).toMatchObject({ exitCode: 1 })
})
