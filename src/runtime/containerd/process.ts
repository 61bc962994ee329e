import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { tryRemove } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { PoddErrorOptions } from '../../base/errors.ts'
import { poddUmask } from '../../base/umask.ts'
import { defaultRunDir } from '../../config/places.ts'
import { searchDirectories, commandOutput, runCommand } from '../../host/run-command.ts'
import { listProcesses, readProcess, signalProcess, waitForExit } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'

/** How containerd is started so that it outlives podd. */
export type LaunchMode = 'systemd' | 'detached'

/** systemd is the init of this host: what `sd_booted(3)` asks. */
export function detectLaunchMode(): LaunchMode {
  return existsSync('/run/systemd/system') ? 'systemd' : 'detached'
}

/**
 * The containerd that runs with this instance's config, or undefined. The config's path on the command line identifies
 * it, without a pid file that could be stale.
 */
export function findContainerd(
  places: ContainerdPlaces,
  processes = listProcesses(),
): HostProcess | undefined {
  const found = processes.filter(
    (process) => !process.zombie && isContainerdOf(process.argv, places.configPath),
  )
  // A forked child has the same command line until it executes another program.
  return found.find(({ parentPid }) => !found.some(({ pid }) => pid === parentPid))
}

/** Whether a process is still the containerd that was found: much cheaper than finding it. */
export function isStillContainerd(pid: number, places: ContainerdPlaces): boolean {
  const process = readProcess(pid)
  return process !== undefined && !process.zombie && isContainerdOf(process.argv, places.configPath)
}

/** Whether a command line is `containerd --config PATH`, possibly through a wrapper script. */
export function isContainerdOf(argv: readonly string[], configPath: string): boolean {
  const flag = argv.length - 2
  return (
    argv[flag] === '--config' &&
    argv[flag + 1] === configPath &&
    basename(argv[flag - 1] ?? '') === 'containerd'
  )
}

/** The shims that report to this instance's containerd; each holds a pod's containers. */
export function findShims(places: ContainerdPlaces, processes = listProcesses()): readonly HostProcess[] {
  return processes.filter(
    (process) =>
      !process.zombie &&
      process.argv[0]?.includes('containerd-shim') === true &&
      process.argv[process.argv.indexOf('-address') + 1] === places.socketPath,
  )
}

/**
 * Kills the shim of a sandbox, of whichever containerd: the sandbox's id is nobody else's. containerd then cleans up after
 * it, and counts its containers as exited. Returns its pid; undefined where no shim names the sandbox, as with other runtimes.
 */
export function killShim(sandboxId: string): number | undefined {
  const shim = listProcesses().find(
    ({ argv, zombie }) =>
      !zombie && argv[0]?.includes('containerd-shim') === true && argv[argv.indexOf('-id') + 1] === sandboxId,
  )
  if (shim === undefined) return undefined
  signalProcess(shim, 'SIGKILL')
  return shim.pid
}

/** Starts containerd so that it outlives podd. Doesn't wait until it is up. */
export async function launchContainerd(
  containerdPath: string,
  places: ContainerdPlaces,
  mode: LaunchMode,
): Promise<void> {
  if (mode === 'systemd') await launchUnit(containerdPath, places)
  else await launchDetached(containerdPath, places)
}

/** In a session of its own, with its log in a file. It outlives podd and is then init's child. */
function launchDetached(containerdPath: string, places: ContainerdPlaces): Promise<void> {
  const log = openSync(places.logPath, 'a', 0o600)
  const child = spawn(containerdPath, ['--config', places.configPath], {
    detached: true,
    cwd: '/',
    stdio: ['ignore', log, log],
    env: containerdEnvironment(containerdPath),
  })
  closeSync(log)
  child.unref()
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve())
    child.once('error', reject)
  })
}

/**
 * As a systemd unit: the installed one where it runs this config, else a transient one of the same
 * name. KillMode=process leaves the shims alone; Delegate leaves their cgroups alone.
 */
async function launchUnit(containerdPath: string, places: ContainerdPlaces): Promise<void> {
  const unit = `${places.unitName}.service`
  const installed = await runCommand('systemctl', ['cat', unit])
  if (installed.exitCode === 0 && installed.stdout.includes(places.configPath)) {
    // A failed start shows when nothing answers.
    await runCommand('systemctl', ['start', unit], { timeoutMs: 90_000 })
    return
  }
  const properties = {
    Delegate: 'yes',
    KillMode: 'process',
    OOMScoreAdjust: '-999',
    Restart: 'always',
    RestartSec: '1',
    LimitNOFILE: '1048576',
    LimitNPROC: 'infinity',
    TasksMax: 'infinity',
    UMask: poddUmask.toString(8).padStart(4, '0'),
  }
  const environment = Object.entries(containerdEnvironment(containerdPath))
  await commandOutput('systemd-run', [
    '--quiet',
    '--collect',
    `--unit=${unit}`,
    '--description=containerd of podd',
    ...Object.entries(properties).map(([name, value]) => `--property=${name}=${value}`),
    ...environment.map(([name, value]) => `--setenv=${name}=${value}`),
    '--',
    containerdPath,
    '--config',
    places.configPath,
  ])
}

/** The last lines that containerd's unit has logged. */
export async function readUnitLog(places: ContainerdPlaces): Promise<string> {
  const args = ['--unit', `${places.unitName}.service`, '--lines', '100', '--output', 'cat', '--no-pager']
  return (await runCommand('journalctl', args)).stdout
}

