import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { freePort } from '../support/free-port.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { otherShell, shell } from '../support/podd-program.ts'
import { podOf, saidAt, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const missing = 'localhost/podd-test/shell:tpyo'

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
    await podd.until('the reason in `get pods`', async () => {
      const { stderr } = await podd.cli('get', 'pods')
      return /careful\.yaml.*the new version is not applied and the old one keeps running.*tpyo/u.test(stderr)
    })
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
    const { stderr } = await podd.cli('get', 'pods')
    expect(stderr).not.toContain('careful')
  })

  // id: keeps-old-pod-running-host
  it.concurrent('keeps the old pod running while the host has no room for the new one', async () => {
    const podd = rig()
    const pod = (word: string, cpu: string) =>
      shellPod('modest', podd.shared, `say ${word}; stay`, {
        container: { resources: { requests: { cpu } } },
      })
    podd.drop('modest', pod('old', '10m'))
    const before = await podd.untilReady('modest')
    podd.drop('modest', pod('new', '5000'))
    await podd.untilNote(/modest\.yaml.*the old one keeps running.*cpu/iu)
    const still = await podd.untilReady('modest')
    expect(still.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(still, 'main').restartCount).toBe(0)
    podd.drop('modest', pod('new', '20m'))
    await podd.untilLine('modest', / new$/u)
    expect(await podd.untilWords('modest', 3)).toEqual(['old', 'end', 'new'])
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

  // id: counts-crashes-failed-pulls
  it.concurrent('counts crashes and failed pulls apart, and forgets both when the manifest changes', async () => {
    const podd = rig()
    const pod = (image: string) =>
      podOf('mended', podd.shared, [
        shellContainer('crash', 'mended', `say crash; exit 1`, { image: image === missing ? shell : image }),
        shellContainer('pull', 'mended-pull', 'say up; stay', { image }),
      ])
    // Another try of this test begins anew.
    podd.removeManifest('mended')
    await podd.untilGone('mended')
    podd.drop('mended', pod(missing))
    const waiting = await podd.untilPod(
      'mended',
      'both backoffs',
      (now) =>
        containerOf(now, 'crash').state.waiting?.reason === 'CrashLoopBackOff' &&
        containerOf(now, 'pull').state.waiting?.reason === 'ImagePullBackOff',
    )
    expect(containerOf(waiting, 'pull').restartCount).toBe(0)
    const { lastState } = containerOf(waiting, 'crash')
    const crashed = podd.lines('mended').length
    const [droppedAt = ''] = readFileSync('/proc/uptime', 'utf8').split(' ')
    podd.drop('mended', pod(otherShell))
    await podd.until(
      'both again',
      () => podd.lines('mended').length > crashed && podd.lines('mended-pull').length > 0,
    )
    const again = Number(podd.lines('mended')[crashed]?.split(' ')[0])
    // The second crash earns ten seconds, and any further one more.
    expect(lastState.terminated?.exitCode).toBe(1)
    expect(again - Number(droppedAt)).toBeLessThan(9.5 * slowness)
  })

  // id: lets-replaced-pod-grace
  it.concurrent('lets a replaced pod have its grace, and starts the new one right after', async () => {
    const podd = rig()
    const pod = (word: string) =>
      shellPod('deaf', podd.shared, `trap '' TERM; say ${word}; while :; do sleep 0.1; say alive; done`, {
        spec: { terminationGracePeriodSeconds: 8 },
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

  // id: starts-pod-added-again
  it.concurrent('starts a pod that was added again while it ended, after that end', async () => {
    const podd = rig()
    const script = `trap 'say ending; sleep 1; say ended; exit 0' TERM; say start; sleep 1000 & wait`
    const pod = shellPod('back', podd.shared, script, { spec: { terminationGracePeriodSeconds: 10 } })
    podd.drop('back', pod)
    const before = await podd.untilReady('back')
    podd.removeManifest('back')
    await podd.untilLine('back', / ending$/u)
    podd.drop('back', pod)
    const after = await podd.untilPod(
      'back',
      'the next one',
      ({ metadata, status }) => metadata.uid !== before.metadata.uid && status.phase === 'Running',
    )
    expect(await podd.untilWords('back', 4)).toEqual(['start', 'ending', 'ended', 'start'])
    expect(after.metadata.deletionTimestamp).toBeUndefined()
  })

  // id: pod-wait-host-port
  it.concurrent('has a pod wait for a host port that another one holds', async () => {
    const podd = rig()
    const ports = [{ containerPort: 80, hostPort: await freePort() }]
    const pod = (name: string) => shellPod(name, podd.shared, 'say start; stay', { container: { ports } })
    podd.drop('holder', pod('holder'))
    await podd.untilReady('holder')
    await podd.untilLine('holder', / start$/u)
    podd.drop('heir', pod('heir'))
    const waiting = await podd.untilPod('heir', 'its reason', ({ status }) => status.reason !== undefined)
    expect(waiting.status).toMatchObject({ phase: 'Pending', reason: 'Blocked' })
    expect(waiting.status.message).toContain('default/holder')
    expect(podd.lines('heir')).toEqual([])
    podd.removeManifest('holder')
    await podd.untilReady('heir')
    const freedAt = saidAt(await podd.untilLine('holder', / end$/u), 'end')
    expect(saidAt(await podd.untilLine('heir', / start$/u), 'start')).toBeGreaterThanOrEqual(freedAt)
  })

  // id: hands-host-port-over
  it.concurrent('hands a host port over when the pod that holds it is replaced', async () => {
    const podd = rig()
    const hostPort = await freePort()
    const pod = (word: string) =>
      shellPod('handover', podd.shared, `echo ${word} >/index.html; exec httpd -f -p 80 -h /`, {
        container: { ports: [{ containerPort: 80, hostPort }] },
      })
    podd.drop('handover', pod('old'))
    const { hostIP } = (await podd.untilReady('handover')).status
    const page = async () => (await fetch(`http://${hostIP}:${hostPort}/`)).text()
    await podd.until('the old page', async () => (await page()) === 'old\n')
    podd.drop('handover', pod('new'))
    expect(await podd.until('the new page', async () => (await page()) === 'new\n')).toBe(true)
  })

  // id: makes-sandbox-died-anew
  it.concurrent('makes a sandbox that died anew, with the next attempt', async () => {
    const podd = rig()
    podd.drop('box', shellPod('box', podd.shared, 'say start; stay'))
    const before = await podd.untilReady('box')
    const { uid } = before.metadata
    const sandboxes = () =>
      podd.containerIds(uid).filter((id) => `containerd://${id}` !== containerOf(before, 'main').containerID)
    const [sandbox = ''] = sandboxes()
    process.kill(podd.pidOf(sandbox), 'SIGKILL')
    const after = await podd.untilPod(
      'box',
      'its next sandbox',
      (pod) => containerOf(pod, 'main').restartCount === 1 && containerOf(pod, 'main').ready,
    )
    expect(after.metadata.uid).toBe(uid)
    expect(after.status.podIP).toBeDefined()
    expect(conditionOf(after, 'PodReadyToStartContainers')).toBe('True')
    expect((await podd.events('box')).filter(({ reason }) => reason === 'SandboxChanged')).toHaveLength(1)
    expect(wordsOf(podd.lines('box')).filter((word) => word === 'start')).toHaveLength(2)
    podd.removeManifest('box')
    await podd.untilGone('box')
    expect(podd.containerIds(uid)).toEqual([])
  })

  it('counts the changes of the spec, over a restart of podd', async () => {
    const drop = (image: string | undefined, metadata: object): void => {
      const main = shellContainer('main', 'counted', 'stay', image === undefined ? {} : { image })
      rig().drop(
        'counted',
        podOf('counted', rig().shared, [main], { metadata: { ...metadata, generation: 7 } }),
      )
    }
    const generations = ({ metadata, status }: PodObject): readonly (number | undefined)[] => [
      metadata.generation,
      status.observedGeneration,
      ...status.conditions.map(({ observedGeneration }) => observedGeneration),
    ]
    drop(undefined, {})
    expect(new Set(generations(await rig().untilReady('counted')))).toEqual(new Set([1]))
    drop(undefined, { labels: { tier: 'front' } })
    const labelled = await rig().untilPod(
      'counted',
      'its label',
      ({ metadata }) => metadata.labels !== undefined,
    )
    expect(new Set(generations(labelled))).toEqual(new Set([1]))
    drop(otherShell, { labels: { tier: 'front' } })
    const changed = await rig().untilPod('counted', 'its image', ({ status }) => {
      const [main] = status.containerStatuses ?? []
      return main?.state.running !== undefined && main.image === otherShell
    })
    expect(new Set(generations(changed))).toEqual(new Set([2]))
    await rig().restartDaemon('SIGKILL')
    expect(new Set(generations(await rig().untilReady('counted')))).toEqual(new Set([2]))
    rig().removeManifest('counted')
    await rig().untilGone('counted')
  })
})
