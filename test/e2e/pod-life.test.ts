import { existsSync, lstatSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { freePort } from '../support/free-port.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { containerCgroup, podCgroup, readCgroup } from '../support/read-cgroup.ts'
import { podOf, saidAt, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

describePodd('the life of a pod', {}, (rig) => {
  it(
    'runs a dropped pod, and leaves nothing of it when its file goes',
    proves(
      'dropped-pod',
      'Pod: apiVersion kind metadata spec',
      'ObjectMeta: name',
      'PodSpec: containers',
      'Container: name image command',
    ),
    async () => {
      const podd = rig()
      podd.drop('hello', shellPod('hello', podd.shared, 'say start; echo hello; stay'))
      const pod = await podd.untilReady('hello')
      const { uid } = pod.metadata
      expect(pod.status).toMatchObject({ phase: 'Running', qosClass: 'BestEffort' })
      expect(containerOf(pod, 'main')).toMatchObject({ ready: true, restartCount: 0, started: true })
      expect(containerOf(pod, 'main').containerID).toMatch(/^containerd:\/\/[0-9a-f]{64}$/u)
      for (const type of ['PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready'])
        expect(conditionOf(pod, type)).toBe('True')

      const named = (directory: string, prefix: string) =>
        readdirSync(directory).filter((name) => name.startsWith(prefix))
      const links = () => named(podd.linksDir, 'hello_')
      const cgroup = readCgroup.directory(podCgroup(podd.cgroupRoot, 'besteffort', uid))
      const namespaces = networkNamespaces(podd)
      expect(namespaces).toHaveLength(1)
      const traces = () => ({
        links: links().length,
        logs: named(podd.logsDir, 'default_hello_').length,
        directory: named(join(podd.rootDir, 'pods'), uid).length,
        record: named(join(podd.rootDir, 'records'), uid).length,
        addresses: addressesOf(podd).filter((address) => address === pod.status.podIP).length,
        cgroup: existsSync(cgroup),
        containers: podd.containerIds(uid).length,
        namespaces: networkNamespaces(podd).length,
      })
      expect(traces()).toEqual({
        links: 1,
        logs: 1,
        directory: 1,
        record: 1,
        addresses: 1,
        cgroup: true,
        containers: 2,
        namespaces: 1,
      })
      const link = join(podd.linksDir, links()[0] ?? '')
      expect(lstatSync(link).isSymbolicLink()).toBe(true)
      expect(readFileSync(link, 'utf8')).toMatch(/^\S+ stdout F hello\n$/u)

      podd.removeManifest('hello')
      await podd.untilGone('hello')
      expect(await podd.untilWords('hello', 2)).toEqual(['start', 'end'])
      expect(traces()).toEqual({
        links: 0,
        logs: 0,
        directory: 0,
        record: 0,
        addresses: 0,
        cgroup: false,
        containers: 0,
        namespaces: 0,
      })
    },
  )

  it.concurrent(
    'gives a container its command, arguments, environment and directory',
    proves('command', 'Container: args workingDir'),
    async () => {
      const podd = rig()
      const container = {
        args: ['one', 'two words'],
        workingDir: '/var/tmp',
        env: [
          { name: 'GREETING', value: 'hello' },
          { name: 'LONGER', value: '$(GREETING), world; $$(GREETING) $(UNKNOWN)' },
        ],
      }
      const script =
        'say "$0"; say "$1"; say "$GREETING"; say "$LONGER"; say "$(pwd)"; say "$(hostname)"; stay'
      podd.drop('words', shellPod('words', podd.shared, script, { container }))
      await podd.untilReady('words')
      await podd.untilLine('words', /^\S+ words$/u)
      expect(await podd.untilWords('words', 6)).toEqual([
        'one',
        'two words',
        'hello',
        'hello, world; $(GREETING) $(UNKNOWN)',
        '/var/tmp',
        'words',
      ])
    },
  )

  it.concurrent(
    'mounts hostPath and emptyDir volumes',
    proves(
      'host-path-and-empty-dir',
      'PodSpec: volumes',
      'Volume: name hostPath emptyDir',
      'HostPathVolumeSource: path type',
      'EmptyDirVolumeSource: medium',
      'Container: volumeMounts',
      'VolumeMount: name mountPath readOnly',
    ),
    async () => {
      const podd = rig()
      writeFileSync(join(podd.directory, 'a-file'), 'from the host')
      const volumes = [
        { name: 'made', hostPath: { path: join(podd.directory, 'made/deep'), type: 'DirectoryOrCreate' } },
        { name: 'file', hostPath: { path: join(podd.directory, 'a-file'), type: 'File' } },
        { name: 'scratch', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory' } },
      ]
      const mounts = [
        { name: 'made', mountPath: '/made' },
        { name: 'file', mountPath: '/a-file', readOnly: true },
        { name: 'scratch', mountPath: '/scratch' },
        { name: 'memory', mountPath: '/memory' },
      ]
      const script = `
      say $(cat /a-file)
      (echo x >/a-file) 2>/dev/null || say read-only
      echo made >/made/here
      [ -e /scratch/mark ] && say "mark survived" || touch /scratch/mark /memory/mark
      grep -q ' /memory tmpfs' /proc/mounts && say tmpfs
      [ -e /scratch/again ] || { touch /scratch/again; exit 1; }
      say up; stay`
      podd.drop('volumes', shellPod('volumes', podd.shared, script, { volumes, mounts }))
      await podd.untilLine('volumes', / up$/u)
      expect(await podd.untilWords('volumes', 8)).toEqual([
        'from the host',
        'read-only',
        'tmpfs',
        'from the host',
        'read-only',
        'mark survived',
        'tmpfs',
        'up',
      ])
      expect(readFileSync(join(podd.directory, 'made/deep/here'), 'utf8')).toBe('made\n')
      const pod = await podd.untilReady('volumes')
      podd.removeManifest('volumes')
      await podd.untilGone('volumes')
      expect(existsSync(join(podd.rootDir, 'pods', pod.metadata.uid))).toBe(false)
      expect(statSync(join(podd.directory, 'made/deep/here')).isFile()).toBe(true)
    },
  )

  it.concurrent('shows why a volume can not be had, and starts when it can', async () => {
    const podd = rig()
    const path = join(podd.directory, 'comes-later')
    const volumes = [{ name: 'late', hostPath: { path, type: 'File' } }]
    const mounts = [{ name: 'late', mountPath: '/late' }]
    podd.drop('late', shellPod('late', podd.shared, 'say $(cat /late); stay', { volumes, mounts }))
    await podd.until('the reason', async () =>
      JSON.stringify([await podd.events('late'), await podd.findPod('late')]).includes(path),
    )
    writeFileSync(path, 'here')
    await podd.untilReady('late')
    expect(wordsOf(await podd.untilLine('late', / here$/u))).toEqual(['here'])
  })

  it.concurrent(
    'answers on a container port and on a host port',
    proves('ports', 'Container: ports', 'ContainerPort: name containerPort hostPort'),
    async () => {
      const podd = rig()
      const hostPort = await freePort()
      const container = { ports: [{ name: 'web', containerPort: 8080, hostPort }] }
      const script = 'mkdir -p /www; echo page >/www/index.html; say up; exec httpd -f -p 8080 -h /www'
      podd.drop('web', shellPod('web', podd.shared, script, { container }))
      const pod = await podd.untilReady('web')
      const read = (address: string) =>
        podd.until(`the page at ${address}`, async () => (await fetch(`http://${address}/`)).text())
      expect(await read(`${pod.status.podIP}:8080`)).toBe('page\n')
      expect(await read(`${pod.status.hostIP}:${hostPort}`)).toBe('page\n')
      podd.removeManifest('web')
      await podd.untilGone('web')
      await expect(fetch(`http://${pod.status.hostIP}:${hostPort}/`)).rejects.toThrow()
    },
  )

  it.concurrent(
    'runs in the network of the host when asked to',
    proves('host-network', 'PodSpec: hostNetwork'),
    async () => {
      const podd = rig()
      const port = await freePort()
      const script = `mkdir -p /www; echo ours >/www/index.html; exec httpd -f -p ${port} -h /www`
      podd.drop('host', shellPod('host', podd.shared, script, { spec: { hostNetwork: true } }))
      const pod = await podd.untilReady('host')
      expect(pod.status.podIP).toBe(pod.status.hostIP)
      const page = await podd.until('the page', async () => (await fetch(`http://127.0.0.1:${port}/`)).text())
      expect(page).toBe('ours\n')
    },
  )

  it.concurrent(
    'holds containers and pods to their resources',
    proves('resources', 'Container: resources', 'ResourceRequirements: limits requests'),
    async () => {
      const podd = rig()
      const resources = {
        requests: { cpu: '250m', memory: '16Mi' },
        limits: { cpu: '500m', memory: '32Mi' },
      }
      podd.drop('limits', shellPod('limits', podd.shared, 'stay', { container: { resources } }))
      const pod = await podd.untilReady('limits')
      expect(pod.status.qosClass).toBe('Burstable')
      const parent = podCgroup(podd.cgroupRoot, 'burstable', pod.metadata.uid)
      const id = (containerOf(pod, 'main').containerID ?? '').replace('containerd://', '')
      for (const path of [parent, containerCgroup(parent, id)]) {
        expect(readCgroup.memoryLimitBytes(path)).toBe(32 * 1024 * 1024)
        expect(readCgroup.cpuQuota(path)).toEqual({ quotaUs: 50_000, periodUs: 100_000 })
      }
      // A weight is coarser than shares are.
      expect(Math.abs(readCgroup.cpuShares(parent) - 256)).toBeLessThan(20)
    },
  )

  it.concurrent('shows that a process was killed for memory, though its container ended well, beside a sidecar', async () => {
    const podd = rig()
    // Another shell grows, which the kernel kills alone where it does not kill by groups.
    const hog = `say start; sh -c 'x=$(head -c 64000000 /dev/zero | tr "\\0" a)'; exit 0`
    podd.drop(
      'spared',
      podOf(
        'spared',
        podd.shared,
        [shellContainer('main', 'spared', hog, { resources: { limits: { memory: '8Mi' } } })],
        {
          spec: {
            restartPolicy: 'Never',
            initContainers: [shellContainer('side', 'spared-side', 'stay', { restartPolicy: 'Always' })],
          },
        },
      ),
    )
    const pod = await podd.untilPod(
      'spared',
      'its end',
      (now) => containerOf(now, 'main').state.terminated !== undefined,
    )
    expect(containerOf(pod, 'main').state.terminated?.reason).toMatch(/^(?:OOMKilled|Completed)$/u)
    await podd.untilPod(
      'spared',
      'why',
      (now) => containerOf(now, 'main').state.terminated?.reason === 'OOMKilled',
    )
    podd.removeManifest('spared')
    await podd.untilGone('spared')
  })

  it.concurrent('kills a container that takes more memory than its limit, and says so', async () => {
    const podd = rig()
    const container = { resources: { limits: { memory: '8Mi' } } }
    const script = 'say start; x=$(head -c 64000000 /dev/zero | tr "\\0" a); say survived'
    const spec = { restartPolicy: 'Never' }
    podd.drop('greedy', shellPod('greedy', podd.shared, script, { container, spec }))
    // That it was for its memory may come a moment after its end.
    const pod = await podd.untilPod(
      'greedy',
      'its end',
      (now) => containerOf(now, 'main').state.terminated?.reason === 'OOMKilled',
    )
    expect(pod.status.phase).toBe('Failed')
    expect(containerOf(pod, 'main').state.terminated).toMatchObject({ exitCode: 137 })
    expect(await podd.untilWords('greedy', 1)).toEqual(['start'])
  })

  // id: takes-labels-place-replaces
  it.concurrent('takes labels in place, and replaces the pod for anything else', async () => {
    const podd = rig()
    const pod = (value: string, labels: object) =>
      shellPod('edited', podd.shared, 'say start $V; stay', {
        container: { env: [{ name: 'V', value }] },
        metadata: { labels },
      })
    podd.drop('edited', pod('1', { a: 'b' }))
    const first = await podd.untilReady('edited')
    podd.drop('edited', pod('1', { a: 'c' }))
    const second = await podd.untilPod(
      'edited',
      'its label',
      ({ metadata }) => metadata.labels?.['a'] === 'c',
    )
    expect(second.metadata.uid).toBe(first.metadata.uid)
    expect(containerOf(second, 'main').containerID).toBe(containerOf(first, 'main').containerID)

    podd.drop('edited', pod('2', { a: 'c' }))
    await podd.untilLine('edited', / start 2$/u)
    const third = await podd.untilReady('edited')
    expect(third.metadata.uid).not.toBe(first.metadata.uid)
    const lines = podd.lines('edited')
    expect(wordsOf(lines)).toEqual(['start 1', 'end', 'start 2'])
    // A kubelet takes over ten seconds.
    expect(saidAt(lines, 'start 2') - saidAt(lines, 'end')).toBeLessThan(5 * slowness)
    await podd.until('the end of the old pod', () => podd.containerIds(first.metadata.uid).length === 0)
  })

  it.concurrent('shares what a pod shares among its containers', async () => {
    const podd = rig()
    const serve =
      'mkdir -p /www; echo inside >/www/index.html; httpd -p 127.0.0.1:81 -h /www; say served; stay'
    const ask =
      'until wget -qO- http://127.0.0.1:81/ >/tmp/page 2>/dev/null; do sleep 0.1; done; say $(cat /tmp/page); stay'
    podd.drop(
      'pair',
      podOf('pair', podd.shared, [
        shellContainer('server', 'pair', serve),
        shellContainer('client', 'pair', ask),
      ]),
    )
    await podd.untilLine('pair', / inside$/u)
    const pod = await podd.untilReady('pair')
    expect(pod.status.containerStatuses?.map(({ name }) => name)).toEqual(['server', 'client'])
  })
})

function addressesOf(podd: PoddRig): string[] {
  const { cniDataDir, networkName } = containerdPlaces(podd.rootDir, podd.runDir)
  return readdirSync(join(cniDataDir, networkName))
}

function networkNamespaces(podd: PoddRig): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(podd.directory) && path.includes('netns'))
}
