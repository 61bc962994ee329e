import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { otherShell } from '../support/podd-program.ts'
import { podOf, saidAt, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const missing = 'localhost/podd-test/shell:tpyo'

/** A pod that serves its own name on a host port. */
function server(podd: PoddRig, name: string, hostPort: number, image?: string): object {
  return shellPod(name, podd.shared, `echo ${name} >/index.html; say start; exec httpd -f -p 80 -h /`, {
    container: { ports: [{ containerPort: 80, hostPort }], ...(image === undefined ? {} : { image }) },
  })
}

async function ports(count: number): Promise<readonly number[]> {
  const found = new Set<number>()
  while (found.size < count) found.add(await freePort())
  return [...found]
}

/** Waits until each of these ports is served by the pod of that name; gives the pods' UIDs. */
async function untilServed(podd: PoddRig, served: ReadonlyMap<number, string>): Promise<readonly string[]> {
  const [first = ''] = served.values()
  const { hostIP } = (await podd.untilReady(first)).status
  for (const [port, name] of served) {
    const page = async (): Promise<string> => {
      const response = await fetch(`http://${hostIP}:${port}/`, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(2000),
      })
      return await response.text()
    }
    await podd.until(`${name} on its new port`, async () => (await page().catch(() => '')) === `${name}\n`)
  }
  const pods = await Promise.all([...served.values()].toSorted().map((name) => podd.untilReady(name)))
  return pods.map(({ metadata }) => metadata.uid)
}

