import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import { untilAborted } from '../../base/waits.ts'
import { TaskCalls } from './exec-calls.ts'
import type { ExecChannel, ExecDefinitions, ExecTarget } from './exec-calls.ts'
import { makeExecFifos } from './exec-fifos.ts'
import type { ExecFifos } from './exec-fifos.ts'
import { makeExecProcess } from './exec-process-spec.ts'
import { ExecProcess } from './exec-process.ts'

export interface HeldExecOptions {
  readonly channel: ExecChannel
  readonly tasks: ExecDefinitions
  readonly containers: ExecDefinitions
  /** The directory of the commands' pipes, `<run-dir>/hooks`. */
  readonly directory: string
  readonly clock: Clock
}

/** A command that runs once in its container's life. */
export interface HeldCommand {
  readonly containerId: string
  /** Its id, unique within the container: letters, digits and dashes. */
  readonly execId: string
  readonly command: readonly string[]
  /** Called when containerd has created it. */
  readonly onSent?: (() => void) | undefined
}

export interface HeldResult {
  readonly exitCode: number
  /** The beginning of the output that this podd has read. */
  readonly output: string
}

interface Held {
  readonly begun: Promise<unknown>
  readonly result: Promise<HeldResult>
}

const mostOutputBytes = 1024

/**
 * Runs commands in containers that outlive podd and containerd. containerd's shim keeps a command that has ended, with
 * its exit code, until its container ends: so the next podd finds each by its id, and no command runs twice.
 */
export class HeldExec {
  readonly #options: HeldExecOptions
  readonly #calls: TaskCalls
  /** The commands that this podd waits for, by name. */
  readonly #held = new Map<string, Held>()

  constructor(options: HeldExecOptions) {
    this.#options = options
    this.#calls = new TaskCalls(options)
  }

  /**
   * Runs the command, or waits for the one with this id that an earlier call started. The signal only ends the waiting.
   * While no podd runs, a command that writes more than a pipe holds (64 KiB) blocks.
   *
   * @throws PoddError RUNTIME_UNAVAILABLE where it was not started; RUNTIME_NOT_FOUND where the container is gone;
   * EXEC_FAILED; what the signal aborts with
   */
  async run(command: HeldCommand, signal: AbortSignal): Promise<HeldResult> {
    signal.throwIfAborted()
    const name = `${command.containerId}.${command.execId}`
    const held = this.#held.get(name) ?? this.#begin(name, command)
    await untilAborted(held.begun, signal)
    command.onSent?.()
    return untilAborted(held.result, signal)
  }

  #begin(name: string, command: HeldCommand): Held {
    const { directory, clock } = this.#options
    const { containerId, execId } = command
    const target: ExecTarget = { containerId, execId }
    const begin = async (): Promise<ExecProcess> => {
      const choices = { stdin: false, stderr: true }
      const fifos = await makeExecFifos(join(directory, name), choices, clock)
      try {
        await this.#ensureStarted(target, command, fifos)
      } catch (error) {
        // It may run, and write to them.
        if (errorCode(error) === 'RUNTIME_UNAVAILABLE') fifos.close()
        else await fifos.remove()
        throw error
      }
      const { signal: closing } = new AbortController()
      const streams = { terminal: false, hasStdin: false, isKept: true }
      return new ExecProcess({ calls: this.#calls, target, fifos, ...streams, clock, closing })
    }
    const begun = begin()
    const finish = async (): Promise<HeldResult> => {
      const process = await begun
      const output = new OutputStart()
      for (const stream of [process.stdout, process.stderr]) if (stream !== undefined) output.read(stream)
      return { exitCode: await process.ended, output: output.text }
    }
    const held: Held = { begun, result: finish() }
    this.#held.set(name, held)
    const forget = (): boolean => this.#held.delete(name)
    void begun.then(({ removed }) => removed).then(forget, forget)
    // The waiting caller gets the error.
    held.result.catch(() => undefined)
    return held
  }

  /** Of several concurrent callers, including killed podds, one creates the command and one starts it. */
  async #ensureStarted(target: ExecTarget, { command }: HeldCommand, { paths }: ExecFifos): Promise<void> {
    const calls = this.#calls
    const before = await calls.state(target)
    if (before === 'begun') return
    if (before === 'absent') {
      const spec = await calls.containerSpec(target.containerId)
      const process = makeExecProcess(spec, { command, terminal: false })
      try {
        await calls.create({ ...target, process, terminal: false, ...paths })
      } catch (error) {
        if (errorCode(error) !== 'RUNTIME_EXISTS') throw error
      }
    }
    try {
      await calls.start(target)
    } catch (error) {
      if ((await calls.state(target)) !== 'begun') throw error
    }
  }
}

/** Reads all output, and keeps its beginning. */
class OutputStart {
  readonly #chunks: Buffer[] = []
  #length = 0

  read(stream: Readable): void {
    stream.on('data', (chunk: Buffer) => {
      if (this.#length >= mostOutputBytes) return
      this.#chunks.push(chunk)
      this.#length += chunk.length
    })
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8').slice(0, mostOutputBytes)
  }
}
