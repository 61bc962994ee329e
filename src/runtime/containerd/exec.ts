import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { removeTree } from '../../base/atomic-file.ts'
import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { newUuid } from '../../base/random.ts'
import { mapBounded, untilAborted } from '../../base/waits.ts'
import { ExecProcess, makeExecFifos, makeExecProcess, TaskCalls } from './exec-process.ts'
import type { ExecChoices, ExecFifos, ExecTarget } from './exec-process.ts'
import type { ContainerdChannel } from './records.ts'

export interface ContainerCommand extends ExecChoices {
  readonly containerId: string
  readonly stdin: boolean
}

const forceSignal = 9
/** How often, and at what interval, podd tries to end a command that an earlier podd left during its start. */
const endAgainMs = 500
const endTries = 120

/**
 * Runs commands in containers through containerd's own API: unlike CRI's streams, these commands go on while containerd is
 * restarted, and end when their client is gone.
 */
export class ContainerdExec {
  readonly #directory: string
  readonly #clock: Clock
  readonly #calls: TaskCalls
  readonly #closing = new AbortController()
  /** The ids of the commands that this podd runs, for as long as they have a directory. */
  readonly #own = new Set<string>()

  /** @param directory of the commands' pipes, `<run-dir>/exec` */
  constructor(channel: ContainerdChannel, directory: string, clock: Clock) {
    this.#directory = directory
    this.#clock = clock
    this.#calls = new TaskCalls(channel, clock)
  }

  /**
   * Resolves when the command runs. Throws PoddError EXEC_FAILED, RUNTIME_NOT_FOUND where the container is gone, or
   * RUNTIME_UNSUPPORTED by a runtime that is no containerd.
   */
  async start(command: ContainerCommand): Promise<ExecProcess> {
    const target: ExecTarget = { containerId: command.containerId, execId: newUuid() }
    this.#own.add(target.execId)
    const forget = (): boolean => this.#own.delete(target.execId)
    try {
      const process = makeExecProcess(await this.#calls.containerSpec(target.containerId), command)
      const choices = { stdin: command.stdin, stderr: !command.terminal }
      const directory = join(this.#directory, `${target.containerId}.${target.execId}`)
      const fifos = await makeExecFifos(directory, choices, this.#clock)
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
        clock: this.#clock,
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
    const names = await readdir(this.#directory).catch(() => [])
    // A directory that can't be removed is left to the next podd too.
    await mapBounded(names, (name) => this.#sweepDirectory(name).catch(() => undefined))
  }

  async #sweepDirectory(name: string): Promise<void> {
    const target = targetOf(name)
    if (target !== undefined) {
      if (this.#own.has(target.execId)) return
      if (!(await this.#end(target))) return
    }
    await removeTree(join(this.#directory, name))
  }

  /**
   * Whether nothing is left of the command. Calls of the killed podd may still be in flight: a command that doesn't
   * exist, or can't be killed because it doesn't run yet, may exist or run a moment later.
   */
  async #end(target: ExecTarget): Promise<boolean> {
    let absences = 0
    for (let tries = 0; tries < endTries && !this.#closing.signal.aborted; tries += 1) {
      // Where this fails, deleting it says what is left.
      await this.#calls.kill(target, forceSignal).catch(() => {})
      // One that was created and not started can be deleted, too; one that still runs can't.
      const outcome = await this.#calls.remove(target).then(
        () => 'removed',
        (error: unknown) => (errorCode(error) === 'RUNTIME_NOT_FOUND' ? 'absent' : 'there'),
      )
      if (outcome === 'removed') return true
      if (outcome === 'absent' && (absences += 1) > 1) return true
      await sleepUnlessAborted(this.#clock, endAgainMs, this.#closing.signal)
    }
    return false
  }
}

function targetOf(name: string): ExecTarget | undefined {
  const [containerId, execId] = name.split('.')
  return containerId === undefined || execId === undefined ? undefined : { containerId, execId }
}

/** Error codes that are passed on instead of EXEC_FAILED. */
const toldAsTheyAre = new Set([
  'EXEC_FAILED',
  'RUNTIME_NOT_FOUND',
  'RUNTIME_UNAVAILABLE',
  'RUNTIME_UNSUPPORTED',
])

function execError(error: unknown): PoddError {
  if (error instanceof PoddError && toldAsTheyAre.has(error.code)) return error
  return new PoddError('EXEC_FAILED', errorMessage(error), { cause: error })
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

const maxOutputBytes = 1024

/**
 * Runs commands in containers that outlive podd and containerd. containerd's shim keeps a command that has ended, with
 * its exit code, until its container ends: so the next podd finds each by its id, and no command runs twice.
 */
export class HeldExec {
  readonly #directory: string
  readonly #clock: Clock
  readonly #calls: TaskCalls
  /** The commands that this podd waits for, by name. */
  readonly #held = new Map<string, Held>()

  /** @param directory of the commands' pipes, `<run-dir>/hooks` */
  constructor(channel: ContainerdChannel, directory: string, clock: Clock) {
    this.#directory = directory
    this.#clock = clock
    this.#calls = new TaskCalls(channel, clock)
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
    const clock = this.#clock
    const { containerId, execId } = command
    const target: ExecTarget = { containerId, execId }
    const begin = async (): Promise<ExecProcess> => {
      const choices = { stdin: false, stderr: true }
      const fifos = await makeExecFifos(join(this.#directory, name), choices, clock)
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
      if (this.#length >= maxOutputBytes) return
      this.#chunks.push(chunk)
      this.#length += chunk.length
    })
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8').slice(0, maxOutputBytes)
  }
}
