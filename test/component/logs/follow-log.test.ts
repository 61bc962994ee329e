import {
  appendFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { followLog } from '../../../src/logs/follow-log.ts'
import type { ReadLogOptions } from '../../../src/logs/log-decoder.ts'
import { slowness } from '../../support/slowness.ts'

let directory: string
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'podd-follow-')), 'main')
})
afterEach(async () => {
  await rm(join(directory, '..'), { recursive: true })
})

const record = (text: string, tag = 'F'): string => `2026-01-01T00:00:00.000000001Z stdout ${tag} ${text}\n`

/** Follows a log and lets the test wait for what it shows. */
class Follower {
  text = ''
  readonly done: Promise<void>
  #over = false
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  #check: () => void = () => {}

  constructor(options: Partial<ReadLogOptions> = {}, restartCount = 0) {
    this.done = this.#run({ timestamps: false, ...options }, restartCount)
  }

  async #run(options: ReadLogOptions, restartCount: number): Promise<void> {
    const chunks = followLog({
      directory,
      restartCount,
      options,
      lifetime: {
        isOver: () => this.#over,
        watch: (listener) => {
          this.#listeners.add(listener)
          return () => void this.#listeners.delete(listener)
        },
      },
      clock: systemClock,
      signal: this.#abort.signal,
    })
    for await (const chunk of chunks) {
      this.text += chunk.toString()
      this.#check()
    }
  }

  get watchers(): number {
    return this.#listeners.size
  }

  changed(): void {
    for (const listener of this.#listeners) listener()
  }

  end(): void {
    this.#over = true
    this.changed()
  }

  abort(): void {
    this.#abort.abort()
  }

  async shows(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`expected ${JSON.stringify(text)}, have ${JSON.stringify(this.text)}`)),
        20_000 * slowness,
      )
      this.#check = () => {
        if (this.text !== text) return
        clearTimeout(timer)
        resolve()
      }
      this.#check()
    })
  }
}

const live = (): string => join(directory, '0.log')