describePodd('updates', {}, (rig) => {
  // id: restarts-only-container-image
  it.concurrent('restarts only the container whose image changed, in the same pod', async () => {
    const podd = rig()
    const pod = (image: string) =>
      podOf('image', podd.shared, [
        shellContainer('steady', 'image', 'say steady; stay'),
        shellContainer('changing', 'image', 'say changing; stay', { image }),
      ])
    podd.drop('image', pod('localhost/podd-test/shell:1'))
    const before = await podd.untilReady('image')
    podd.drop('image', pod(otherShell))
    const after = await podd.untilPod(
      'image',
      'the new image',
      (now) => containerOf(now, 'changing').image === otherShell && containerOf(now, 'changing').ready,
    )
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(after, 'steady').containerID).toBe(containerOf(before, 'steady').containerID)
    expect(containerOf(after, 'steady').restartCount).toBe(0)
    expect(containerOf(after, 'changing').restartCount).toBe(1)
    expect(containerOf(after, 'changing').lastState.terminated?.exitCode).toBe(0)
    expect(wordsOf(podd.lines('image')).filter((word) => word === 'steady')).toHaveLength(1)
  })

  // id: keeps-old-image-running
  it.concurrent('keeps the old image running when only the tag is mistyped, whatever ends its container', async () => {
    const podd = rig()
    const pod = (image: string) => shellPod('tag', podd.shared, 'say start; stay', { container: { image } })
    podd.drop('tag', pod('localhost/podd-test/shell:1'))
    const before = await podd.untilReady('tag')
    podd.drop('tag', pod(missing))
    await podd.untilEvent('tag', 'Failed', /tpyo/u)
    expect(containerOf(await podd.untilReady('tag'), 'main').containerID).toBe(
      containerOf(before, 'main').containerID,
    )
    // Nor is it down after it has ended by itself.
    process.kill(podd.pidOf(containerOf(before, 'main').containerID ?? ''), 'SIGTERM')
    await podd.untilEvent(
      'tag',
      'Failed',
      /runs again with the image it had, ".*:1", until ".*:tpyo" can be had/u,
    )
    expect(await podd.untilWords('tag', 3)).toEqual(['start', 'end', 'start'])
    expect(containerOf(await podd.untilReady('tag'), 'main')).toMatchObject({
      image: containerOf(before, 'main').image,
      restartCount: 1,
    })
    podd.drop('tag', pod(otherShell))
    await podd.untilPod('tag', 'the new image', (now) => containerOf(now, 'main').image === otherShell)
    expect(await podd.untilWords('tag', 5)).toEqual(['start', 'end', 'start', 'end', 'start'])
  })

  // id: starts-added-ephemeral-container
  it.concurrent('starts an added ephemeral container in the running pod, and never again', async () => {
    const podd = rig()
    const debug = (name: string, script: string) =>
      shellContainer(name, 'debugged', script, { targetContainerName: 'main' })
    const pod = (...ephemeralContainers: readonly object[]) =>
      shellPod('debugged', podd.shared, 'say main; stay', { spec: { ephemeralContainers } })
    podd.drop('debugged', pod())
    const before = await podd.untilReady('debugged')
    const looker = debug('looker', 'grep -q "say main" /proc/1/cmdline && say sees main; stay')
    podd.drop('debugged', pod(looker))
    await podd.untilLine('debugged', / sees main$/u)
    const socket = ['--socket', podd.socketPath]
    const inside = ['exec', ...socket, 'debugged', '-c', 'looker', '--', 'sh', '-c', 'echo inside']
    expect(await podd.cliOk(...inside)).toBe('inside\n')
    podd.drop('debugged', pod(debug('brief', 'say brief; echo logged; exit 3'), looker))
    const after = await podd.untilPod(
      'debugged',
      'the end of the brief one',
      ({ status }) => status.ephemeralContainerStatuses?.[0]?.state.terminated !== undefined,
    )
    expect(after.status.ephemeralContainerStatuses).toMatchObject([
      {
        name: 'brief',
        ready: false,
        restartCount: 0,
        state: { terminated: { exitCode: 3, reason: 'Error' } },
      },
      { name: 'looker', ready: false, restartCount: 0 },
    ])
    expect(await podd.cliOk('logs', 'debugged', '-c', 'brief')).toBe('logged\n')
    expect(await podd.cliOk('describe', 'pod', 'debugged')).toContain('Ephemeral Containers:\n  brief:')
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(after, 'main').containerID).toBe(containerOf(before, 'main').containerID)
    expect(conditionOf(after, 'Ready')).toBe('True')

    // Nothing starts them a second time.
    await podd.cliOk('restart', 'debugged')
    await podd.untilPod('debugged', 'a restart', (now) => containerOf(now, 'main').restartCount === 1)
    await podd.untilReady('debugged')
    const words = wordsOf(podd.lines('debugged'))
    expect(words.filter((word) => word === 'brief')).toHaveLength(1)
    expect(words.filter((word) => word === 'sees main')).toHaveLength(1)

    // What Kubernetes would refuse makes a new pod here.
    podd.drop('debugged', pod())
    const next = await podd.untilPod(
      'debugged',
      'the next pod',
      ({ metadata, status }) => metadata.uid !== before.metadata.uid && status.phase === 'Running',
    )
    expect(next.status.ephemeralContainerStatuses).toBeUndefined()
  })

  // id: keeps-old-pod-running
  it.concurrent('keeps the old pod running until the new one could start', async () => {
    const podd = rig()
    const pod = (word: string, image: string) =>
      shellPod('careful', podd.shared, `say ${word}; stay`, { container: { image } })
    podd.drop('careful', pod('old', 'localhost/podd-test/shell:1'))
    const before = await podd.untilReady('careful')
    podd.drop('careful', pod('new', missing))
    await podd.untilNote(/careful\.yaml.*the new version is not applied and the old one keeps running.*tpyo/u)
    const described = await podd.cliOk('describe', 'pod', 'careful')
    expect(described).toContain('the old one keeps running')
    const still = await podd.untilReady('careful')
    expect(still.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(still, 'main').restartCount).toBe(0)

    podd.drop('careful', pod('new', otherShell))
    await podd.untilLine('careful', / new$/u)
    const after = await podd.untilReady('careful')
    expect(after.metadata.uid).not.toBe(before.metadata.uid)
    expect(await podd.untilWords('careful', 3)).toEqual(['old', 'end', 'new'])
    expect(await podd.notes()).not.toContain('careful')
  })

  it.concurrent('keeps the old pod running while the new one mounts what is missing over a file', async () => {
    const podd = rig()
    const path = join(podd.shared, 'names')
    const mounts = [{ name: 'names', mountPath: '/etc/passwd' }]
    const volumes = [{ name: 'names', hostPath: { path } }]
    podd.drop('named', shellPod('named', podd.shared, 'say old; stay'))
    const before = await podd.untilReady('named')
    podd.drop('named', shellPod('named', podd.shared, 'say new; stay', { volumes, mounts }))
    await podd.untilNote(/named\.yaml.*the old one keeps running.*has a file at \/etc\/passwd in its image/u)
    const still = await podd.untilReady('named')
    expect(still.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(still, 'main').restartCount).toBe(0)
    expect(existsSync(path)).toBe(false)
    writeFileSync(path, 'root:x:0:0:root:/:/bin/sh\n')
    expect(await podd.untilWords('named', 3)).toEqual(['old', 'end', 'new'])
  })

  // id: lets-replaced-pod-grace
  it.concurrent('lets a replaced pod have its grace, and starts the new one right after', async () => {
    const podd = rig()
    const pod = (word: string) =>
      shellPod('deaf', podd.shared, `trap '' TERM; say ${word}; while :; do sleep 0.1; say alive; done`, {
        spec: { terminationGracePeriodSeconds: 4 },
      })
    podd.drop('deaf', pod('old'))
    await podd.untilReady('deaf')
    podd.drop('deaf', pod('new'))
    await podd.untilPod('deaf', 'its end', ({ metadata }) => metadata.deletionTimestamp !== undefined)
    const endingAtSeconds = saidAt(await podd.untilLine('deaf', / alive$/u), 'alive')
    expect((await podd.cliOk('get', 'pods', 'deaf')).split('\n')[1]).toContain('Terminating')
    const lines = await podd.untilLine('deaf', / new$/u)
    const lastAlive = Number(lines[lines.findIndex((line) => line.endsWith(' new')) - 1]?.split(' ')[0])
    const newAt = saidAt(lines, 'new')
    expect(lastAlive - endingAtSeconds).toBeGreaterThan(2)
    // Far from instant on a busy machine; a kubelet takes over ten seconds.
    expect(newAt - lastAlive).toBeLessThan(9 * slowness)
    podd.removeManifest('deaf')
    await podd.untilGone('deaf')
  })

  // id: swaps-host-ports
  it.concurrent('has two pods swap host ports, and ends neither while the image of one cannot be pulled', async () => {
    const podd = rig()
    const [one = 0, two = 0] = await ports(2)
    podd.drop('able', server(podd, 'able', one))
    podd.drop('unable', server(podd, 'unable', two))
    const before = [await podd.untilReady('able'), await podd.untilReady('unable')]
    podd.drop('able', server(podd, 'able', two))
    podd.drop('unable', server(podd, 'unable', one, missing))
    await podd.untilNote(/able\.yaml.*keeps running.*that of default\/unable cannot start.*tpyo/u)
    await podd.untilNote(/unable\.yaml.*keeps running.*tpyo/u)
    const after = [await podd.untilReady('able'), await podd.untilReady('unable')]
    expect(after.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid))
    await untilServed(
      podd,
      new Map([
        [one, 'able'],
        [two, 'unable'],
      ]),
    )

    // As soon as it can, both go.
    podd.drop('unable', server(podd, 'unable', one))
    await untilServed(
      podd,
      new Map([
        [two, 'able'],
        [one, 'unable'],
      ]),
    )
  })
})
