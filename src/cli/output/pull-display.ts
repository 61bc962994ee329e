import type { Writable } from 'node:stream'
import { formatImageSize } from './image-size.ts'

interface Progress {
  readonly doneBytes: number
  readonly totalBytes?: number
}

const barWidth = 30

/** The progress of a pull on standard error: a bar on a terminal, else a line for each tenth. */
export class PullDisplay {
  readonly #name: string
  readonly #stream: Writable
  readonly #isTerminal: boolean
  #shownTenths = 0
  #hasBar = false

  constructor(name: string, stream: Writable) {
    this.#name = name
    this.#stream = stream
    this.#isTerminal = 'isTTY' in stream && stream.isTTY === true
  }

  show({ doneBytes, totalBytes }: Progress): void {
    if (this.#isTerminal) {
      this.#hasBar = true
      this.#stream.write(`\r\u001b[K${formatBar(this.#name, doneBytes, totalBytes)}`)
      return
    }
    const tenths =
      totalBytes === undefined || totalBytes === 0 ? 0 : Math.floor((doneBytes * 10) / totalBytes)
    if (tenths <= this.#shownTenths) return
    this.#shownTenths = tenths
    const sizes = `${formatImageSize(doneBytes)} of ${formatImageSize(totalBytes ?? 0)}`
    this.#stream.write(`${this.#name}: ${tenths * 10}%, ${sizes}\n`)
  }

  /** Removes the bar. */
  end(): void {
    if (this.#hasBar) this.#stream.write('\r\u001b[K')
  }
}

/** `web:2 [=====>     ] 45% 12MB of 27MB`; without the bar where the total is not known. */
function formatBar(name: string, doneBytes: number, totalBytes: number | undefined): string {
  const done = formatImageSize(doneBytes)
  if (totalBytes === undefined || totalBytes === 0) return `${name} ${done}`
  const share = Math.min(1, doneBytes / totalBytes)
  const filled = Math.floor(share * barWidth)
  const bar = `${'='.repeat(filled)}${filled < barWidth ? '>' : ''}`.padEnd(barWidth)
  return `${name} [${bar}] ${Math.floor(share * 100)}% ${done} of ${formatImageSize(totalBytes)}`
}
