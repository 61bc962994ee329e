import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../../base/atomic-file.ts'
import { mapBounded } from '../../base/waits.ts'
import { type Clock, sleepUnlessAborted } from '../../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { newUuid } from '../../base/random.ts'
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
  /** The directory of the commands' pipes, `<run-dir>/exec`. */
  readonly directory: string
  readonly clock: Clock
}

/** A command to run in a container. */
export interface ContainerCommand extends ExecChoices {
  readonly containerId: string
  readonly stdin: boolean
}

const forceSignal = 9
/** How often, and at what interval, podd tries to end a command that an earlier podd left during its start. */
const endAgainMs = 500
const endTries = 120

/**
 * Runs commands in containers through containerd's own API. CRI's streaming would do on a runtime with WebSocket v5;
 * containerd 1.6 and 1.7 lack it, and older protocols can't end a command's standard input.
 */
export class ContainerdExec {
  readonly #options: ContainerdExecOptions
  readonly #calls: TaskCalls
  readonly #closing = new AbortController()
  /** The ids of the commands that this podd runs, for as long as they have a directory. */
  readonly #own = new Set<string>()

  constructor(options: ContainerdExecOptions) {
    this.#options = options
    this.#calls = new TaskCalls(options)
  }

  /**
   * Resolves when the command runs. Throws PoddError EXEC_FAILED, RUNTIME_NOT_FOUND where the container is gone, or
   * EXEC_UNSUPPORTED by a runtime that is no containerd.
   */
  async start(command: ContainerCommand): Promise<ExecProcess> {
    const { directory, clock } = this.#options
    const target: ExecTarget = { containerId: command.containerId, execId: newUuid() }
    this.#own.add(target.execId)
    const forget = (): boolean => this.#own.delete(target.execId)
    try {
      const process = makeExecProcess(await this.#calls.containerSpec(target.containerId), command)
      const choices = { stdin: command.stdin, stderr: !command.terminal }
      const fifos = await makeExecFifos(join(directory, directoryName(target)), choices, clock)
      try {
        await this.#calls.create({ ...target, process, terminal: command.terminal, ...fifos.paths })
        await this.#calls.start(target)
      } catch (error) {
        // The error of the start is thrown; there may be nothing to remove.
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

  /** Stops waiting for commands. */
  close(): void {
    this.#closing.abort(new PoddError('EXEC_FAILED', 'podd is stopping'))
  }

  /**
   * Ends commands that a killed podd left behind: nothing reads their output any more. Commands that can't be ended are
   * left to the next podd. Never rejects.
   */
  async sweep(): Promise<void> {
    // Without the directory no command was left behind; the next command that is started needs it, and reports it.
    const names = await readdir(this.#options.directory).catch(() => [])
    // A directory that can't be removed is left to the next podd too.
    await mapBounded(names, (name) => this.#sweepDirectory(name).catch(() => undefined))
  }

  async #sweepDirectory(name: string): Promise<void> {
    const target = targetOf(name)
    if (target !== undefined) {
      if (this.#own.has(target.execId)) return
      if (!(await this.#end(target))) return
    }
    await removeTree(join(this.#options.directory, name))
  }

  /**
   * Whether nothing is left of the command. Calls of the killed podd may still be in flight: a command that doesn't
   * exist, or can't be killed because it doesn't run yet, may exist or run a moment later.
   */
  async #end(target: ExecTarget): Promise<boolean> {
    const { clock } = this.#options
    let absences = 0
    let waiting: Promise<'ended' | 'absent' | 'failed'> | undefined
    for (let tries = 0; tries < endTries && !this.#closing.signal.aborted; tries += 1) {
      // `wait` tells whether it has ended; a command that hasn't is killed again.
      await this.#calls.kill(target, forceSignal).catch(() => {})
      waiting ??= this.#calls.wait(target).then(
        () => 'ended',
        (error: unknown) => (errorCode(error) === 'RUNTIME_NOT_FOUND' ? 'absent' : 'failed'),
      )
      const pause = sleepUnlessAborted(clock, endAgainMs, this.#closing.signal)
      const outcome = await Promise.race([waiting, pause])
      // This also deletes a process that was created and not started.
      const isRemoved = await this.#calls.remove(target).then(
        () => true,
        // It still runs, or doesn't exist: the outcome of `wait` says which.
        () => false,
      )
      if (outcome === 'ended' || isRemoved) return true
      if (outcome !== undefined) waiting = undefined
      if (outcome === 'absent' && (absences += 1) > 1) return true
      await pause
    }
    return false
  }
}

function directoryName({ containerId, execId }: ExecTarget): string {
  return `${containerId}.${execId}`
}

function targetOf(name: string): ExecTarget | undefined {
  const [containerId, execId] = name.split('.')
  return containerId === undefined || execId === undefined ? undefined : { containerId, execId }
}

/** Error codes that are passed on instead of EXEC_FAILED. */
const toldAsTheyAre = new Set(['EXEC_FAILED', 'RUNTIME_NOT_FOUND', 'RUNTIME_UNAVAILABLE'])

function execError(error: unknown): PoddError {
  if (errorCode(error) === 'RUNTIME_UNSUPPORTED') {
    return new PoddError(
      'EXEC_UNSUPPORTED',
      'this runtime does not implement the calls with which podd runs commands',
      {
        cause: error,
        hint: "podd runs commands through containerd's own API; use the runtime's own client (`crictl exec`) here.",
      },
    )
  }
  if (error instanceof PoddError && toldAsTheyAre.has(error.code)) return error
  return new PoddError('EXEC_FAILED', errorMessage(error), { cause: error })
}
