import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { processesOf } from '../support/leftovers.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podOf, saidAt, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

/** Seconds between what was said and what was said next. */
function gapsOf(lines: readonly string[]): number[] {
  const times = lines.map((line) => Number(line.split(' ')[0]))
  return times.slice(1).map((time, index) => time - (times[index] ?? 0))
}

describePodd('restarts', {}, (rig) => {
  // id: restarts-crashed-container-once
  it.concurrent('restarts a crashed container at once, then after its backoff', async () => {
    const podd = rig()
    podd.drop('crash', shellPod('crash', podd.shared, 'say crash; exit 3'))
    const pod = await podd.untilPod(
      'crash',
      'its backoff',
      ({ status }) => status.containerStatuses?.[0]?.state.waiting?.reason === 'CrashLoopBackOff',
    )
    expect(containerOf(pod, 'main').state.waiting?.message).toMatch(
      /^back-off 1s restarting failed container=main pod=crash_default\(.*\)$/u,
    )
    expect(containerOf(pod, 'main').lastState.terminated).toMatchObject({ exitCode: 3, reason: 'Error' })
    expect(pod.status.phase).toBe('Running')
    expect(conditionOf(pod, 'Ready')).toBe('False')
    expect((await podd.cliOk('get', 'pods', 'crash')).split('\n')[1]).toMatch(/^crash +0\/1 +\w+ +\d/u)
    await podd.untilEvent('crash', 'BackOff', /Back-off restarting failed container main/u)
    await podd.until('the fourth start', () => podd.lines('crash').length >= 4)
    const [free = 0, second = 0, third = 0] = gapsOf(podd.lines('crash'))
    expect(free).toBeLessThan(2 * slowness)
    expect(second).toBeGreaterThan(0.9)
    expect(third).toBeGreaterThan(0.9)
    expect(Math.max(second, third)).toBeLessThan(6 * slowness)
    podd.removeManifest('crash')
    await podd.untilGone('crash')
  })

  // id: runs-pod-under-onfailure
  it.concurrent('runs a pod under OnFailure until it succeeds', async () => {
    const podd = rig()
    const script = 'say run; [ $(wc -l </shared/retry) -ge 3 ]'
    podd.drop('retry', shellPod('retry', podd.shared, script, { spec: { restartPolicy: 'OnFailure' } }))
    const pod = await podd.untilPhase('retry', 'Succeeded')
    expect(containerOf(pod, 'main').restartCount).toBe(2)
    expect(containerOf(pod, 'main').state.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' })
    expect(podd.lines('retry')).toHaveLength(3)
    expect((await podd.cliOk('get', 'pods', 'retry')).split('\n')[1]).toMatch(/^retry +0\/1 +Completed +2/u)
  })

  it.concurrent('runs a job again whose sandbox died, although it exits with 0', async () => {
    const podd = rig()
    const script = `say start; [ $(grep -c start /shared/boxed) -ge 2 ] && exit 0; stay`
    const main = shellContainer('main', 'boxed', script)
    const side = shellContainer('side', 'boxed-side', 'say start; stay', { restartPolicy: 'Always' })
    const spec = { restartPolicy: 'OnFailure', initContainers: [side] }
    podd.drop('boxed', podOf('boxed', podd.shared, [main], { spec }))
    const { metadata, status } = await podd.untilReady('boxed')
    const made = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    const sandbox = podd
      .containerIds(metadata.uid)
      .find((id) => made.every(({ containerID }) => containerID !== `containerd://${id}`))
    process.kill(podd.pidOf(sandbox ?? ''), 'SIGKILL')
    const pod = await podd.untilPhase('boxed', 'Succeeded')
    expect(containerOf(pod, 'main').restartCount).toBe(1)
    expect(wordsOf(podd.lines('boxed'))).toEqual(['start', 'end', 'start'])
    expect(wordsOf(podd.lines('boxed-side'))).toEqual(['start', 'end', 'start', 'end'])
    expect(podd.containerIds(metadata.uid).every((id) => podd.pidOf(id) === 0)).toBe(true)
  })

  it.concurrent('fails a pod under Never whose container fails, and stops its sandbox', async () => {
    const podd = rig()
    podd.drop('once', shellPod('once', podd.shared, 'say run; exit 7', { spec: { restartPolicy: 'Never' } }))
    const pod = await podd.untilPhase('once', 'Failed')
    expect(containerOf(pod, 'main').state.terminated).toMatchObject({ exitCode: 7, reason: 'Error' })
    expect(containerOf(pod, 'main').restartCount).toBe(0)
    // Its sandbox is of no use any more; its address is told still.
    expect(pod.status.podIP).toMatch(/^\d+\./u)
    await podd.until('the end of its sandbox', () =>
      podd.containerIds(pod.metadata.uid).every((id) => podd.pidOf(id) === 0),
    )
  })

  it.concurrent(
    "follows a container's own rules for its exit code",
    proves(
      'restart-rules',
      'Container: restartPolicyRules',
      'ContainerRestartRule: action exitCodes',
      'ContainerRestartRuleOnExitCodes: operator values',
    ),
    async () => {
      const podd = rig()
      const restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }]
      const container = { restartPolicy: 'Never', restartPolicyRules }
      const script = 'say run; [ $(wc -l </shared/rules) -ge 2 ] && exit 1; exit 42'
      podd.drop(
        'rules',
        shellPod('rules', podd.shared, script, { container, spec: { restartPolicy: 'Never' } }),
      )
      const pod = await podd.untilPhase('rules', 'Failed')
      expect(containerOf(pod, 'main').restartCount).toBe(1)
      expect(podd.lines('rules')).toHaveLength(2)
    },
  )

  // id: restarts-containers-pod-sandbox
  it.concurrent('restarts all containers of a pod in its sandbox when a rule asks for it', async () => {
    const podd = rig()
    const rule = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [88] } }
    const watching = `say watcher
      until [ -e /shared/all-reset ]; do sleep 0.1; done
      [ "$(grep -c watcher /shared/all)" -ge 2 ] && stay
      say watcher asks; exit 88`
    // Neither the grace nor preStop is theirs: SIGTERM is all that they get.
    const deaf = `echo lived; say main; trap '' TERM; while :; do sleep 0.1; done`
    const preStop = { exec: { command: ['sh', '-c', 'echo 0 prestop >>/shared/all'] } }
    podd.drop(
      'all',
      podOf(
        'all',
        podd.shared,
        [
          shellContainer('main', 'all', deaf, { lifecycle: { preStop } }),
          shellContainer('short', 'all', 'say short; exit 0'),
        ],
        {
          spec: {
            restartPolicy: 'Never',
            terminationGracePeriodSeconds: 600,
            initContainers: [
              shellContainer(
                'setup',
                'all',
                'say setup; echo x >>/kept/setups; say setups $(wc -l </kept/setups)',
                {
                  volumeMounts: [{ name: 'kept', mountPath: '/kept' }],
                },
              ),
              shellContainer('watcher', 'all', watching, {
                restartPolicy: 'Always',
                restartPolicyRules: [rule],
              }),
            ],
          },
          volumes: [{ name: 'kept', emptyDir: {} }],
        },
      ),
    )
    const before = await podd.untilPod(
      'all',
      'its first life',
      (now) => containerOf(now, 'short').state.terminated !== undefined && containerOf(now, 'main').ready,
    )
    await podd.untilLine('all', / main$/u)
    expect(conditionOf(before, 'AllContainersRestarting')).toBe('False')
    podd.touchShared('all-reset')
    const after = await podd.untilPod(
      'all',
      'its second life',
      (now) =>
        containerOf(now, 'main').ready &&
        ['setup', 'watcher', 'main', 'short'].every((name) => containerOf(now, name).restartCount === 1),
    )
    await podd.until('all words', () => podd.lines('all').length >= 11)
    const words = wordsOf(podd.lines('all'))
    expect(words.slice(0, 3)).toEqual(['setup', 'setups 1', 'watcher'])
    expect(words.slice(3, 5).toSorted()).toEqual(['main', 'short'])
    // The volume was kept.
    expect(words.slice(5, 9)).toEqual(['watcher asks', 'setup', 'setups 2', 'watcher'])
    expect(words.slice(9).toSorted()).toEqual(['main', 'short'])
    expect({ uid: after.metadata.uid, ip: after.status.podIP }).toEqual({
      uid: before.metadata.uid,
      ip: before.status.podIP,
    })
    expect(containerOf(after, 'watcher').lastState.terminated).toMatchObject({ exitCode: 88 })
    expect(containerOf(after, 'main').lastState.terminated).toMatchObject({ exitCode: 137 })
    expect(conditionOf(after, 'AllContainersRestarting')).toBe('False')
    await podd.untilEvent('all', 'Killing', /^Container main is stopped for a restart of all containers$/u)
    // A deaf container with its whole grace would take ten minutes.
    const seconds = saidAt(podd.lines('all').slice(3), 'setup') - saidAt(podd.lines('all'), 'watcher asks')
    expect(seconds).toBeLessThan(60 * slowness)
    expect(await podd.cliOk('logs', 'all', '-c', 'main', '--previous')).toBe('lived\n')
  })

  it.concurrent(
    'ends a pod that is active for longer than its deadline',
    proves('active-deadline', 'PodSpec: activeDeadlineSeconds'),
    async () => {
      const podd = rig()
      // Long enough for the container to be made before.
      const spec = { activeDeadlineSeconds: Math.ceil(4 * slowness) }
      podd.drop('overdue', shellPod('overdue', podd.shared, 'say start; stay', { spec }))
      const pod = await podd.untilPhase('overdue', 'Failed')
      expect(pod.status).toMatchObject({ reason: 'DeadlineExceeded' })
      expect(pod.status.message).toBe('Pod was active on the node longer than the specified deadline')
      const lines = await podd.untilLine('overdue', / end$/u)
      // The deadline counts from the pod's start, of which the sandbox takes its share.
      expect(gapsOf(lines)[0]).toBeGreaterThan(0.3)
      expect(Date.parse(containerOf(pod, 'main').state.terminated?.finishedAt ?? '')).toBeGreaterThanOrEqual(
        Date.parse(pod.status.startTime ?? '') + 1000 * spec.activeDeadlineSeconds,
      )
      expect(wordsOf(lines)).toEqual(['start', 'end'])
      expect(await podd.cliOk('describe', 'pod', 'overdue')).toContain('DeadlineExceeded')
    },
  )

  it.concurrent(
    'reads termination messages by both policies',
    proves(
      'termination-messages',
      'Container: terminationMessagePath terminationMessagePolicy',
      'PodSpec: restartPolicy',
    ),
    async () => {
      const podd = rig()
      const spec = { restartPolicy: 'Never' }
      const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' }
      podd.drop(
        'messages',
        podOf(
          'messages',
          podd.shared,
          [
            shellContainer('file', 'm', 'echo -n from the file >/dev/termination-log; echo logged; exit 1'),
            shellContainer('path', 'm', 'echo -n elsewhere >/tmp/last-words; exit 0', {
              terminationMessagePath: '/tmp/last-words',
            }),
            shellContainer('logs', 'm', 'echo one; echo two >&2; exit 1', fallback),
            shellContainer('well', 'm', 'echo one; exit 0', fallback),
            shellContainer('silent', 'm', 'echo one; exit 1'),
          ],
          { spec },
        ),
      )
      const pod = await podd.untilPhase('messages', 'Failed')
      const message = (name: string) => containerOf(pod, name).state.terminated?.message ?? ''
      expect(message('file')).toBe('from the file')
      expect(message('path')).toBe('elsewhere')
      expect(
        message('logs')
          .split('\n')
          .filter((line) => line !== '')
          .sort(),
      ).toEqual(['one', 'two'])
      expect(message('well')).toBe('')
      expect(message('silent')).toBe('')
      expect(await podd.cliOk('describe', 'pod', 'messages')).toContain('from the file')
    },
  )

  // id: leaves-finished-pods-finished
  it('leaves finished pods finished when it is started again', async () => {
    const podd = rig()
    const over = ['retry', 'once', 'overdue', 'messages', 'rules']
    const seen = async () => Promise.all(over.map(async (name) => outcomeOf(podd, name)))
    const before = await seen()
    await podd.restartDaemon('SIGKILL')
    await podd.until('the pods', async () => (await podd.pods()).length >= over.length)
    podd.drop('marker', shellPod('marker', podd.shared, 'say start; stay'))
    await podd.untilReady('marker')
    expect(await seen()).toEqual(before)
    expect(podd.lines('retry')).toHaveLength(3)
    expect(podd.lines('once')).toHaveLength(1)
    expect(await podd.untilWords('overdue', 2)).toEqual(['start', 'end'])
  })

  // id: after-reboot-runs-ran
  it('after a reboot, runs what ran, and nothing that had finished', async () => {
    const podd = rig()
    podd.drop(
      'lasting',
      podOf('lasting', podd.shared, [shellContainer('main', 'lasting', 'say main; stay')], {
        spec: {
          initContainers: [
            shellContainer('setup', 'lasting', 'say setup'),
            shellContainer('proxy', 'lasting', 'say proxy; stay', { restartPolicy: 'Always' }),
          ],
        },
      }),
    )
    podd.drop(
      'only-once',
      shellPod('only-once', podd.shared, 'say start; stay', { spec: { restartPolicy: 'Never' } }),
    )
    const [before] = await Promise.all([podd.untilReady('lasting'), podd.untilReady('only-once')])
    await podd.untilLine('lasting', / main$/u)
    await podd.untilLine('only-once', / start$/u)
    const over = ['retry', 'once', 'overdue', 'messages', 'rules']
    const seen = async () => Promise.all(over.map(async (name) => outcomeOf(podd, name)))
    const finished = await seen()
    await powerCut(podd)
    ageSandbox(podd, before.metadata.uid)
    await podd.startDaemon()
    const after = await podd.untilPod(
      'lasting',
      'its second life',
      (pod) =>
        conditionOf(pod, 'Ready') === 'True' &&
        ['setup', 'proxy', 'main'].every((name) => containerOf(pod, name).restartCount === 1),
    )
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(after, 'main').lastState.terminated).toMatchObject({
      exitCode: 255,
      reason: 'Unknown',
      message: 'The container was running when the host was restarted or lost power',
    })
    expect(await podd.untilWords('lasting', 6)).toEqual(['setup', 'proxy', 'main', 'setup', 'proxy', 'main'])
    // It was cut off, and may not run again.
    const once = await podd.untilPhase('only-once', 'Failed')
    expect(containerOf(once, 'main').restartCount).toBe(0)
    expect(await seen()).toEqual(finished)
    expect(podd.lines('retry')).toHaveLength(3)
    expect(podd.lines('once')).toHaveLength(1)
    expect(await podd.untilWords('only-once', 1)).toEqual(['start'])
  })
})

/** As after a power cut: nothing runs any more, and the disk is as it was. */
async function powerCut(podd: PoddRig): Promise<void> {
  await podd.stopDaemon('SIGKILL')
  const { containerdPid } = podd
  expect(containerdPid).toBeGreaterThan(0)
  process.kill(containerdPid, 'SIGKILL')
  await podd.until('the end of all', () => {
    const left = processesOf(podd.places)
    for (const pid of left) process.kill(pid, 'SIGKILL')
    return left.length === 0
  })
}

/** The kernel's boot id stays as it is here: the pod's last sandbox is of another boot than this one. */
function ageSandbox(podd: PoddRig, uid: string): void {
  const path = join(podd.rootDir, 'records', `${uid}.json`)
  const record: unknown = JSON.parse(readFileSync(path, 'utf8'))
  expect(record).toMatchObject({
    sandboxBootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
  })
  writeFileSync(path, JSON.stringify(Object.assign({}, record, { sandboxBootId: 'the boot before' })))
}

async function outcomeOf(podd: PoddRig, name: string) {
  const pod = await podd.findPod(name)
  return [pod?.metadata.uid, pod?.status.phase, pod?.status.reason, pod?.status.containerStatuses]
}
