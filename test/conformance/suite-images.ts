import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatOciArchive } from '../../src/images/sandbox-image.ts'
import type { OciImage } from '../../src/images/sandbox-image.ts'
import type { TarEntry } from '../../src/images/tar.ts'
import { issueCertificate } from '../../src/server/access/own-authority.ts'
import { systemClock } from '../../src/base/clock.ts'
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

/**
 * The shell that starts the others: busybox's, whose words the specs expect, but where it would lose variables, as it does
 * those whose names have dashes.
 */
const chooseShell = `#!/bin/bash
shell=/bin/busybox
while IFS= read -r -d '' variable; do
  case "\${variable%%=*}" in *-*) shell=/bin/bash ;; esac
done </proc/self/environ
exec -a "$0" "$shell" "$@"
`

function withBash(image: OciImage): OciImage {
  const entries = image.entries.filter(({ path }) => path !== 'bin/sh')
  const bash = file('bin/bash', readFileSync('/bin/bash-static'))
  return { ...image, entries: [...entries, bash, file('bin/sh', Buffer.from(chooseShell))] }
}

/** What else the image of agnhost has: a user in a group, a client for HTTP, and a certificate that no spec checks. */
function agnhostFiles(agnhost: Buffer): readonly TarEntry[] {
  const dayMs = 86_400_000
  const { certificate, key } = issueCertificate({
    subject: { commonName: 'localhost' },
    use: { kind: 'server', names: ['localhost'] },
    fromMs: systemClock.wallMs() - dayMs,
    untilMs: systemClock.wallMs() + dayMs,
  })
  return [
    file('agnhost', agnhost),
    // Under a second name too, which specs take for another program.
    { kind: 'link', path: 'agnhost-2', target: 'agnhost' },
    file(
      'etc/passwd',
      Buffer.from(
        'root:x:0:0:root:/root:/bin/sh\ndefault-user:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n',
      ),
      0o644,
    ),
    file(
      'etc/group',
      Buffer.from(
        'root:x:0:\ndefault-user:x:1000:\nnogroup:x:65534:\ngroup-defined-in-image:x:50000:default-user\n',
      ),
      0o644,
    ),
    file('bin/curl', Buffer.from('#!/bin/bash\nexec wget -q -O - "${@: -1}"\n')),
    file('localhost.crt', Buffer.from(certificate), 0o644),
    file('localhost.key', Buffer.from(key), 0o644),
  ]
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
  const own = agnhostFiles(agnhost)
  const others = shell.entries.filter(({ path }) => !own.some((entry) => entry.path === path))
  const withAgnhost = { ...shell, entries: [...others, ...own] }
  switch (kind) {
    case 'agnhost':
      return { ...withAgnhost, entrypoint: ['/agnhost'], command: ['pause'] }
    case 'busybox':
    case 'glibc-dns-testing':
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
