import { appendFile, mkdtemp, open, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findTail, readLog } from '../../../src/logs/read-log.ts'
import { LogDecoder } from '../../../src/logs/log-decoder.ts'
import { listLogInstances } from '../../../src/logs/log-files.ts'
import type { ReadLogOptions } from '../../../src/logs/log-decoder.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-log-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true })
})

const record = (text: string, tag = 'F', stream = 'stdout', second = 0): string =>
  `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000001Z ${stream} ${tag} ${text}\n`

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => record(`line ${from + index}`)).join('')

async function read(options: Partial<ReadLogOptions> = {}, restartCount = 0): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of readLog(directory, restartCount, { timestamps: false, ...options }))
    chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('readLog', () => {
  beforeEach(async () => {
    await writeFile(join(directory, '3.log.20260101-000000.gz'), gzipSync(lines(1, 3)))
    await writeFile(join(directory, '3.log.20260102-000000'), lines(4, 5))
    await writeFile(join(directory, '3.log'), lines(6, 7))
    await writeFile(join(directory, '2.log'), record('of the instance before'))
    await writeFile(join(directory, 'notes.txt'), 'not a log')
  })

  it('gives all that rotation kept, oldest first', async () => {
    expect(await read({}, 3)).toBe([1, 2, 3, 4, 5, 6, 7].map((number) => `line ${number}\n`).join(''))
    expect(await read({}, 2)).toBe('of the instance before\n')
  })

  it.each([
    [0, []],
    [1, [7]],
    [2, [6, 7]],
    [3, [5, 6, 7]],
    [4, [4, 5, 6, 7]],
    [5, [3, 4, 5, 6, 7]],
    [7, [1, 2, 3, 4, 5, 6, 7]],
    [100, [1, 2, 3, 4, 5, 6, 7]],
  ])('goes back over rotated files for the last %i lines', async (tailLines, wanted) => {
    expect(await read({ tailLines }, 3)).toBe(wanted.map((number) => `line ${number}\n`).join(''))
  })

  it('leaves out files that are older than what is asked for', async () => {
    const old = new Date('2025-12-31T00:00:00Z')
    await utimes(join(directory, '3.log.20260101-000000.gz'), old, old)
    expect(await read({ sinceMs: Date.parse('2026-01-01T00:00:00Z') }, 3)).toMatch(/^line 4\n/u)
  })

  it.each([undefined, 2500])('ends where the log ended when reading began (tail: %s)', async (tailLines) => {
    const log = join(directory, '4.log')
    await writeFile(log, lines(1, 3000))
    const reading = readLog(directory, 4, { timestamps: false, tailLines })
    const first = await reading.next()
    await appendFile(log, lines(3001, 3100))
    let text = String(first.value)
    for await (const chunk of reading) text += String(chunk)
    expect(text.split('\n').at(-2)).toBe('line 3000')
    expect(text.split('\n')).toHaveLength((tailLines ?? 3000) + 1)
  })

  it('takes the plain file while its compressed twin is being written', async () => {
    await writeFile(join(directory, '3.log.20260102-000000.gz'), 'half a file')
    expect(await read({ tailLines: 3 }, 3)).toBe('line 5\nline 6\nline 7\n')
  })

  it.each([
    [1_000_000, ['line 4', 'line 5', 'line 6', 'line 7']],
    // Of records that take 47 bytes.
    [100, ['ine 5', 'line 6', 'line 7']],
    [50, [' 6', 'line 7']],
  ])('looks for the last lines in %i bytes, and in nothing compressed', async (searchBytes, wanted) => {
    expect(await read({ tailLines: 10, searchBytes }, 3)).toBe(`${wanted.join('\n')}\n`)
  })

  it('gives what a cut-off compressed file still holds', async () => {
    const whole = gzipSync(lines(1, 2000))
    await writeFile(join(directory, '3.log.20260101-000000.gz'), whole.subarray(0, whole.length - 20))
    expect(await read({}, 3)).toMatch(/^line 1\nline 2\n/u)
  })

  it('gives nothing where there is no log', async () => {
    expect(await read({}, 9)).toBe('')
    directory = join(directory, 'missing')
    expect(await read()).toBe('')
    directory = join(directory, '..')
  })

  it('lists the instances that have a log', async () => {
    expect(await listLogInstances(directory)).toEqual([2, 3])
  })
})

describe('findTail', () => {
  const recordOf = fc.record({
    text: fc.constantFrom('', 'a', 'longer text', 'ü'),
    partial: fc.boolean(),
    stderr: fc.boolean(),
  })

  it('gives the same last lines as reading it all', async () => {
    const path = join(directory, '0.log')
    await fc.assert(
      fc.asyncProperty(fc.array(recordOf, { maxLength: 30 }), fc.nat(12), async (records, wanted) => {
        const log = records
          .map(({ text, partial, stderr }) => record(text, partial ? 'P' : 'F', stderr ? 'stderr' : 'stdout'))
          .join('')
        await writeFile(path, log)
        const handle = await open(path)
        try {
          const size = (await handle.stat()).size
          const tail = await findTail(handle, size, wanted)
          const rest = Buffer.from(log).subarray(tail.offset)
          const decoder = new LogDecoder({ timestamps: false })
          decoder.write(rest)
          // What it counted is what there is, a line without an end at the very end included.
          const open = records.at(-1)?.partial === true && wanted > 0 ? 1 : 0
          expect(tail.lines).toBe(decoder.completedLines + open)
          const whole =
            records.filter(({ partial }) => !partial).length + (records.at(-1)?.partial === true ? 1 : 0)
          expect(tail.lines).toBeGreaterThanOrEqual(Math.min(wanted, whole))
        } finally {
          await handle.close()
        }
      }),
      { numRuns: 200 },
    )
  })

  it('reads as little of a file of 1 GiB as of a small one', async () => {
    const path = join(directory, '0.log')
    await writeFile(path, lines(1, 100_000))
    const readBytes: number[] = []
    for (const sizeBytes of [5_000_000, 1024 ** 3]) {
      // What stands before the last lines is never looked at: a hole does as well as text.
      await writeFile(path, '')
      await truncate(path, sizeBytes)
      await appendFile(path, lines(1, 100_000))
      const counted = await openCounting(path)
      const tail = await findTail(counted.handle, (await counted.handle.stat()).size, 10)
      await counted.handle.close()
      expect(tail.lines).toBe(10)
      readBytes.push(counted.readBytes())
    }
    expect(readBytes).toEqual([64 * 1024, 64 * 1024])
  })
})

/** Counts the bytes that are read through a file's handle. */
async function openCounting(path: string) {
  const handle = await open(path)
  let readBytes = 0
  const read = handle.read.bind(handle)
  const counting = new Proxy(handle, {
    get(target, key) {
      if (key !== 'read') {
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      }
      return async (buffer: Buffer, offset: number, length: number, position: number) => {
        const result = await read(buffer, offset, length, position)
        readBytes += result.bytesRead
        return result
      }
    },
  })
  return { handle: counting, readBytes: () => readBytes }
}
