import { execFileSync, spawn } from 'node:child_process'
import { freeSubnet } from './free-subnet.ts'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OciImage } from '../../src/images/sandbox-image.ts'
import { formatOciArchive } from '../../src/images/sandbox-image.ts'
import type { ContainerdInstall } from './containerd-versions.ts'
import { removeContainerd } from './leftovers.ts'
import { testOciRuntime } from './oci-runtime.ts'
import { pauseImage, pauseImageName, shellImage } from './oci-image.ts'
import { slowness } from './slowness.ts'
import { writeTestMarks } from './test-marks.ts'

/** What CNI does with the next sandboxes. */
export type CniBehaviour = 'works' | 'fails' | 'hangs'

export interface ContainerdRigOptions {
  readonly install: ContainerdInstall
  /** Beside the pause and shell images. */
  readonly images?: readonly OciImage[]
  /** Has the last word on the config file. */
  readonly editConfig?: (toml: string) => string
}

/**
 * A private containerd: its own root, state, socket, network and cgroup, beside whatever else runs on the
 * host. `remove` takes everything away again, in whatever state it is.
 */
export class ContainerdRig {
  readonly dir: string
  readonly install: ContainerdInstall
  readonly socketPath: string
  /** As CRI clients take it. */
  readonly endpoint: string
  /** For `cgroupParent` of sandboxes; cgroupfs paths. */
  readonly cgroupParent: string
  readonly podCidr: string
  readonly #bridge: string
  #process: ChildProcess | undefined

