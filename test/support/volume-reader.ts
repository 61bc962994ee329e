import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { writeVolumeFiles } from '../../src/volumes/atomic-writer.ts'

/** What a reader found while a volume's files were updated. */
export interface UpdateReport {
  /** How many states it has seen. */
  readonly seen: number
  /** What was half of one, or older than what was shown before. */
  readonly bad: readonly string[]
}

/** Updates the files of a volume so many times, under the eyes of another process that reads them. */
export async function readWhileUpdating(updates: number): Promise<UpdateReport> {
  const memoryDisk = '/dev/shm'
  const directory = await mkdtemp(join(existsSync(memoryDisk) ? memoryDisk : tmpdir(), 'podd-writer-'))
  const write = async (round: number): Promise<void> => {
    const data = Buffer.from(`${round}\n`)
    // A file that comes and goes is there in every other state.
    const names = round % 2 === 0 ? ['a', 'b', 'in/c'] : ['a', 'b']
    const files = new Map(names.map((path) => [path, { data, mode: 0o644 }]))
    await writeVolumeFiles(directory, files, { nowMs: systemClock.wallMs() })
  }
  await write(0)
  const reader = spawn(process.execPath, ['-e', readerScript, directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const chunks: Buffer[] = []
  reader.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise((resolve) => reader.once('close', resolve))
  try {
    for (let round = 1; round <= updates; round += 1) await write(round)
  } finally {
    reader.stdin.end()
    await ended
  }
  await rm(directory, { recursive: true })
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

/** Reads both files of one state again and again: through the links it has just read, and by their names. */
const readerScript = `
const { readFileSync, readlinkSync } = require('node:fs')
const directory = process.argv[1]
const bad = [], seen = new Set()
let over = false
process.stdin.on('end', () => { over = true }).resume()
function read(name) { return readFileSync(directory + '/' + name, 'utf8') }
function look() {
  for (let index = 0; index < 20; index += 1) {
    const state = readlinkSync(directory + '/..data')
    let a, b
    try { [a, b] = [read(state + '/a'), read(state + '/b')] } catch (error) {
      // Too late for a state that was swapped out long ago: never for the one that is shown.
      if (readlinkSync(directory + '/..data') === state) bad.push(error.message)
      continue
    }
    if (a !== b || !/^\\d+\\n$/.test(a)) bad.push('together: ' + a + b)
    let c
    try { c = read(state + '/in/c') } catch { c = undefined }
    if (c !== (Number(a) % 2 === 0 ? a : undefined) && readlinkSync(directory + '/..data') === state) bad.push('coming and going: ' + a + c)
    try {
      const alone = read('a')
      if (!/^\\d+\\n$/.test(alone) || Number(alone) < Number(a)) bad.push('alone: ' + alone)
      seen.add(alone)
    } catch (error) { bad.push(error.message) }
  }
  if (over || bad.length > 5) { console.log(JSON.stringify({ seen: seen.size, bad })); process.exit() }
  setTimeout(look, 2)
}
look()
`
