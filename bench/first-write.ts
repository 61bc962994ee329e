import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join } from 'node:path'

/**
 * A FIFO that a container writes a line to first thing: the moment the line arrives is the moment
 * that both sides of a comparison are timed to.
 */
export class FirstWrite {
  readonly directory: string
  readonly #file: FileHandle
  readonly #lines: number[] = []
  #waiting: ((atMs: number) => void) | undefined

  private constructor(directory: string, file: FileHandle) {
    this.directory = directory
    this.#file = file
    void this.#read()
  }

  static async open(parent: string, name: string): Promise<FirstWrite> {
    const directory = join(parent, `first-write-${name}`)
    mkdirSync(directory, { recursive: true })
    const path = join(directory, 'fifo')
    execFileSync('mkfifo', [path])
    // Read-write, so that neither side ever waits for the other to open it.
    return new FirstWrite(directory, await open(path, constants.O_RDWR))
  }

  /** When the next line arrives, on performance.now()'s clock. */
  next(timeoutMs = 60_000): Promise<number> {
    const early = this.#lines.shift()
    if (early !== undefined) return Promise.resolve(early)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no container wrote in time')), timeoutMs)
      this.#waiting = (atMs) => {
        clearTimeout(timer)
        resolve(atMs)
      }
    })
  }

  async close(): Promise<void> {
    // A last line ends the read that is under way.
    this.#waiting = undefined
    await this.#file.write('end\n')
  }

  async #read(): Promise<void> {
    const buffer = Buffer.alloc(256)
    for (;;) {
      const { bytesRead } = await this.#file.read(buffer, 0, buffer.length)
      const atMs = performance.now()
      const text = buffer.toString('utf8', 0, bytesRead)
      if (text.includes('end')) break
      for (const _ of text.trim().split('\n')) {
        const waiting = this.#waiting
        this.#waiting = undefined
        if (waiting === undefined) this.#lines.push(atMs)
        else waiting(atMs)
      }
    }
    await this.#file.close()
  }
}
