import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { UnitObject } from '../../src/api/sources.ts'
import { shell } from '../support/podd-program.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

function save(podd: PoddRig, name: string, pod: object): string {
  const path = join(podd.directory, `${name}.yaml`)
  writeFileSync(path, JSON.stringify(pod))
  return path
}

describePodd('apply, diff, wait and delete', { config: { updates: { minReady: '2s' } } }, (rig) => {
  it('take a manifest from its first application to its end', async () => {
    const podd = rig()
    const first = save(podd, 'web', shellPod('web', podd.shared, 'say start; stay'))
    expect(await podd.cli('diff', '-f', first)).toMatchObject({
      code: 1,
      stdout: 'create   pod default/web\n',
    })
    expect(await podd.cliOk('apply', '-f', first, '--wait')).toBe('create   pod default/web\n')
    const [unit] = await podd.get<readonly UnitObject[]>('/podd/v1/units')
    expect(unit?.status).toMatchObject({ state: 'Healthy', active: 1 })
    expect(podd.lines('web')).toHaveLength(1)
    expect(await podd.cli('diff', '-f', first)).toMatchObject({ code: 0, stdout: '' })
    expect(await podd.cliOk('wait', 'pod/web', '--for=condition=Ready')).toBe('pod/web condition met\n')
    const uid = (await podd.findPod('web'))?.metadata.uid

    save(
      podd,
      'web',
      shellPod('web', podd.shared, 'say again; stay', { metadata: { labels: { tier: 'front' } } }),
    )
    const changed = await podd.cli('diff', '-f', first)
    expect(changed).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^replace {2}pod default\/web: spec\.containers\[0\]\.command\[2\] .+ -> .+\n$/u,
      ),
    })
    await podd.cliOk('apply', '-f', first, '--wait')
    expect(podd.lines('web').map((line) => line.split(' ')[1])).toEqual(['start', 'end', 'again'])
    expect((await podd.findPod('web'))?.metadata.uid).not.toBe(uid)

    expect(await podd.cliOk('delete', 'pod', 'web')).toBe('pod "web" deleted\n')
    expect(await podd.findPod('web')).toBeUndefined()
    expect(existsSync(join(podd.manifests, 'web.yaml'))).toBe(false)
    expect(existsSync(first)).toBe(true)
  })

  it('look into a pod of a file, which no restart of podd ends, and kill one that would take its time', async () => {
    const podd = rig()
    const spec = { terminationGracePeriodSeconds: 300 }
    podd.drop(
      'slow',
      shellPod('slow', podd.shared, "trap '' TERM; while :; do sleep 1000000; done", { spec }),
    )
    await podd.untilReady('slow')
    const looked = ['debug', 'slow', '-i', '-c', 'look', '--image', shell, '--target', 'main']
    expect(await podd.cliOk(...looked, '--', 'sh', '-c', 'tr "\\0" " " </proc/1/cmdline; echo')).toContain(
      'TERM',
    )
    expect(await podd.cli('diff', '-f', join(podd.manifests, 'slow.yaml'))).toMatchObject({ code: 0 })
    const before = await podd.findPod('slow')
    expect(await podd.cliOk('restart-daemon')).toContain(`runs again (pid ${podd.daemonPid})`)
    const after = await podd.untilReady('slow')
    const ids = (pod: typeof before) => pod?.status.containerStatuses?.map(({ containerID }) => containerID)
    expect(ids(after)).toEqual(ids(before))
    expect(after.spec['ephemeralContainers']).toMatchObject([{ name: 'look' }])
    const sinceMs = Date.now()
    expect(await podd.cliOk('delete', 'pod', 'slow', '--grace-period=0', '--force')).toBe(
      'pod "slow" deleted\n',
    )
    expect(Date.now() - sinceMs).toBeLessThan(120_000)
    expect(await podd.findPod('slow')).toBeUndefined()
  })

  it('tell at once, with the last lines of its log, that what was written crashes', async () => {
    const podd = rig()
    const path = save(podd, 'typo', shellPod('typo', podd.shared, 'stay'))
    await podd.cliOk('apply', '-f', path, '--wait')
    save(podd, 'typo', shellPod('typo', podd.shared, 'echo no such program >&2; exit 127'))
    const failed = await podd.cli('apply', '-f', path, '--wait')
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringMatching(/^replace +pod default\/typo/u) })
    expect(failed.stderr).toContain('    | no such program')
    expect(failed.stderr).toMatch(
      /revision 2 failed, and revision 1 counts again: pod default\/typo has crashed/u,
    )
    await podd.cliOk('delete', 'pod', 'typo')
  })

  it('leave what runs alone where the manifest is refused', async () => {
    const podd = rig()
    const path = save(podd, 'job', shellPod('job', podd.shared, 'say start; stay'))
    await podd.cliOk('apply', '-f', path, '--wait')
    save(podd, 'job', { ...shellPod('job', podd.shared, 'say never'), spec: { containers: [] } })
    expect(await podd.cli('apply', '-f', path)).toMatchObject({ code: 1 })
    expect(await podd.cli('diff', '-f', podd.manifests)).toMatchObject({ code: 0 })
    const gone = save(podd, 'gone', {
      ...shellPod('gone', podd.shared, 'stay', {
        container: { image: 'localhost/none:1', imagePullPolicy: 'Never' },
      }),
    })
    await podd.cliOk('apply', '-f', gone)
    await podd.until('the missing image', async () => {
      const [status] = (await podd.findPod('gone'))?.status.containerStatuses ?? []
      return status?.state.waiting?.reason === 'ErrImageNeverPull'
    })
    const late = await podd.cli('apply', '-f', gone, '--wait', '--timeout=2s')
    expect(late).toMatchObject({ code: 1 })
    expect(late.stderr).toContain('ErrImageNeverPull')
    await podd.cliOk('delete', 'pod', 'job', 'gone')
    expect(podd.lines('job').map((line) => line.split(' ')[1])).toEqual(['start', 'end'])
  })
})
