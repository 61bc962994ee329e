/**
 * node packaging/busybox-image.ts BUSYBOX FILE.tar [OWN]: makes the image that the example manifests use, out of
 * a static busybox, with no registry. Every applet is there as a link in /bin; where the busybox is of another processor, OWN is
 * one of the same release that lists them.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { formatOciArchive, isStaticElf } from '../src/images/sandbox-image.ts'

const imageName = 'localhost/podd-busybox:1'

const [busybox, target, own = busybox] = process.argv.slice(2)
if (busybox === undefined || target === undefined || own === undefined) {
  console.error('usage: node packaging/busybox-image.ts BUSYBOX FILE.tar [OWN]')
  process.exit(2)
}
const program = readFileSync(busybox)
if (!isStaticElf(program)) {
  console.error(`${busybox} is not statically linked, so that it can't be all that an image holds`)
  process.exit(1)
}
const applets = execFileSync(own, ['--list'], { encoding: 'utf8' })
  .split('\n')
  .filter((name) => name !== '' && name !== 'busybox')

writeFileSync(
  target,
  formatOciArchive({
    name: imageName,
    entries: [
      { kind: 'directory', path: 'bin/', mode: 0o755 },
      { kind: 'file', path: 'bin/busybox', mode: 0o755, data: program },
      ...applets.map((name) => ({ kind: 'link' as const, path: `bin/${name}`, target: 'busybox' })),
      { kind: 'directory', path: 'etc/', mode: 0o755 },
      { kind: 'file', path: 'etc/passwd', mode: 0o644, data: Buffer.from('root:x:0:0:root:/:/bin/sh\n') },
      { kind: 'file', path: 'etc/group', mode: 0o644, data: Buffer.from('root:x:0:\n') },
      { kind: 'directory', path: 'tmp/', mode: 0o1777 },
    ],
    entrypoint: [],
    command: ['sh'],
  }),
)
console.log(imageName)