  private constructor(install: ContainerdInstall) {
    const id = randomBytes(3).toString('hex')
    this.install = install
    this.dir = mkdtempSync('/tmp/podd-test-rig-')
    this.socketPath = join(this.dir, 'containerd.sock')
    this.endpoint = `unix://${this.socketPath}`
    this.cgroupParent = `/podd-test-${id}`
    this.podCidr = freeSubnet()
    this.#bridge = `podt${id}`
    writeTestMarks({ directory: this.dir, cgroup: this.cgroupParent, names: [this.#bridge] })
  }

  static async start(options: ContainerdRigOptions): Promise<ContainerdRig> {
    const rig = new ContainerdRig(options.install)
    try {
      rig.#writeFiles(options.editConfig ?? ((toml) => toml))
      await rig.startContainerd()
      rig.importImages([pauseImage(), shellImage(), ...(options.images ?? [])])
      return rig
    } catch (error) {
      const log = rig.log()
      await rig.remove()
      throw new Error(`containerd ${options.install.version} did not start: ${String(error)}\n${log}`, {
        cause: error,
      })
    }
  }

  /** What containerd has logged so far. */
  log(): string {
    const path = join(this.dir, 'containerd.log')
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  setCni(behaviour: CniBehaviour): void {
    for (const name of ['cni-fails', 'cni-hangs']) rmSync(join(this.dir, name), { force: true })
    if (behaviour !== 'works') writeFileSync(join(this.dir, `cni-${behaviour}`), '')
  }

  importImages(images: readonly OciImage[]): void {
    this.ctr(['images', 'import', '-'], formatOciArchive(...images))
  }

  /** Runs ctr in the namespace of CRI's containers. */
  ctr(args: readonly string[], input?: Buffer): string {
    return execFileSync(
      join(this.install.binDir, 'ctr'),
      ['--address', this.socketPath, '--namespace', 'k8s.io', ...args],
      { encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'], input },
    )
  }

  async startContainerd(): Promise<void> {
    const log = openSync(join(this.dir, 'containerd.log'), 'a')
    this.#process = spawn(
      join(this.install.binDir, 'containerd'),
      ['--config', join(this.dir, 'config.toml')],
      {
        stdio: ['ignore', log, log],
        env: { ...process.env, PATH: `${this.install.binDir}:${process.env['PATH'] ?? ''}` },
      },
    )
    closeSync(log)
    await waitFor('its socket', () => accepts(this.socketPath))
  }

  /** Ends containerd and leaves its shims, and so the pods, as they are. */
  async stopContainerd(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }

  async remove(): Promise<void> {
    await this.stopContainerd('SIGKILL')
    removeContainerd(this.dir, this.#bridge, this.cgroupParent)
    rmSync(this.dir, { recursive: true, force: true })
  }

  #writeFiles(edit: (toml: string) => string): void {
    for (const sub of ['root', 'state', 'opt', 'cni-bin', 'cni-conf', 'cni-data'])
      mkdirSync(join(this.dir, sub))
    for (const plugin of readdirSync(this.install.cniBinDir)) {
      if (plugin === 'bridge') continue
      symlinkSync(join(this.install.cniBinDir, plugin), join(this.dir, 'cni-bin', plugin))
    }
    const bridge = join(this.dir, 'cni-bin/bridge')
    writeFileSync(bridge, bridgeScript(this.dir, join(this.install.cniBinDir, 'bridge')))
    chmodSync(bridge, 0o755)
    writeFileSync(join(this.dir, 'cni-conf/10-podd-test.conflist'), JSON.stringify(this.#cniConfig()))
    const toml = this.install.version.startsWith('1.') ? configV2(this) : configV3(this)
    writeFileSync(join(this.dir, 'config.toml'), edit(`${toml}${ociRuntimeOf(this)}`))
  }

  #cniConfig(): object {
    const ipam = {
      type: 'host-local',
      dataDir: join(this.dir, 'cni-data'),
      ranges: [[{ subnet: this.podCidr }]],
      routes: [{ dst: '0.0.0.0/0' }],
    }
    return {
      cniVersion: '0.4.0',
      name: this.#bridge,
      plugins: [
        { type: 'bridge', bridge: this.#bridge, isGateway: true, ipMasq: false, ipam },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    }
  }
}

function bridgeScript(dir: string, plugin: string): string {
  return `#!/bin/sh
if [ "$CNI_COMMAND" = ADD ] && [ -e ${dir}/cni-hangs ]; then exec sleep 1000; fi
if [ "$CNI_COMMAND" = ADD ] && [ -e ${dir}/cni-fails ]; then
  echo '{"cniVersion":"0.4.0","code":100,"msg":"the network is out of order"}'
  exit 1
fi
exec ${plugin}
`
}

function configV2(rig: ContainerdRig): string {
  const cri = `plugins."io.containerd.grpc.v1.cri"`
  return `version = 2
root = "${rig.dir}/root"
state = "${rig.dir}/state"
[grpc]
  address = "${rig.socketPath}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${rig.dir}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[${cri}]
  sandbox_image = "${pauseImageName}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [${cri}.cni]
    bin_dir = "${rig.dir}/cni-bin"
    conf_dir = "${rig.dir}/cni-conf"
  [${cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`
}

function configV3(rig: ContainerdRig): string {
  const runtime = `plugins."io.containerd.cri.v1.runtime"`
  return `version = 3
root = "${rig.dir}/root"
state = "${rig.dir}/state"
[grpc]
  address = "${rig.socketPath}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${rig.dir}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${pauseImageName}"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
[${runtime}]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [${runtime}.cni]
    bin_dirs = ["${rig.dir}/cni-bin"]
    conf_dir = "${rig.dir}/cni-conf"
  [${runtime}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`
}

/** The last table of the config, goes on. */
function ociRuntimeOf(rig: ContainerdRig): string {
  const program = testOciRuntime(rig.dir)
  if (program === undefined) return ''
  const plugin = rig.install.version.startsWith('1.')
    ? 'io.containerd.grpc.v1.cri'
    : 'io.containerd.cri.v1.runtime'
  return `  [plugins."${plugin}".containerd.runtimes.runc.options]\n    BinaryName = "${program}"\n`
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Polls until `holds`; 10 s at most. */
export async function waitFor(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const patienceMs = 30_000 * slowness
  const untilMs = Date.now() + patienceMs
  while (!(await holds())) {
    if (Date.now() > untilMs) throw new Error(`waited ${patienceMs / 1000} s in vain for ${what}`)
    await sleep(20)
  }
}
