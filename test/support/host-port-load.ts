import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** What became of the connections so far. */
export interface LoadCounts {
  readonly opened: number
  readonly answered: number
  readonly slowestMs: number
  /** By the system's code (`ECONNREFUSED`), or `no answer`, or `cut short`. */
  readonly failures: Readonly<Record<string, number>>
}

/** New connections to a port of the host's, so many a second, by a process of its own. */
export class HostPortLoad {
  readonly #child
  readonly #ended: Promise<void>
  readonly #beganMs = performance.now()
  #counts: LoadCounts = { opened: 0, answered: 0, slowestMs: 0, failures: {} }

  constructor(host: string, port: number, ratePerSecond: number) {
    const program = join(import.meta.dirname, 'connection-load.ts')
    this.#child = spawn(process.execPath, [program, host, String(port), String(ratePerSecond)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: this.#child.stdout })
    lines.on('line', (line) => (this.#counts = JSON.parse(line)))
    this.#ended = new Promise((resolve) => lines.once('close', resolve))
  }

  get counts(): LoadCounts {
    return this.#counts
  }

  /** New connections a second, on average. */
  get rate(): number {
    return this.#counts.opened / ((performance.now() - this.#beganMs) / 1000)
  }

  /** Opens no more, and waits for the answers that are due. */
  async end(): Promise<LoadCounts> {
    this.#child.stdin.end()
    await this.#ended
    return this.#counts
  }
}
