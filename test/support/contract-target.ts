import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { ContainerdRig } from './containerd-rig.ts'
import type { CniBehaviour } from './containerd-rig.ts'
import type { ContainerdInstall } from './containerd-versions.ts'
import { FakeRuntimeServer } from './fake-runtime-server.ts'
import { FakeRuntime } from './fake-runtime.ts'
import type { ContainerdRelease } from './fake-runtime.ts'
import type { ContainerScript } from './fake-runtime-world.ts'
import { shellImageName } from './oci-image.ts'

/** A runtime that the contract suite puts to the test. */
export interface ContractTarget {
  readonly endpoint: string
  readonly release: ContainerdRelease
  readonly cgroupParent: string
  readonly logsDir: string
  setCni(behaviour: CniBehaviour): void
  /** Ends the runtime as a crash would; its pods live on. */
  kill(): Promise<void>
  /** Starts it again. */
  restart(): Promise<void>
  remove(): Promise<void>
}

/** What containers of the contract suite do: for a shell, and in the fake's words. */
export const programs = {
  sleeps: { command: ['sleep', '1000'], script: { kind: 'runs' } },
  obeys: {
    command: ['sh', '-c', 'trap "exit 5" TERM; : > /begun; while :; do sleep 0.02; done'],
    script: { kind: 'runs', stop: { kind: 'exits', afterMs: 0, exitCode: 5 } },
  },
  ignores: {
    command: ['sh', '-c', 'trap ": > /told" TERM; : > /begun; while :; do sleep 0.02; done'],
    script: { kind: 'runs', stop: { kind: 'ignores' } },
  },
  fails: { command: ['sh', '-c', 'exit 3'], script: { kind: 'exits', afterMs: 1, exitCode: 3 } },
  succeeds: { command: ['true'], script: { kind: 'exits', afterMs: 1, exitCode: 0 } },
  'does-not-exist': {
    command: ['/does/not/exist'],
    script: { kind: 'fails-to-start', message: 'exec: "/does/not/exist": no such file or directory' },
  },
} as const satisfies Record<string, { command: readonly string[]; script: ContainerScript }>

export type Program = keyof typeof programs

/** Commands that the contract suite runs in containers, and what the fake makes of them. */
export const commands = {
  speaks: ['sh', '-c', 'echo out; echo err >&2; exit 3'],
  lingers: ['sleep', '5'],
  /** Ends, but leaves a grandchild that holds its output. */
  leavesChild: ['sh', '-c', 'sleep 4 & exit 0'],
  isMissing: ['/does/not/exist'],
  /** Whether `obeys` and `ignores` have set their traps, and whether `ignores` was told to end. */
  hasBegun: ['test', '-e', '/begun'],
  wasTold: ['test', '-e', '/told'],
} as const

class FakeTarget implements ContractTarget {
  readonly release: ContainerdRelease
  readonly cgroupParent = '/podd-test'
  readonly logsDir = '/logs'
  readonly #dir = mkdtempSync(join(tmpdir(), 'podd-contract-'))
  readonly #fake: FakeRuntime
  #server: FakeRuntimeServer | undefined

  constructor(release: ContainerdRelease) {
    this.release = release
    this.#fake = new FakeRuntime({ clock: systemClock, release, images: [shellImageName] })
    for (const [name, { script }] of Object.entries(programs)) this.#fake.script(name, script)
    this.#fake.onExec((_container, command) => {
      if (command[0] === commands.isMissing[0]) throw new Error('exec failed: no such file or directory')
      if (command[0] === 'test') return { exitCode: 0 }
      if (command[0] === 'sleep') return { afterMs: 5000 }
      if (command.join(' ') === commands.leavesChild.join(' '))
        return { afterMs: 4000, outlivesTimeout: true }
      return { exitCode: 3, stdout: 'out\n', stderr: 'err\n' }
    })
  }

  get endpoint(): string {
    return this.#server?.endpoint ?? ''
  }

  setCni(behaviour: CniBehaviour): void {
    this.#fake.settings.cni = behaviour
  }

  async kill(): Promise<void> {
    this.#server?.stop()
    // Until then a client may take the connection for alive, which a real runtime's end would have closed.
    await systemClock.sleep(20)
  }

  async restart(): Promise<void> {
    if (this.#server === undefined) {
      this.#server = await FakeRuntimeServer.start(this.#fake, { socketPath: join(this.#dir, 'cri.sock') })
    } else await this.#server.start()
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#dir, { recursive: true })
  }
}

export async function startFakeTarget(release: ContainerdRelease): Promise<ContractTarget> {
  const target = new FakeTarget(release)
  await target.restart()
  return target
}

export async function startContainerdTarget(install: ContainerdInstall): Promise<ContractTarget> {
  const rig = await ContainerdRig.start({ install })
  return {
    endpoint: rig.endpoint,
    release: install.release as ContainerdRelease,
    cgroupParent: rig.cgroupParent,
    logsDir: join(rig.dir, 'logs'),
    setCni: (behaviour) => rig.setCni(behaviour),
    kill: () => rig.stopContainerd('SIGKILL'),
    restart: () => rig.startContainerd(),
    remove: () => rig.remove(),
  }
}
