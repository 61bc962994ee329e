import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { setPoddUmask } from '../../src/base/umask.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { EmbeddedContainerd } from '../../src/runtime/embedded-containerd.ts'
import type { EmbeddedContainerdOptions, RunningContainerd } from '../../src/runtime/embedded-containerd.ts'
import { importImageFile } from '../../src/runtime/embedded-images.ts'
import { Orphans } from '../../src/control/node/orphans.ts'
import { openImageRecords } from '../../src/control/runtime/embedded-runtime.ts'
import { ContainerdRecords } from '../../src/runtime/containerd/records.ts'
import { removeEmbeddedContainerd } from '../../src/runtime/remove-embedded.ts'
import { CriClient } from '../../src/runtime/cri-client.ts'
import { readProcess } from '../../src/host/processes.ts'
import { formatOciArchive, buildSandboxImage, sandboxImageName } from '../../src/images/sandbox-image.ts'
import { waitFor } from '../support/containerd-rig.ts'
import { chooseContainerds } from '../support/containerd-versions.ts'
import type { ContainerdInstall } from '../support/containerd-versions.ts'
import { findLeftovers } from '../support/leftovers.ts'
import type { PoddPlaces } from '../support/leftovers.ts'
import { freePort } from '../support/free-port.ts'
import { shellImage, shellImageName } from '../support/oci-image.ts'
import { slowness } from '../support/slowness.ts'
import { writeTestMarks } from '../support/test-marks.ts'

// As podd does when it starts.
setPoddUmask()

const choice = chooseContainerds()
const noInstall: ContainerdInstall = { version: 'none', release: 'none', binDir: '', cniBinDir: '' }
const installs = choice.kind === 'use' ? choice.installs : [noInstall]

