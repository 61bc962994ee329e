import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatOciArchive } from '../../src/images/oci-archive.ts'
import type { OciImage } from '../../src/images/oci-archive.ts'
import type { TarEntry } from '../../src/images/tar.ts'
import { shellImage } from '../support/oci-image.ts'

/** Where the suite looks for its images instead of the registries that it knows (`KUBE_TEST_REPO_LIST`). */
const repository = 'localhost/e2e'

/** The text of a list of registries, as the suite reads it: one for all of its images. */
export const repositoryList: string = [
  'promoterE2eRegistry',
  'buildImageRegistry',
  'gcEtcdRegistry',
  'gcRegistry',
  'sigStorageRegistry',
  'privateRegistry',
  'dockerLibraryRegistry',
  'cloudProviderGcpRegistry',
]
  .map((name) => `${name}: ${repository}\n`)
  .join('')

/** A program that says under which user it runs in effect, and is another user's with the setuid bit. */
const effectiveUser =
  '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("Effective uid: %d\\n", geteuid()); return 0; }\n'

function file(path: string, data: Uint8Array, mode = 0o755): TarEntry {
  return { kind: 'file', path, data: Buffer.from(data), mode }
}

/** Shells of busybox lose variables whose names have dashes, which the specs use. */
function withBash(image: OciImage): OciImage {
  const entries = image.entries.filter(({ path }) => path !== 'bin/sh')
  return { ...image, entries: [...entries, file('bin/sh', readFileSync('/bin/bash-static'))] }
}

function compile(source: string): Buffer {
  const directory = mkdtempSync('/tmp/podd-conformance-')
  try {
    const program = join(directory, 'program')
    writeFileSync(`${program}.c`, source)
    execFileSync('cc', ['-static', '-o', program, `${program}.c`])
    return readFileSync(program)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** How the suite's own images are made here: of its program `agnhost`, busybox and bash. */
function makeImage(name: string, agnhost: Buffer): OciImage | undefined {
  const kind = /\/(?<kind>[^/]+):[^:]+$/u.exec(name)?.groups?.['kind']
  const shell = withBash(shellImage(name))
  // Under a second name too, which specs take for another program.
  const other: TarEntry = { kind: 'link', path: 'agnhost-2', target: 'agnhost' }
  const withAgnhost = { ...shell, entries: [...shell.entries, file('agnhost', agnhost), other] }
  switch (kind) {
    case 'agnhost':
      return { ...withAgnhost, entrypoint: ['/agnhost'], command: ['pause'] }
    case 'busybox':
      return { ...shell, command: ['sh'] }
    case 'nginx':
    case 'httpd':
    case 'kitten':
    case 'nautilus':
      return {
        ...withAgnhost,
        entrypoint: ['/agnhost', 'netexec', '--http-port=80', '--udp-port=-1'],
        command: [],
      }
    case 'pause':
      return { ...withAgnhost, entrypoint: ['/agnhost', 'pause'], command: [] }
    case 'nonroot':
      return { ...shell, user: '1234', entrypoint: ['/bin/sh', '-c', 'id -u; sleep 1000'], command: [] }
    case 'nonewprivs':
      return {
        ...shell,
        entries: [...shell.entries, file('nnp', compile(effectiveUser), 0o4755)],
        entrypoint: ['/nnp'],
        command: [],
      }
    default:
      return undefined
  }
}

/**
 * Archives of the suite's images, one for each of those that can be made without a registry.
 * @param names as the suite lists them, under `repository`
 */
export function* suiteArchives(names: readonly string[], agnhostPath: string): Generator<Buffer> {
  const agnhost = readFileSync(agnhostPath)
  for (const name of names) {
    const image = makeImage(name, agnhost)
    if (image !== undefined) yield formatOciArchive(image)
  }
}
