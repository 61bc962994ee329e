import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { JsonObject } from '../../src/base/json.ts'
import { callApi } from '../support/call-api.ts'
import { poddProgram, shell } from '../support/podd-program.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'

interface DownOutcome {
  readonly code: number
  readonly leftOver: readonly string[]
}

/** `podd down`, with programs of the test's own, if it has any, before those of the host. */
function down(podd: PoddRig, binDir = '/nonexistent'): Promise<DownOutcome> {
  const env = { ...podd.env, PATH: `${binDir}:${podd.env['PATH']}` }
  return new Promise((resolve) => {
    const args = ['down', '--grace-period', '0', ...podd.flags()]
    const child = execFile(poddProgram(), args, { env }, (_error, _stdout, stderr) => {
      const leftOver = Array.from(stderr.matchAll(/^left over: (.*)$/gmu), ([, what = '']) => what)
      resolve({ code: child.exitCode ?? -1, leftOver })
    })
  })
}

/** Puts a shell script in a directory for programs, and gives the directory. */
function writeProgram(podd: PoddRig, name: string, script: string): string {
  const binDir = join(podd.directory, `bin-${name}`)
  mkdirSync(binDir)
  writeFileSync(join(binDir, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(binDir, name), 0o755)
  return binDir
}

describePodd('podd down', {}, (rig) => {
  const mounts = (): readonly string[] =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .flatMap((line) => line.split(' ')[4] ?? [])
      .filter((path) => path.startsWith(`${rig().rootDir}/pods/`))

  it("leaves nothing of the host's mounted for a pod, or says what, also when nothing runs any more", async () => {
    const podd = rig()
    const part = join(podd.directory, 'precious/part')
    mkdirSync(part, { recursive: true })
    writeFileSync(join(part, 'file'), 'precious')
    const container = shellContainer('main', 'holder', 'stay', {
      volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'part' }],
    })
    const volumes = [{ name: 'v', hostPath: { path: join(podd.directory, 'precious') } }]
    podd.drop('holder', podOf('holder', podd.shared, [container], { volumes }))
    const { metadata } = await podd.untilReady('holder')
    const place = join(podd.rootDir, 'pods', metadata.uid, 'volume-subpaths/v/main/1')
    expect(mounts()).toEqual([place])
    await podd.stopDaemon()

    const umount = 'case $* in *volume-subpaths*) exit 32 ;; esac\nPATH=${PATH#*:} exec umount "$@"'
    const binDir = writeProgram(podd, 'umount', umount)
    const stuck = await down(podd, binDir)
    expect(stuck.code).toBe(1)
    expect(stuck.leftOver).toContain('pod default/holder would not end in time')
    expect(stuck.leftOver).toContain(`${place} is still mounted`)
    // Containerd and its shims are gone by now.
    const again = await down(podd, binDir)
    expect(again.code).toBe(1)
    expect(again.leftOver).toContain(`${place} is still mounted`)
    rmSync(join(binDir, 'umount'))
    const last = await down(podd, binDir)
    expect(last.leftOver.join()).not.toContain('mounted')
    expect(mounts()).toEqual([])
    expect(readFileSync(join(part, 'file'), 'utf8')).toBe('precious')
    // The next podd brings the pod's end to its end.
    podd.removeManifest('holder')
    await podd.startDaemon()
    await podd.untilGone('holder')
  })

  it('ends a daemon whose socket file is gone, and its pods for good', async () => {
    const podd = rig()
    await podd.ensureDaemon()
    podd.drop('kept', shellPod('kept', podd.shared, 'say start; stay'))
    await podd.untilReady('kept')
    const { daemonPid } = podd
    rmSync(podd.socketPath)
    expect(await down(podd)).toEqual({ code: 0, leftOver: [] })
    await podd.until('the end of the daemon', () => !existsSync(`/proc/${daemonPid}`))
    expect(podd.containerdPid).toBe(0)
    // The next one starts it again.
    await podd.startDaemon()
    await podd.untilWords('kept', 2)
    podd.removeManifest('kept')
    await podd.untilGone('kept')
  })

  it('ends the podd whose socket it is given, and needs no more', async () => {
    const podd = rig()
    await podd.ensureDaemon()
    podd.drop('named', shellPod('named', podd.shared, 'say start; stay'))
    await podd.untilReady('named')
    const { daemonPid, containerdPid } = podd
    expect(await podd.cli('down', '--grace-period', '0', '--socket', podd.socketPath)).toMatchObject({
      code: 0,
      stdout: '1 pod ended\n',
    })
    const ended = (): boolean => [daemonPid, containerdPid].every((pid) => !existsSync(`/proc/${pid}`))
    await podd.until('the end of the daemon and of containerd', ended)
    const cgroups = ['', '/pids', '/unified'].map((tree) => `/sys/fs/cgroup${tree}${podd.cgroupRoot}`)
    expect(cgroups.filter((path) => existsSync(path))).toEqual([])
    // Nobody is there any more, and the usual places aren't meant.
    const again = await podd.cli('down', '--socket', podd.socketPath)
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain(`no daemon listens at ${podd.socketPath}`)
    podd.removeManifest('named')
    await podd.startDaemon()
    await podd.untilGone('named')
  })

  it('keeps pods of the API that have completed as they are, and starts the others again', async () => {
    const podd = rig()
    await podd.ensureDaemon()
    const create = (name: string, script: string, spec: JsonObject = {}) => {
      const containers = [{ name: 'main', image: shell, command: ['sh', '-c', script] }]
      const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, ...spec } }
      return callApi(podd.socketPath, 'POST', '/api/v1/namespaces/default/pods', manifest)
    }
    await create('job', 'echo ran', { restartPolicy: 'Never' })
    await create('server', 'sleep 1000000')
    await podd.untilReady('server')
    const { metadata, status } = await podd.untilPhase('job', 'Succeeded')
    expect(await down(podd)).toEqual({ code: 0, leftOver: [] })
    await podd.startDaemon()
    await podd.untilReady('server')
    expect(await podd.cliOk('get', 'pods')).toMatch(/^job +0\/1 +Completed +0 /mu)
    const after = await podd.findPod('job')
    expect(after?.metadata.uid).toBe(metadata.uid)
    expect(after?.status).toMatchObject({
      phase: 'Succeeded',
      containerStatuses: [{ state: status.containerStatuses?.[0]?.state, restartCount: 0 }],
    })
    expect(await podd.cliOk('logs', 'job')).toBe('ran\n')
    const all = await podd.cli('down', '--all', '--grace-period', '0', '--socket', podd.socketPath)
    expect(all).toMatchObject({ code: 0, stdout: '2 pods ended\n' })
    expect(readdirSync(join(podd.rootDir, 'records'))).toEqual([])
    await podd.startDaemon()
    await podd.untilReady('server')
    expect((await podd.untilPhase('job', 'Succeeded')).metadata.uid).toBe(metadata.uid)
    for (const name of ['job', 'server']) {
      const path = `/api/v1/namespaces/default/pods/${name}`
      await callApi(podd.socketPath, 'DELETE', path, { gracePeriodSeconds: 0 })
      await podd.untilGone(name)
    }
  })

  it('minds nothing that goes while it cleans up', async () => {
    const podd = rig()
    await podd.ensureDaemon()
    const deletesTwice = 'export PATH=${PATH#*:}\ncase $* in "link delete"*) ip "$@" ;; esac\nexec ip "$@"'
    expect(await down(podd, writeProgram(podd, 'ip', deletesTwice))).toEqual({ code: 0, leftOver: [] })
  })

  it('may be called twice at once', async () => {
    const podd = rig()
    await podd.stopDaemon()
    await podd.startDaemon()
    podd.drop('twice', shellPod('twice', podd.shared, 'say start; stay'))
    await podd.untilReady('twice')
    const outcomes = await Promise.all([down(podd), down(podd)])
    expect(outcomes).toEqual([
      { code: 0, leftOver: [] },
      { code: 0, leftOver: [] },
    ])
  })
})