describe('followLog', () => {
  it('passes on a line without its end, and goes on with it in the next file', async () => {
    await mkdir(directory)
    const part = 'x'.repeat(16_384)
    await writeFile(live(), record(part, 'P').repeat(7))
    const follower = new Follower()
    await follower.shows(part.repeat(7))
    await rename(live(), join(directory, '0.log.20260101-000000'))
    await writeFile(live(), record('y', 'P'))
    await follower.shows(`${part.repeat(7)}y`)
    await appendFile(live(), record('end') + record('next'))
    await follower.shows(`${part.repeat(7)}yend\nnext\n`)
    follower.end()
    await follower.done
    expect(follower.text).toBe(`${part.repeat(7)}yend\nnext\n`)
  })

  it('gives what is there, then each line as it comes, and ends with its container', async () => {
    await mkdir(directory)
    await writeFile(live(), record('one') + record('two'))
    const follower = new Follower()
    await follower.shows('one\ntwo\n')
    await appendFile(live(), record('three'))
    await follower.shows('one\ntwo\nthree\n')
    follower.end()
    await appendFile(live(), record('last words'))
    await follower.done
    expect(follower.text).toBe('one\ntwo\nthree\nlast words\n')
    expect(follower.watchers).toBe(0)
  })

  it('begins with the last lines', async () => {
    await mkdir(directory)
    await writeFile(live(), record('one') + record('two') + record('three'))
    const follower = new Follower({ tailLines: 1 })
    await follower.shows('three\n')
    await appendFile(live(), record('four'))
    await follower.shows('three\nfour\n')
    follower.end()
    await follower.done
    expect(follower.text).toBe('three\nfour\n')
  })

  it('goes over rotations without losing or repeating a line', async () => {
    await mkdir(directory)
    await writeFile(live(), record('0'))
    const follower = new Follower()
    let wanted = '0\n'
    for (let round = 1; round <= 3; round += 1) {
      const rotated = `${live()}.2026010${round}-000000`
      await rename(live(), rotated)
      // The runtime writes to the old file until it is told to reopen its log.
      await appendFile(rotated, record(`${round} late`))
      await writeFile(live(), record(`${round} new`))
      wanted += `${round} late\n${round} new\n`
    }
    await follower.shows(wanted)
    follower.end()
    await follower.done
    expect(follower.text).toBe(wanted)
  })

  it('stays with the file that is still written to while its successor is empty', async () => {
    await mkdir(directory)
    await writeFile(live(), record('0'))
    const follower = new Follower()
    await follower.shows('0\n')
    const rotated = `${live()}.20260101-000000`
    await rename(live(), rotated)
    await writeFile(live(), '')
    let wanted = '0\n'
    for (let line = 1; line <= 20; line += 1) {
      await appendFile(rotated, record(`late ${line}`))
      wanted += `late ${line}\n`
      await follower.shows(wanted)
    }
    await appendFile(live(), record('new'))
    await follower.shows(`${wanted}new\n`)
    follower.end()
    await follower.done
    expect(follower.text).toBe(`${wanted}new\n`)
  })

  it('goes on with the next instance after a restart', async () => {
    await mkdir(directory)
    await writeFile(live(), record('first') + record('no end', 'P'))
    const follower = new Follower()
    await follower.shows('first\n')
    await writeFile(join(directory, '1.log'), record('second'))
    await follower.shows('first\nno endsecond\n')
    await appendFile(join(directory, '1.log'), record('more'))
    await follower.shows('first\nno endsecond\nmore\n')
    follower.end()
    await follower.done
    expect(follower.text).toBe('first\nno endsecond\nmore\n')
  })

  it('begins again where a file was emptied in place', async () => {
    await mkdir(directory)
    await writeFile(live(), record('a long first line'))
    const follower = new Follower()
    await follower.shows('a long first line\n')
    await truncate(live(), 0)
    await appendFile(live(), record('x'))
    await follower.shows('a long first line\nx\n')
    follower.end()
    await follower.done
    expect(follower.text).toBe('a long first line\nx\n')
  })

  it('waits for a container that has not started yet', async () => {
    const follower = new Follower()
    await mkdir(directory)
    await writeFile(live(), record('hello'))
    follower.changed()
    await follower.shows('hello\n')
    follower.end()
    await follower.done
    expect(follower.text).toBe('hello\n')
  })

  it('ends quietly when nobody wants it any more', async () => {
    await mkdir(directory)
    await writeFile(live(), record('one'))
    const follower = new Follower()
    await follower.shows('one\n')
    follower.abort()
    await follower.done
    expect(follower.watchers).toBe(0)
  })

  it.each([1, 2, 4])(
    'reads what was put aside and compressed %i times while its reader waited',
    async (rotations) => {
      await mkdir(directory)
      await writeFile(live(), record('0'))
      const reader = followOverReader()
      expect((await reader.next()).value?.toString()).toBe('0\n')
      let wanted = ''
      for (let round = 1; round <= rotations; round += 1) {
        await appendFile(live(), record(`${round} late`))
        await rotate(round)
        await writeFile(live(), record(`${round} new`))
        wanted += `${round} late\n${round} new\n`
      }
      expect(await reader.rest()).toBe(wanted)
    },
  )

  it('loses nothing, whatever the order of writes, rotations and reads', async () => {
    const step = fc.constantFrom('write', 'write part', 'rotate', 'rotate late', 'read')
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        await rm(directory, { recursive: true, force: true })
        await mkdir(directory)
        await writeFile(live(), record('0'))
        const reader = followOverReader()
        let shown = ''
        let wanted = '0\n'
        let count = 0
        for (const what of steps) {
          count += 1
          if (what === 'read') {
            if (shown.length < wanted.length) shown += (await reader.next()).value?.toString() ?? ''
          } else if (what.startsWith('rotate')) {
            const rotated = await rotate(count)
            // The runtime turns to the new file a little later.
            if (what === 'rotate late') await appendFile(rotated, record(`${count}`))
            await writeFile(live(), what === 'rotate late' ? '' : record(`${count}`))
            wanted += `${count}\n`
          } else {
            await appendFile(live(), (what === 'write' ? '' : record('part', 'P')) + record(`${count}`))
            wanted += what === 'write' ? `${count}\n` : `part${count}\n`
          }
        }
        shown += await reader.rest()
        expect(shown).toBe(wanted)
      }),
      { numRuns: 40 },
    )
  })
})

/** Puts the live file aside, and compresses what was put aside before, as podd does. */
async function rotate(second: number): Promise<string> {
  for (const name of await readdir(directory)) {
    if (!/\d{6}$/u.test(name)) continue
    const path = join(directory, name)
    await writeFile(`${path}.gz`, gzipSync(await readFile(path)))
    await rm(path)
  }
  const rotated = `${live()}.20260101-0000${String(second).padStart(2, '0')}`
  await rename(live(), rotated)
  return rotated
}

/** Takes one chunk of a followed log at a time, then all that there is, once its container has ended. */
function followOverReader() {
  let over = false
  let listener = (): void => {}
  const chunks = followLog({
    directory,
    restartCount: 0,
    options: { timestamps: false },
    lifetime: {
      isOver: () => over,
      watch: (changed) => {
        listener = changed
        return () => {}
      },
    },
    clock: { ...systemClock, sleep: async () => {} },
    signal: new AbortController().signal,
  })
  return {
    next: () => chunks.next(),
    async rest(): Promise<string> {
      over = true
      listener()
      let text = ''
      for await (const chunk of chunks) text += chunk.toString()
      return text
    },
  }
}
