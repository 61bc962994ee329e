import { execFileSync } from 'node:child_process'
import { readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { freePort } from '../support/free-port.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

/** A pod that serves a page on a port of the host, and a way to see it. */
async function serve(podd: PoddRig): Promise<() => Promise<boolean>> {
  const hostPort = await freePort()
  const script = 'mkdir /tmp/www; echo page > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; say up; stay'
  podd.drop(
    'served',
    shellPod('served', podd.shared, script, { container: { ports: [{ containerPort: 8080, hostPort }] } }),
  )
  await podd.untilReady('served')
  return async () => {
    const response = await fetch(`http://127.0.0.1:${hostPort}/`, { signal: AbortSignal.timeout(1000) })
    return (await response.text()) === 'page\n'
  }
}

async function nodeEvents(podd: PoddRig): Promise<readonly string[]> {
  return (await podd.events('box')).map(({ reason, message }) => `${reason}: ${message}`)
}

// A directory of the rig's own with containerd's programs, as a package manager would replace them.
describePodd('podd outlives that', { slowRuncSeconds: 0, config: { syncFrequency: '1s' } }, (rig) => {
  it('what addresses were given is forgotten, and none is given again that a running pod has', async () => {
    const podd = rig()
    const ipOf = (pod: PodObject): string => pod.status.podIP ?? ''
    for (const name of ['one', 'two']) podd.drop(name, shellPod(name, podd.shared, 'say up; stay'))
    const before = [ipOf(await podd.untilReady('one')), ipOf(await podd.untilReady('two'))]
    const { cniDataDir, networkName } = containerdPlaces(podd.rootDir, podd.runDir)
    rmSync(join(cniDataDir, networkName), { recursive: true })
    for (const name of ['three', 'four']) podd.drop(name, shellPod(name, podd.shared, 'say up; stay'))
    const after = [ipOf(await podd.untilReady('three')), ipOf(await podd.untilReady('four'))]
    expect(new Set([...before, ...after]).size).toBe(4)
    expect(readdirSync(join(cniDataDir, networkName))).toEqual(
      expect.arrayContaining([...before, ...after]) as string[],
    )
    expect(await nodeEvents(podd)).toContainEqual(
      expect.stringMatching(/^PodNetworkRestored: The reservations of pods' addresses were removed from /u),
    )
    for (const name of ['one', 'two', 'three', 'four']) podd.removeManifest(name)
    for (const name of ['one', 'two', 'three', 'four']) await podd.untilGone(name)
    expect(readdirSync(join(cniDataDir, networkName)).filter((name) => name.startsWith('10.'))).toEqual([])
  })

  it('the bridge of the pods is deleted, and podd’s and containerd’s sockets are removed, and no pod is touched', async () => {
    const podd = rig()
    const isServed = await serve(podd)
    await podd.until('the page', isServed)
    const before = containerOf(await podd.untilReady('served'), 'main')
    const { bridgeName } = containerdPlaces(podd.rootDir, podd.runDir)
    execFileSync('ip', ['link', 'delete', bridgeName])
    await podd.until('the page again', isServed)
    expect(await nodeEvents(podd)).toContainEqual(
      expect.stringMatching(new RegExp(`^PodNetworkRestored: .*${bridgeName} is missing`, 'u')),
    )
    const bridge = execFileSync('ip', ['address', 'show', 'dev', bridgeName], { encoding: 'utf8' })
    expect(bridge).toMatch(/inet 10\.\S+\/24 /u)
    // A new pod finds the bridge as the plugins expect it.
    podd.drop('next', shellPod('next', podd.shared, 'say up; stay'))
    await podd.untilReady('next')

    const apiSocket = join(podd.runDir, 'podd.sock')
    rmSync(apiSocket)
    await podd.until('the API at its socket', async () => (await podd.status()).pid === podd.daemonPid)
    rmSync(apiSocket)
    writeFileSync(apiSocket, 'not a socket')
    await podd.until('the API at its socket again', async () => (await podd.status()).pid === podd.daemonPid)
    expect(await nodeEvents(podd)).toContainEqual(expect.stringMatching(/^ApiSocketRestored: /u))

    const killed = podd.containerdPid
    rmSync(join(podd.runDir, 'containerd/containerd.sock'))
    await podd.until('another containerd', () => podd.containerdPid !== 0 && podd.containerdPid !== killed)
    await podd.until(
      'its answers',
      async () => (await podd.status()).runtime.healthy && podd.ctr('version') !== '',
    )
    expect(await nodeEvents(podd)).toContainEqual(expect.stringContaining('its socket has been removed'))
    expect(containerOf(await podd.untilReady('served'), 'main')).toEqual(before)
    expect(await isServed()).toBe(true)
    podd.removeManifest('next')
    await podd.untilGone('next')
  })

  it('an older containerd is installed: the newer one stays, also where it ends, for as long as its pods run', async () => {
    const podd = rig()
    const before = containerOf(await podd.untilReady('served'), 'main')
    const program = join(podd.directory, 'bin/containerd')
    const replace = (write: (path: string) => void): void => {
      write(`${program}.new`)
      renameSync(`${program}.new`, program)
    }
    const pid = podd.containerdPid
    replace((path) =>
      writeFileSync(path, '#!/bin/sh\necho containerd github.com/containerd/containerd 1.6.1 abc\n', {
        mode: 0o755,
      }),
    )
    await podd.untilNote(/containerd 1\.6\.1 is installed, and pods run under containerd/u)
    await podd.restartDaemon()
    await podd.untilNote(/containerd 1\.6\.1 is installed/u)
    expect(podd.containerdPid).toBe(pid)
    const doctor = await podd.cli('doctor', ...podd.flags())
    expect(doctor.stdout).toMatch(/warning +containerd +.*1\.6\.1, and pods run under containerd/u)
    process.kill(pid, 'SIGKILL')
    await podd.untilNote(/does not work: containerd 1\.6\.1 is installed.*which an older one would lose/u)
    expect((await podd.findPod('served'))?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 0 })
    replace((path) => symlinkSync(join(podd.install.binDir, 'containerd'), path))
    await podd.until('the newer one', async () => (await podd.status()).runtime.healthy, 90_000)
    expect(containerOf(await podd.untilReady('served'), 'main')).toEqual(before)
    expect(podd.lines('served')).toHaveLength(1)
    expect(await podd.notes()).not.toMatch(/1\.6\.1/u)
    expect(await nodeEvents(podd)).toContainEqual(expect.stringContaining('ContainerdExited'))
  })
})