/** Ends containerd but none of its containers: by SIGTERM, then by SIGKILL. */
export async function endContainerd(
  containerd: HostProcess,
  how: { readonly places: ContainerdPlaces; readonly mode: LaunchMode; readonly clock: Clock },
): Promise<void> {
  if (how.mode === 'systemd') {
    await runCommand('systemctl', ['stop', `${how.places.unitName}.service`], { timeoutMs: 90_000 })
  }
  signalProcess(containerd, 'SIGTERM')
  if (await waitForExit(containerd, 10_000, how.clock)) return
  signalProcess(containerd, 'SIGKILL')
  if (await waitForExit(containerd, 10_000, how.clock)) return
  throw new EmbeddedContainerdError(`containerd (pid ${containerd.pid}) does not end`)
}

/**
 * What containerd may see of podd's environment: a PATH on which its shim, runc, iptables and mount
 * programs are found, and the proxies to pull images through.
 */
export function containerdEnvironment(
  containerdPath: string,
  own: NodeJS.ProcessEnv = process.env,
): Readonly<Record<string, string>> {
  const path = [dirname(containerdPath), ...searchDirectories(own['PATH'])]
  const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'].flatMap(
    (name) => {
      const value = own[name]
      return value === undefined ? [] : [[name, value] as const]
    },
  )
  return { PATH: [...new Set(path)].join(':'), ...Object.fromEntries(proxies) }
}

/**
 * Every path and name that an embedded containerd owns. All of them follow from the root and the run directory, so that
 * podds with different directories never share anything, and a restarted one finds its own.
 */
export interface ContainerdPlaces {
  /** containerd's own root: images, snapshots, metadata. Persistent. */
  readonly rootDir: string
  /** What a reboot removes: socket, state, runc's state, pod addresses. */
  readonly runDir: string
  readonly stateDir: string
  readonly runcStateDir: string
  readonly socketPath: string
  readonly configPath: string
  readonly logPath: string
  /** CRI's files of each container, in a directory named by its id. */
  readonly criContainersDir: string
  readonly cniConfDir: string
  readonly conflistPath: string
  /** host-local's address assignments; they must not outlive a boot, or addresses leak. */
  readonly cniDataDir: string
  /** The record of the chosen subnet. */
  readonly networkRecordPath: string
  /** The record of images whose layers are on the disk, while others are being unpacked. */
  readonly unpackRecordPath: string
  readonly networkName: string
  /** At most 15 characters, the kernel's limit. */
  readonly bridgeName: string
  /** The seccomp profile of sandboxes, where there is one for this architecture. */
  readonly sandboxSeccompPath: string
  /** Without `.service`. */
  readonly unitName: string
}

/**
 * @param rootDir podd's root directory (`/var/lib/podd`)
 * @param runDir podd's run directory (`/run/podd`); names other than the default carry a hash of it
 */
export function containerdPlaces(rootDir: string, runDir: string): ContainerdPlaces {
  const root = join(rootDir, 'containerd')
  const run = join(runDir, 'containerd')
  const isDefault = runDir === defaultRunDir
  const tag = createHash('sha256').update(runDir).digest('hex').slice(0, 8)
  const cniConfDir = join(root, 'cni')
  return {
    rootDir: root,
    runDir: run,
    stateDir: join(run, 'state'),
    runcStateDir: join(run, 'runc'),
    socketPath: join(run, 'containerd.sock'),
    configPath: join(root, 'config.toml'),
    logPath: join(root, 'containerd.log'),
    criContainersDir: join(root, 'io.containerd.grpc.v1.cri/containers'),
    cniConfDir,
    conflistPath: join(cniConfDir, '10-podd.conflist'),
    cniDataDir: join(run, 'cni'),
    networkRecordPath: join(root, 'pod-network.json'),
    unpackRecordPath: join(root, 'unpacking.json'),
    networkName: isDefault ? 'podd' : `podd-${tag}`,
    bridgeName: isDefault ? 'podd0' : `podd-${tag}`,
    // Another profile gets another name: one that is there is not written again.
    sandboxSeccompPath: join(run, 'sandbox-seccomp-1.json'),
    unitName: isDefault ? 'podd-containerd' : `podd-containerd-${tag}`,
  }
}

/** Whether a process listens at a unix socket. */
export function canConnect(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/**
 * The client's preface of HTTP/2 and an empty SETTINGS frame (RFC 9113, 3.4). A gRPC server that is shutting down
 * closes connections that have sent it; a silent connection delays its end until the handshake times out, after two
 * minutes (grpc-go before 1.60, `Server.Stop`).
 */
const http2Preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
])

/** Holds an idle connection of gRPC open and resolves when it ends, however it does. */
export function connectionEnd(socketPath: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path: socketPath, signal }, () => socket.write(http2Preface))
    socket.on('error', () => undefined)
    socket.once('close', () => resolve())
    socket.resume()
  })
}

/** The room that containerd's database needs to grow. */
const basicBytes = 1024 * 1024
/** CRI rewrites the status of each container when it starts: a file of one block, beside the one that it replaces. */
const bytesEach = 16 * 1024

/** Why containerd's disk has no room to record that many containers (ENOSPC, EROFS, …); undefined where it can. */
export async function findRoomProblem(rootDir: string, containers: number): Promise<string | undefined> {
  const path = join(rootDir, '.room.tmp')
  try {
    await writeFile(path, Buffer.alloc(basicBytes + bytesEach * containers))
    return undefined
  } catch (error) {
    return errorMessage(error)
  } finally {
    await tryRemove(path)
  }
}

/** The embedded containerd could not be set up, started, or cleaned away (`EMBEDDED_CONTAINERD`). */
export class EmbeddedContainerdError extends PoddError {
  constructor(message: string, options: PoddErrorOptions = {}) {
    super('EMBEDDED_CONTAINERD', message, options)
  }
}
