import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import { newUuid } from '../base/random.ts'
import { TaskCalls } from './exec-calls.ts'
import type { ExecChannel, ExecDefinitions, ExecTarget } from './exec-calls.ts'
import { makeExecFifos } from './exec-fifos.ts'
import { makeExecProcess } from './exec-process-spec.ts'
import type { ExecChoices } from './exec-process-spec.ts'
import { ExecProcess } from './exec-process.ts'

export interface ContainerdExecOptions {
  readonly channel: ExecChannel
  readonly tasks: ExecDefinitions
  readonly containers: ExecDefinitions
  /** Where the commands' pipes are, `<run-dir>/exec`. */
  readonly folder: string
  readonly clock: Clock
}

/** A command to run in a container. */
export interface ContainerCommand extends ExecChoices {
  readonly containerId: string
  readonly stdin: boolean
}

const forceSignal = 9

/**
 * Runs commands in containers through containerd's own API. CRI's streaming would do on a runtime with WebSocket v5;
 * containerd 1.6 and 1.7 have none, and before it nothing ends a command's standard input.
 */
export class ContainerdExec {
  readonly #options: ContainerdExecOptions
  readonly #calls: TaskCalls
  readonly #closing = new AbortController()
  /** The ids of the commands that this podd runs, for as long as they have a folder. */
  readonly #own = new Set<string>()

  constructor(options: ContainerdExecOptions) {
    this.#options = options
    this.#calls = new TaskCalls(options)
  }

  /** Resolves when the command runs. Throws PoddError EXEC_FAILED, or EXEC_UNSUPPORTED by a runtime that is no containerd. */
  async start(command: ContainerCommand): Promise<ExecProcess> {
    const { folder, clock } = this.#options
    const target: ExecTarget = { containerId: command.containerId, execId: newUuid() }
    this.#own.add(target.execId)
    const forget = (): boolean => this.#own.delete(target.execId)
    try {
      const process = makeExecProcess(await this.#calls.containerSpec(target.containerId), command)
      const choices = { stdin: command.stdin, stderr: !command.terminal }
      const fifos = await makeExecFifos(join(folder, folderName(target)), choices, clock)
      try {
        await this.#calls.create({ ...target, process, terminal: command.terminal, ...fifos.paths })
        await this.#calls.start(target)
      } catch (error) {
        await this.#calls.remove(target).catch(() => {})
        await fifos.remove()
        throw error
      }
      const running = new ExecProcess({
        calls: this.#calls,
        target,
        fifos,
        terminal: command.terminal,
        hasStdin: command.stdin,
        clock,
        closing: this.#closing.signal,
      })
      void running.removed.then(forget, forget)
      return running
    } catch (error) {
      forget()
      throw execError(error)
    }
  }

  /** Waits for no command any more. */
  close(): void {
    this.#closing.abort(new PoddError('EXEC_FAILED', 'podd is ending'))
  }

  /** Ends what a podd left that ended without a word: nobody reads the output of those commands any more. */
  async sweep(): Promise<void> {
    const { folder } = this.#options
    for (const name of await readdir(folder).catch(() => [])) {
      const target = targetOf(name)
      if (target !== undefined) {
        if (this.#own.has(target.execId)) continue
        await this.#calls.kill(target, forceSignal).catch(() => {})
        await this.#calls.wait(target).catch(() => {})
        await this.#calls.remove(target).catch(() => {})
      }
      await rm(join(folder, name), { recursive: true, force: true })
    }
  }
}

function folderName({ containerId, execId }: ExecTarget): string {
  return `${containerId}.${execId}`
}

function targetOf(name: string): ExecTarget | undefined {
  const [containerId, execId] = name.split('.')
  return containerId === undefined || execId === undefined ? undefined : { containerId, execId }
}

function execError(error: unknown): PoddError {
  if (errorCode(error) === 'RUNTIME_UNSUPPORTED') {
    return new PoddError(
      'EXEC_UNSUPPORTED',
      'this runtime has none of the calls that podd runs commands by',
      {
        cause: error,
        hint: "podd runs commands by containerd's own API; use the runtime's own client (`crictl exec`) here.",
      },
    )
  }
  const code = errorCode(error)
  if (error instanceof PoddError && (code === 'EXEC_FAILED' || code === 'RUNTIME_UNAVAILABLE')) return error
  return new PoddError('EXEC_FAILED', errorMessage(error), { cause: error })
}
