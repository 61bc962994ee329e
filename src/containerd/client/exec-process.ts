import type { Readable } from 'node:stream'
import type { Socket } from 'node:net'
import { type Clock, sleepUnlessAborted } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { ExecFifos } from './exec-fifos.ts'
import type { ExecTarget, TaskCalls } from './exec-calls.ts'
import type { TerminalSize } from './exec-process-spec.ts'

const signals = { hangUp: 1, kill: 9, terminate: 15 } as const

/** The time between the first signal and SIGKILL for a process whose client is gone. */
const hangUpGraceMs = 1000
/** How long to wait for more output of a command that has ended while something else holds its output open. */
const quietMs = 1000
const waitRetryMs = 200
/** The exit code of a process that was lost with its container, as after SIGKILL. */
const lostExitCode = 137

export interface ExecProcessOptions {
  readonly calls: TaskCalls
  readonly target: ExecTarget
  readonly fifos: ExecFifos
  readonly terminal: boolean
  readonly hasStdin: boolean
  /** The runtime keeps its record until its container ends. */
  readonly isKept?: boolean
  readonly clock: Clock
  /** Aborted when podd ends: the process is left to the next podd, which finds its pipes. */
  readonly closing: AbortSignal
}

/** A command that runs in a container, with its streams. */
export class ExecProcess {
  readonly stdout: Readable
  /** Undefined for a terminal, where it is one with stdout. */
  readonly stderr: Readable | undefined
  /** Resolves with its exit code, once all of its output was read. */
  readonly ended: Promise<number>
  /**
   * Resolves when nothing of it is left in the runtime or on disk; seconds later where another process holds its output
   * open.
   */
  readonly removed: Promise<void>
  readonly #options: ExecProcessOptions
  readonly #stdin: Promise<Socket | undefined>
  readonly #over = new AbortController()
  /** The newest size that has to be sent; undefined while there is none. */
  #nextSize: TerminalSize | undefined

  constructor(options: ExecProcessOptions) {
    this.#options = options
    const { fifos } = options
    this.stdout = fifos.stdout
    this.stderr = fifos.stderr
    this.#stdin = options.hasStdin ? this.#openStdin() : Promise.resolve(undefined)
    this.ended = this.#run()
    this.removed = this.ended.then(
      () => this.#remove(),
      // Whoever awaits `ended` gets its error.
      () => this.#remove(),
    )
  }

  /** Resolves when the process has read it, or can no longer read anything. */
  async write(chunk: Uint8Array): Promise<void> {
    const stdin = await this.#stdin
    if (stdin === undefined || !stdin.writable) return
    await new Promise<void>((resolve) => {
      stdin.write(chunk, () => resolve())
    })
  }

  /** Ends its standard input, after all that was written. */
  async closeStdin(): Promise<void> {
    const { calls, target } = this.#options
    const stdin = await this.#stdin
    if (stdin === undefined) return
    if (!stdin.destroyed) {
      await new Promise<void>((resolve) => {
        stdin.once('close', () => resolve())
        stdin.end()
      })
    }
    // The shim keeps the pipe open itself, so that a client that disconnects for a moment doesn't end it.
    await calls.closeStdin(target).catch(() => {})
  }

  /**
   * Sets the terminal's size; does nothing without a terminal. Of sizes in quick succession only the last one is sent.
   */
  async resize(size: TerminalSize): Promise<void> {
    const { calls, target, terminal } = this.#options
    if (!terminal) return
    const isInFlight = this.#nextSize !== undefined
    this.#nextSize = size
    if (isInFlight) return
    // One after the other: the runtime may reorder concurrent calls.
    for (let told: TerminalSize | undefined; told !== this.#nextSize;) {
      told = this.#nextSize
      // The process has ended, or keeps its old size: its output shows which.
      await calls.resize(target, told).catch(() => {})
    }
    this.#nextSize = undefined
  }

  /**
   * Ends a process whose client is gone: by SIGHUP where it has a terminal, else by SIGTERM, and soon after by SIGKILL.
   */
  async hangUp(): Promise<void> {
    const { calls, target, terminal, clock } = this.#options
    if (this.#over.signal.aborted) return
    try {
      await calls.kill(target, terminal ? signals.hangUp : signals.terminate)
      await clock.sleep(hangUpGraceMs, this.#over.signal)
      await calls.kill(target, signals.kill)
    } catch {
      // It has ended, or goes with its container.
    }
  }

  async #run(): Promise<number> {
    try {
      const exitCode = await this.#wait()
      this.#over.abort()
      await this.#drain()
      return exitCode
    } finally {
      this.#over.abort()
    }
  }

  async #remove(): Promise<void> {
    const { calls, target, fifos, closing, isKept } = this.#options
    if (isKept === true) return closing.aborted ? fifos.close() : await fifos.remove()
    const isRemoved = await calls.remove(target).then(
      () => true,
      // The directory of its pipes stays where podd is stopping: the next podd's sweep removes both.
      () => false,
    )
    if (closing.aborted && !isRemoved) fifos.close()
    else await fifos.remove()
  }

  /** Waits for the process's exit, also across restarts of containerd, which the process survives. */
  async #wait(): Promise<number> {
    const { calls, target, clock, closing } = this.#options
    for (;;) {
      try {
        return await calls.wait(target)
      } catch (error) {
        if (errorCode(error) === 'RUNTIME_NOT_FOUND') return lostExitCode
        if (errorCode(error) !== 'RUNTIME_UNAVAILABLE') throw error
        await clock.sleep(waitRetryMs, closing)
      }
    }
  }

  /**
   * Waits for the end of the output. A process that the command left behind may hold it open for ever: then it counts
   * as ended when nothing has arrived for a while and no reader is busy.
   */
  async #drain(): Promise<void> {
    const { fifos, clock } = this.#options
    const open = new Set([fifos.stdout, fifos.stderr].filter((stream) => stream !== undefined))
    const closed = new AbortController()
    for (const stream of open) {
      const gone = (): void => {
        open.delete(stream)
        if (open.size === 0) closed.abort()
      }
      if (stream.closed || stream.readableEnded) gone()
      else stream.once('close', gone)
    }
    let before = -1
    while (open.size > 0) {
      const taken = [...open].reduce((sum, stream) => sum + stream.bytesRead, 0)
      if (taken === before && [...open].every((stream) => stream.readableLength === 0)) break
      before = taken
      await sleepUnlessAborted(clock, quietMs, closed.signal)
    }
    for (const stream of open) stream.destroy()
  }

  async #openStdin(): Promise<Socket | undefined> {
    const stdin = await this.#options.fifos.openStdin(this.#over.signal)
    this.#over.signal.addEventListener('abort', () => stdin?.destroy(), { once: true })
    return stdin
  }
}