describe.skipIf(choice.kind === 'skip').each(installs)('embedded containerd $version', (install) => {
  let dir = ''
  let instance: TestInstance

  beforeEach(() => {
    dir = mkdtempSync('/tmp/podd-emb-')
    instance = new TestInstance(install, dir)
  })

  afterEach(async () => {
    await instance.remove()
    rmSync(dir, { recursive: true, force: true })
  })

  it('starts in a second, runs a pod with a network and a host port, and is adopted', async () => {
    const startedMs = performance.now()
    const first = await instance.start()
    expect(performance.now() - startedMs).toBeLessThan(3_000 * slowness)
    expect(first.adopted).toBe(false)

    const pod = await instance.runPod('web', ['httpd', '-f', '-p', '80'], 80)
    expect(pod.ip.startsWith(first.podCidrs[0]?.replace(/0\/24$/, '') ?? '?')).toBe(true)
    await waitFor('the page', async () => (await fetchStatus(`http://${pod.ip}/`)) === 404)
    await waitFor(
      'the host port',
      async () => (await fetchStatus(`http://${hostAddress()}:${pod.hostPort}/`)) === 404,
    )
    // A pod reaches itself through its own host port.
    const hairpin = await instance.exec(pod.containerId, [
      'wget',
      '-qO-',
      `http://${hostAddress()}:${pod.hostPort}/`,
    ])
    expect(hairpin).toContain('404')

    const again = new TestInstance(install, dir)
    const adoptedMs = performance.now()
    const second = await again.start()
    expect(performance.now() - adoptedMs).toBeLessThan(1_000 * slowness)
    expect(second).toMatchObject({ adopted: true, pid: first.pid, podCidrs: first.podCidrs })
    expect((await again.cri.runtime.containerStatus({ containerId: pod.containerId })).status?.state).toBe(
      'CONTAINER_RUNNING',
    )
    again.cri.close()
  })

  // One that is asked to end does so at once, although podd watches it.
  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'starts containerd again after %s, its containers untouched',
    async (signal) => {
      const first = await instance.start()
      const pod = await instance.runPod('steady', ['sleep', '100000'])
      const before = await instance.containerPid(pod.containerId)
      const supervision = new AbortController()
      const states: string[] = []
      instance.containerd.onChange((state) => states.push(state.kind))
      const supervised = instance.containerd.supervise(supervision.signal)
      process.kill(first.pid, signal)
      await waitFor('the next containerd', () => states.includes('running'))
      supervision.abort()
      await supervised
      expect(instance.containerd.state).toMatchObject({ kind: 'running', running: { adopted: false } })
      expect(await instance.containerPid(pod.containerId)).toBe(before)
      expect(readProcess(before)?.zombie).toBe(false)
    },
  )

  it('removes the sandboxes and unmade containers that CRI does not know, and none that it knows', async () => {
    const { containerd, cri } = instance
    await instance.start()
    const running = await instance.runPod('running', ['sleep', '100000'])
    await instance.runPod('stopped', ['sleep', '100000'])
    const { items } = await cri.runtime.listPodSandbox({})
    const stopped = items.find(({ metadata }) => metadata?.name === 'stopped')?.id ?? ''
    await cri.runtime.stopPodSandbox({ podSandboxId: stopped })
    const known = instance.ctr('containers', 'list', '--quiet').trim().split('\n').toSorted()
    expect(known).toHaveLength(4)
    instance.leave('leaked-without-task', { kind: 'sandbox', isRunning: false })
    instance.leave('leaked-with-task', { kind: 'sandbox', isRunning: true })
    instance.leave('leaked-container', { kind: 'container', isRunning: false })
    let nowMs = 0
    const orphans = new Orphans({
      collectors: containerd.orphanCollectors(new ContainerdRecords(cri.connection, systemClock)),
      makingSinceMs: () => undefined,
      clock: { ...systemClock, monotonicMs: () => nowMs },
      logger: silentLogger,
    })
    for (; nowMs <= 120_000; nowMs += 30_000)
      expect((await orphans.collect(new AbortController().signal)).failures).toEqual([])
    expect(instance.ctr('containers', 'list', '--quiet').trim().split('\n').toSorted()).toEqual(known)
    expect(instance.ctr('tasks', 'list')).not.toContain('leaked')
    expect(await instance.containerPid(running.containerId)).toBeGreaterThan(0)
    await instance.removePods()
  })

  it('starts over a stale socket and a half-written config, and keeps its subnet', async () => {
    const { containerd } = instance
    mkdirSync(containerd.places.rootDir, { recursive: true })
    mkdirSync(containerd.places.runDir, { recursive: true })
    writeFileSync(containerd.places.configPath, 'version = 2\nroot = "/half')
    leaveSocket(containerd.socketPath)
    const first = await instance.start()
    await removeEmbeddedContainerd(instance.options)
    const second = await new TestInstance(install, dir).start()
    expect(second.podCidrs).toEqual(first.podCidrs)
    expect(second.pid).not.toBe(first.pid)
  })

  it('starts anew with a changed config and leaves the containers running', async () => {
    const first = await instance.start()
    const pod = await instance.runPod('steady', ['sleep', '100000'])
    const before = await instance.containerPid(pod.containerId)
    const changed = new TestInstance(install, dir, { registryConfigDir: join(dir, 'certs.d') })
    const second = await changed.start()
    expect(second).toMatchObject({ adopted: false })
    expect(second.pid).not.toBe(first.pid)
    expect(await changed.containerPid(pod.containerId)).toBe(before)
    changed.cri.close()
  })

  it('takes another subnet once no pod is on the old one, and runs pods on that until then', async () => {
    const oldSubnet = new TestInstance(install, dir, { podCidrs: ['10.231.90.0/24'] })
    expect((await oldSubnet.start()).podCidrs).toEqual(['10.231.90.0/24'])
    expect((await oldSubnet.runPod('one', ['sleep', '100000'])).ip).toMatch(/^10\.231\.90\./u)
    oldSubnet.cri.close()

    const changed = new TestInstance(install, dir, { podCidrs: ['10.231.91.0/24'] })
    expect((await changed.start()).podCidrs).toEqual(['10.231.90.0/24'])
    expect((await changed.runPod('two', ['sleep', '100000'])).ip).toMatch(/^10\.231\.90\./u)
    await changed.removePods()
    expect((await changed.start()).podCidrs).toEqual(['10.231.91.0/24'])
    expect((await changed.runPod('three', ['sleep', '100000'])).ip).toMatch(/^10\.231\.91\./u)
    changed.cri.close()
  })

  it('says what containerd said when it does not start', async () => {
    // A file where containerd wants a directory.
    const { places } = instance.containerd
    mkdirSync(places.rootDir, { recursive: true })
    writeFileSync(join(places.rootDir, 'io.containerd.metadata.v1.bolt'), '')
    await expect(instance.start()).rejects.toMatchObject({
      code: 'EMBEDDED_CONTAINERD',
      message: expect.stringContaining('io.containerd.metadata.v1.bolt'),
      hint: expect.stringContaining(places.logPath),
    })
  })

  it('runs two side by side and takes away all of one, with its pods running, and nothing of the other', async () => {
    const otherDir = mkdtempSync('/tmp/podd-emb-')
    const other = new TestInstance(install, otherDir)
    try {
      const [traces, othersTraces] = [new Traces(instance.options, dir), new Traces(other.options, otherDir)]
      await other.start()
      const kept = await other.runPod('kept', ['sleep', '100000'], 80)
      await instance.start()
      await instance.runPod('one', ['httpd', '-f', '-p', '80'], 80)
      await instance.runPod('two', ['sleep', '100000'], 81)
      expect(traces.find().length).toBeGreaterThan(10)
      const withOther = await othersTraces.findLasting()
      expect(withOther.length).toBeGreaterThan(10)
      await removeEmbeddedContainerd(instance.options)
      expect(traces.find().filter((trace) => !trace.startsWith('cgroup'))).toEqual([])
      expect(await othersTraces.findLasting()).toEqual(withOther)
      expect(await other.containerPid(kept.containerId)).toBeGreaterThan(0)
      await other.remove()
      expect(othersTraces.find()).toEqual([])
      await removeEmbeddedContainerd(instance.options)
    } finally {
      await other.remove()
      rmSync(otherDir, { recursive: true, force: true })
    }
  })

  describe('importing archives', () => {
    it('waits for a containerd that is starting', async () => {
      const path = join(dir, 'shell.tar')
      writeFileSync(path, formatOciArchive(shellImage()))
      const importing = instance.containerd.images.importImages({ path })
      await instance.start()
      expect(await importing).toEqual([shellImageName])
    })

    it.each([
      ['none', 'missing.tar', undefined, 'no such file'],
      ['a directory', '.', undefined, 'is not a file'],
      ['one that is no tar', 'junk.tar', Buffer.alloc(4096, 'x'), 'junk.tar'],
      ['one that is cut short', 'cut.tar', formatOciArchive(shellImage()).subarray(0, 300_000), 'cut.tar'],
    ])('refuses %s', async (_, name, content, message) => {
      const { importTarget } = await instance.start()
      const path = join(dir, name)
      if (content !== undefined) writeFileSync(path, content)
      await expect(importImageFile(importTarget, { path })).rejects.toMatchObject({
        code: 'IMAGE_IMPORT',
        message: expect.stringContaining(message),
      })
    })
  })
})

