import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { slowness } from '../support/slowness.ts'

const manifests = new URL('../../manifests/', import.meta.url).pathname

/** What a page says, once its server is there. */
async function page(url: string, expected: RegExp): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const text = await (await fetch(url, { signal: AbortSignal.timeout(2000 * slowness) })).text()
      if (expected.test(text) || attempt > 200) return text
    } catch (error) {
      if (attempt > 200) throw error
    }
    await sleep(50)
  }
}

const tried = new Set<string>()

/** Drops an example as it is, but for what the host may have in use. */
function drop(podd: PoddRig, name: string, changes: readonly (readonly [string, string])[] = []): void {
  tried.add(`${name}.yaml`)
  let text = readFileSync(join(manifests, `${name}.yaml`), 'utf8')
  for (const [from, to] of changes) {
    expect(text).toContain(from)
    text = text.replaceAll(from, to)
  }
  podd.dropText(`${name}.yaml`, text)
}

async function end(podd: PoddRig, name: string): Promise<void> {
  podd.removeManifest(name)
  await podd.untilGone(name)
}

/** As podd's users have it: what a container said is looked at between two of its starts. */
const config = { crashLoopBackOff: { maxContainerRestartPeriod: '300s' } }

describePodd('the example manifests', { config }, (rig) => {
  beforeAll(async () => {
    const archive = join(rig().directory, 'busybox-image.tar')
    const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim()
    execFileSync(process.execPath, ['packaging/busybox-image.ts', busybox, archive])
    await rig().cliOk('images', 'import', archive)
  })

  it('hello serves its page on a port of the host, and ends on SIGTERM', async () => {
    const podd = rig()
    const port = await freePort()
    drop(podd, 'hello', [['hostPort: 8080', `hostPort: ${port}`]])
    const { status } = await podd.untilReady('hello')
    expect(status.podIP).toMatch(/^\d+(\.\d+){3}$/u)
    for (const address of [`127.0.0.1:${port}`, `${status.podIP ?? ''}:8080`])
      expect(await page(`http://${address}/`, /hello/u)).toBe(
        'Hello from a pod that podd runs. I am hello.\n',
      )
    const askedMs = performance.now()
    await end(podd, 'hello')
    // It ends on SIGTERM, before its grace is over.
    expect(performance.now() - askedMs).toBeLessThan(4000 * slowness)
  })

  it('shared-directory serves what its other container writes', async () => {
    const podd = rig()
    drop(podd, 'shared-directory')
    const { status } = await podd.untilReady('shared-directory')
    const url = `http://${status.podIP ?? ''}:8080/`
    const first = await page(url, /:\d\d:\d\d /u)
    expect(await page(url, new RegExp(`^(?!${first.trim()})`, 'u'))).not.toBe(first)
    await end(podd, 'shared-directory')
  })

  it('one-shot runs once, succeeds, and leaves its log', async () => {
    const podd = rig()
    drop(podd, 'one-shot')
    const pod = await podd.untilPhase('one-shot', 'Succeeded')
    expect(containerOf(pod, 'task').restartCount).toBe(0)
    expect(await podd.cliOk('logs', 'one-shot')).toBe('working\ndone\n')
    await end(podd, 'one-shot')
  })

  it('host-network serves on the loopback device of the host', async () => {
    const podd = rig()
    const port = await freePort()
    drop(podd, 'host-network', [['127.0.0.1:8090', `127.0.0.1:${port}`]])
    await podd.untilReady('host-network')
    expect(await page(`http://127.0.0.1:${port}/`, /lo/u)).toContain('127.0.0.1/8')
    await end(podd, 'host-network')
  })

  it('host-directory writes to a directory of the host, which is made', async () => {
    const podd = rig()
    drop(podd, 'host-directory', [['/var/lib/podd-example', join(podd.shared, 'made')]])
    await podd.untilReady('host-directory')
    await podd.untilLine('made/starts', /^started /u)
    await end(podd, 'host-directory')
    expect(podd.lines('made/starts')).toHaveLength(1)
  })

  it('crash-loop waits in its backoff, and shows the log of the run before', async () => {
    const podd = rig()
    drop(podd, 'crash-loop')
    const pod = await podd.untilPod('crash-loop', 'waiting before its second restart', (found) => {
      const { state, restartCount } = containerOf(found, 'broken')
      return restartCount === 1 && state?.waiting?.reason === 'CrashLoopBackOff'
    })
    expect(containerOf(pod, 'broken').lastState?.terminated).toMatchObject({ exitCode: 3, reason: 'Error' })
    expect(await podd.cliOk('logs', 'crash-loop', '--previous')).toBe('cannot open the database\n')
    await end(podd, 'crash-loop')
  })

  it('are all tried here', () => {
    expect(new Set(readdirSync(manifests))).toEqual(tried)
  })
})
