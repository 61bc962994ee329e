import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { OciImage } from '../../src/images/sandbox-image.ts'
import type { TarEntry } from '../../src/images/tar.ts'

const busyboxPath = '/usr/bin/busybox'

/** The files of a busybox image: every applet, users, and the directories that programs expect. */
function busyboxFiles(): readonly TarEntry[] {
  const applets = execFileSync(busyboxPath, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  const directory = (path: string, mode = 0o755): TarEntry => ({ kind: 'directory', path, mode })
  const file = (path: string, content: Uint8Array | string, mode = 0o644): TarEntry => ({
    kind: 'file',
    path,
    mode,
    data: Buffer.from(content),
  })
  return [
    ...['bin/', 'etc/', 'root/', 'usr/', 'usr/bin/', 'var/', 'var/tmp/'].map((path) => directory(path)),
    directory('tmp/', 0o1777),
    file('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'),
    file('etc/group', 'root:x:0:\nnogroup:x:65534:\n'),
    file('bin/busybox', readFileSync(busyboxPath), 0o755),
    ...applets
      .filter((applet) => applet !== 'busybox')
      .map((applet): TarEntry => ({ kind: 'link', path: `bin/${applet}`, target: 'busybox' })),
  ]
}

/** A shell with all of busybox; sleeps until told otherwise. */
export const shellImageName = 'localhost/podd-test/shell:1'

export function shellImage(name: string = shellImageName, user?: string): OciImage {
  return {
    name,
    entries: busyboxFiles(),
    entrypoint: [],
    command: ['sleep', '1000000'],
    ...(user !== undefined && { user }),
  }
}

/** What holds a sandbox's namespaces. */
export const pauseImageName = 'localhost/podd-test/pause:1'

export function pauseImage(): OciImage {
  const data = readFileSync('/usr/bin/catatonit')
  return {
    name: pauseImageName,
    entries: [{ kind: 'file', path: 'catatonit', mode: 0o755, data }],
    entrypoint: ['/catatonit', '-P'],
  }
}