/** An embedded containerd with a CRI client on it. */
class TestInstance {
  readonly options: EmbeddedContainerdOptions
  readonly containerd: EmbeddedContainerd
  readonly cri: CriClient
  readonly #dir: string
  readonly #cgroupName: string
  #imported = false

  constructor(install: ContainerdInstall, dir: string, more: Partial<EmbeddedContainerdOptions> = {}) {
    this.#dir = dir
    this.#cgroupName = basename(dir)
    const { networkName, bridgeName } = containerdPlaces(join(dir, 'root'), join(dir, 'run'))
    writeTestMarks({ directory: dir, cgroup: `/${this.#cgroupName}`, names: [networkName, bridgeName] })
    this.options = {
      rootDir: join(dir, 'root'),
      runDir: join(dir, 'run'),
      cgroupDriver: 'cgroupfs',
      registryConfigDir: '/nowhere',
      sandboxImage: { name: sandboxImageName, build: () => buildSandboxImage() },
      containerdPath: join(install.binDir, 'containerd'),
      ctrPath: join(install.binDir, 'ctr'),
      cniBinDirs: [install.cniBinDir],
      launchMode: 'detached',
      known: { list: () => this.#listAll(), listSandboxes: () => this.#listAll() },
      openImageRecords: (socketPath) => openImageRecords(socketPath, systemClock),
      clock: systemClock,
      logger: silentLogger,
      ...more,
    }
    this.containerd = new EmbeddedContainerd(this.options)
    this.cri = new CriClient({ endpoint: `unix://${this.containerd.socketPath}`, clock: systemClock })
  }

  start(): Promise<RunningContainerd> {
    return this.containerd.start()
  }

  async runPod(
    name: string,
    command: readonly string[],
    port?: number,
  ): Promise<{ readonly containerId: string; readonly ip: string; readonly hostPort: number }> {
    const { runtime } = this.cri
    if (!this.#imported) await this.#importShell()
    const hostPort = port === undefined ? 0 : await freePort()
    const config = {
      metadata: { name, uid: name, namespace: 'default' },
      logDirectory: join(this.#dir, 'logs'),
      linux: { cgroupParent: `/${this.#cgroupName}/pod${name}` },
      ...(port === undefined ? {} : { portMappings: [{ containerPort: port, hostPort }] }),
    }
    const { podSandboxId } = await runtime.runPodSandbox({ config })
    const { containerId } = await runtime.createContainer({
      podSandboxId,
      sandboxConfig: config,
      config: {
        metadata: { name: 'main' },
        image: { image: shellImageName },
        command: [...command],
        logPath: name,
      },
    })
    await runtime.startContainer({ containerId })
    const { status } = await runtime.podSandboxStatus({ podSandboxId })
    return { containerId, ip: status?.network?.ip ?? '', hostPort }
  }

  async removePods(): Promise<void> {
    const { runtime } = this.cri
    const { items } = await runtime.listPodSandbox({})
    for (const { id } of items) {
      await runtime.stopPodSandbox({ podSandboxId: id })
      await runtime.removePodSandbox({ podSandboxId: id })
    }
    // Pods' cgroups are podd's own to remove.
    const pods = ['-depth', '-path', `*/${this.#cgroupName}/pod*`, '-type', 'd', '-delete']
    for (const root of this.#cgroups()) execFileSync('find', [root, ...pods])
  }

  async exec(containerId: string, command: readonly string[]): Promise<string> {
    const reply = await this.cri.runtime.execSync({ containerId, cmd: [...command], timeout: 10 })
    return `${reply.stdout.toString()}${reply.stderr.toString()}`
  }

  async containerPid(containerId: string): Promise<number> {
    const { info } = await this.cri.runtime.containerStatus({ containerId, verbose: true })
    const parsed = JSON.parse(info['info'] ?? '{}') as { pid: number }
    return parsed.pid
  }

  async remove(): Promise<void> {
    this.cri.close()
    try {
      await removeEmbeddedContainerd(this.options)
    } finally {
      // The pods' parent is podd's own cgroup, not containerd's to remove.
      for (const root of this.#cgroups()) rmdirSync(root)
    }
  }

  /** Its own ctr, in the namespace of CRI. */
  ctr(...args: readonly string[]): string {
    const flags = ['--address', this.containerd.socketPath, '--namespace', 'k8s.io']
    return execFileSync(this.options.ctrPath ?? 'ctr', [...flags, ...args], { encoding: 'utf8' })
  }

  /** Makes what containerd has in its inventory, and CRI doesn't know. */
  leave(name: string, { kind, isRunning }: { kind: 'sandbox' | 'container'; isRunning: boolean }): void {
    const { snapshotter = '' } = importTargetOf(this.containerd)
    const label = ['--label', `io.cri-containerd.kind=${kind}`, '--snapshotter', snapshotter]
    const directories = ['--runc-root', join(this.#dir, 'runc'), '--fifo-dir', join(this.#dir, 'fifo')]
    const place = [...directories, '--cgroup', `/${this.#cgroupName}/pod${name}`]
    const verb = isRunning ? ['run', '--detach', ...place] : ['containers', 'create']
    this.ctr(...verb, ...label, sandboxImageName, name)
  }

  async #listAll(): Promise<ReadonlySet<string>> {
    const { items } = await this.cri.runtime.listPodSandbox({})
    const { containers } = await this.cri.runtime.listContainers({})
    return new Set([...items, ...containers].map(({ id }) => id))
  }

  /** Its own in each hierarchy; those of others come and go meanwhile. */
  #cgroups(): readonly string[] {
    const tops = [
      '.',
      ...readdirSync('/sys/fs/cgroup', { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? entry.name : [],
      ),
    ]
    return tops.map((top) => join('/sys/fs/cgroup', top, this.#cgroupName)).filter((path) => existsSync(path))
  }

  async #importShell(): Promise<void> {
    const path = join(this.#dir, 'shell.tar')
    writeFileSync(path, formatOciArchive(shellImage()))
    const target = { ...importTargetOf(this.containerd) }
    expect(await importImageFile(target, { path })).toEqual([shellImageName])
    this.#imported = true
  }
}

function importTargetOf(containerd: EmbeddedContainerd): RunningContainerd['importTarget'] {
  if (containerd.state.kind !== 'running') throw new Error('not started')
  return containerd.state.running.importTarget
}

/** What one instance has on the host outside of its directory; nothing of others that work beside it. */
class Traces {
  readonly #places: PoddPlaces
  /** Chains and sockets bear hashes: whose they are is known while their owner runs. */
  readonly #chains = new Set<string>()
  readonly #sockets = new Set<string>()

  constructor({ rootDir, runDir }: EmbeddedContainerdOptions, directory: string) {
    this.#places = { directory, rootDir, runDir, cgroupRoot: `/${basename(directory)}` }
  }

  /** Without what comes and goes: programs that containerd calls. */
  async findLasting(): Promise<readonly string[]> {
    const before = this.find()
    await systemClock.sleep(1000)
    const after = this.find()
    return before.filter((trace) => after.includes(trace))
  }

  find(): readonly string[] {
    const { networkName, stateDir } = containerdPlaces(this.#places.rootDir, this.#places.runDir)
    const rules = execFileSync('iptables-save', { encoding: 'utf8' }).split('\n')
    for (const rule of rules.filter((line) => line.includes(`"${networkName}\\"`)))
      for (const [chain] of rule.matchAll(/CNI-(?:DN-)?[0-9a-f]{20,}/gu)) this.#chains.add(chain)
    for (const address of findAddressFiles(stateDir)) this.#sockets.add(address)
    return [
      ...findLeftovers(this.#places),
      ...[...this.#chains].filter((chain) => rules.some((rule) => rule.includes(chain))),
      ...[...this.#sockets].filter((path) => existsSync(path)),
    ].toSorted()
  }
}

/** The sockets of the shims that run below a containerd's state directory. */
function findAddressFiles(stateDir: string): string[] {
  if (!existsSync(stateDir)) return []
  const found = execFileSync('find', [stateDir, '-name', 'address', '-type', 'f'], { encoding: 'utf8' })
  return found
    .split('\n')
    .filter((path) => path !== '')
    .map((path) => readFileSync(path, 'utf8').replace('unix://', ''))
}

async function fetchStatus(url: string): Promise<number> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).status
  } catch {
    return 0
  }
}

function hostAddress(): string {
  const route = execFileSync('ip', ['-4', 'route', 'get', '1.1.1.1'], { encoding: 'utf8' })
  return / src (\S+)/.exec(route)?.[1] ?? ''
}

/** A socket file that nobody listens on, as a killed containerd leaves it. */
function leaveSocket(path: string): void {
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  expect(existsSync(path)).toBe(true)
}
