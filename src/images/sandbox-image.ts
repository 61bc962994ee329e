import { readFile } from 'node:fs/promises'
import { PoddError } from '../base/errors.ts'
import { findExecutable } from '../host/find-executable.ts'
import { formatOciArchive } from './oci-archive.ts'
import { isStaticElf } from './static-elf.ts'

/**
 * The reference of the sandbox image that podd makes. The registry part `localhost` keeps a runtime
 * that has lost the image from asking anyone on the network for it.
 */
export const sandboxImageName = 'localhost/podd-pause:1'

/** No program on the host can be the sandbox's first process (`SANDBOX_IMAGE`). */
export class SandboxImageError extends PoddError {
  constructor(message: string) {
    super('SANDBOX_IMAGE', message, {
      hint: 'Install the package catatonit, or busybox-static.',
    })
  }
}

interface PauseProgram {
  readonly name: string
  readonly path: string
  readonly entrypoint: readonly string[]
}

/**
 * Programs that hold a pod's namespaces open and reap orphaned processes, best first: catatonit's pause mode, and a
 * waiting shell. Both must be static, since the image has nothing else.
 */
const pausePrograms: readonly PauseProgram[] = [
  { name: 'catatonit', path: 'pause', entrypoint: ['/pause', '-P'] },
  {
    name: 'busybox',
    path: 'busybox',
    entrypoint: [
      '/busybox',
      'sh',
      '-c',
      'trap "exit 0" TERM INT; while :; do /busybox sleep 3600 & wait "$!"; done',
    ],
  },
]

/** The path of a pause program on this host, or undefined; `podd doctor` uses it too. */
export async function findPauseProgram(
  find: (name: string) => string | undefined = findExecutable,
): Promise<{ readonly hostPath: string; readonly data: Buffer; readonly program: PauseProgram } | undefined> {
  for (const program of pausePrograms) {
    const hostPath = find(program.name)
    if (hostPath === undefined) continue
    const data = await readFile(hostPath)
    if (isStaticElf(data)) return { hostPath, data, program }
  }
  return undefined
}

/** The sandbox image as an archive that containerd imports, made from a program of this host. */
export async function buildSandboxImage(find?: (name: string) => string | undefined): Promise<Buffer> {
  const found = await findPauseProgram(find)
  if (found === undefined)
    throw new SandboxImageError('cannot make the sandbox image: no static pause program')
  const { data, program } = found
  return formatOciArchive({
    name: sandboxImageName,
    entries: [{ kind: 'file', path: program.path, mode: 0o755, data }],
    entrypoint: program.entrypoint,
  })
}
