import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { formatOciArchive } from '../../src/images/sandbox-image.ts'
import { shellImage } from './oci-image.ts'

const root = new URL('../../', import.meta.url).pathname

/** Images in a fresh rig: three shells that differ in their tags alone, to change from one to another. */
export const shell = 'localhost/podd-test/shell:1'
export const otherShell = 'localhost/podd-test/shell:2'
export const latestShell = 'localhost/podd-test/shell:latest'

let archive: Buffer | undefined

/** The archive of those images; compressed once for all rigs of a worker. */
export function rigImages(): Buffer {
  archive ??= formatOciArchive(...[shell, otherShell, latestShell].map((name) => shellImage(name)))
  return archive
}

/**
 * The podd to test: what `PODD_TEST_PROGRAM` names (an installed one, say), else this checkout's, built again
 * where a source is newer than what was built.
 */
export function poddProgram(): string {
  return (program ??= findProgram())
}

/** Looked for once: a worker runs many files. */
let program: string | undefined

function findProgram(): string {
  const given = process.env['PODD_TEST_PROGRAM']
  if (given !== undefined && given !== '') return given
  const built = join(root, 'dist/main.js')
  const sources = [join(root, 'src'), join(root, 'proto'), join(root, 'package.json')]
  const newestMs = Math.max(...sources.map((path) => newestChangeMs(path)))
  if (!existsSync(built) || statSync(built).mtimeMs < newestMs) {
    execFileSync(process.execPath, ['--run', 'build'], { cwd: root, stdio: 'ignore' })
  }
  return join(root, 'bin/podd')
}

function newestChangeMs(path: string): number {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  const entries = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return Math.max(0, ...entries.map((name) => statSync(join(path, name)).mtimeMs))
}
