import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const source = join(import.meta.dirname, '../../../src/cli/local/compile-cache.ts')
// mount(2) is root's.
const rootOnly = process.getuid?.() !== 0
let root: string
let cache: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podd-compiled-'))
  cache = join(root, 'dist/cache')
  mkdirSync(join(root, 'dist'))
  putProgram()
})
afterEach(() => {
  rmSync(root, { recursive: true })
})

/** A program that keeps its code as podd does. */
function putProgram(): void {
  const keep = "import { keepCompiledCode } from './compile-cache.ts'\n"
  writeFileSync(join(root, 'dist/package.json'), '{ "type": "module" }')
  writeFileSync(
    join(root, 'dist/main.js'),
    `${keep}process.umask(0o022)\nkeepCompiledCode(import.meta.dirname + '/cache')\nawait import('./program.js')`,
  )
  writeFileSync(join(root, 'dist/program.js'), "console.log('ran', process.argv[2])")
  cpSync(source, join(root, 'dist/compile-cache.ts'))
}

function run(): { status: number | null; out: string; err: string } {
  const { NODE_COMPILE_CACHE: _, NODE_DISABLE_COMPILE_CACHE: __, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'dist/main.js'), 'version'], {
    encoding: 'utf8',
    env,
  })
  return { status, out: stdout, err: stderr }
}

/** The files of compiled code. */
function compiled(): readonly string[] {
  return readdirSync(cache, { recursive: true, encoding: 'utf8' })
    .map((name) => join(cache, name))
    .filter((path) => statSync(path).isFile())
}

describe('compiled code of the command line', () => {
  it('is kept, readable by others and written by its owner alone, and read by the next call', () => {
    const umask = process.umask(0)
    try {
      expect(run()).toEqual({ status: 0, out: 'ran version\n', err: '' })
    } finally {
      process.umask(umask)
    }
    expect(statSync(cache).mode & 0o777).toBe(0o755)
    const written = compiled().map((path) => [path, statSync(path).ino])
    expect(written.length).toBeGreaterThan(0)
    run()
    expect(compiled().map((path) => [path, statSync(path).ino])).toEqual(written)
  })

  it.each<[what: string, spoil: () => void]>([
    ['garbage', () => compiled().forEach((file) => writeFileSync(file, 'garbage'.repeat(500)))],
    ['cut off', () => compiled().forEach((file) => truncateSync(file, 100))],
    ['empty', () => compiled().forEach((file) => truncateSync(file, 0))],
    [
      'changed within',
      () => {
        for (const file of compiled()) {
          const bytes = readFileSync(file)
          for (let at = 64; at < bytes.length; at += 31) bytes[at] = (bytes[at] ?? 0) ^ 0x55
          writeFileSync(file, bytes)
        }
      },
    ],
    [
      'no directory',
      () => {
        rmSync(cache, { recursive: true })
        writeFileSync(cache, '')
      },
    ],
  ])('changes nothing where it is %s', (_, spoil) => {
    run()
    spoil()
    expect(run()).toEqual({ status: 0, out: 'ran version\n', err: '' })
    expect(run()).toEqual({ status: 0, out: 'ran version\n', err: '' })
  })

  it('is not taken for that of another program', () => {
    run()
    writeFileSync(
      join(root, 'dist/program.js'),
      "const other = 1\nconsole.log('ran', process.argv[2], other)",
    )
    expect(run()).toEqual({ status: 0, out: 'ran version 1\n', err: '' })
    expect(run()).toEqual({ status: 0, out: 'ran version 1\n', err: '' })
  })

  describe.skipIf(rootOnly)('on a disk of its own', () => {
    afterEach(() => {
      execFileSync('umount', [join(root, 'dist')])
    })

    it.each([
      ['is left out where there is little room', 'size=16m', false],
      ['is left out where there are few inodes', 'size=64m,nr_inodes=500', false],
      ['is kept where there is room', 'size=64m', true],
    ])('%s', (_, options, isKept) => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'podd-test', join(root, 'dist')])
      putProgram()
      expect(run()).toEqual({ status: 0, out: 'ran version\n', err: '' })
      expect(existsSync(cache)).toBe(isKept)
    })
  })
})
