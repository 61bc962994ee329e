import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { formatOciArchive } from '../../../src/images/sandbox-image.ts'
import { readImageArchive } from '../../../src/images/image-archive.ts'
import { parseImageList } from '../../../src/images/archive-directory.ts'
import { formatTar } from '../../../src/images/tar.ts'
import type { TarEntry } from '../../../src/images/tar.ts'
import { formatDockerArchive } from '../../support/docker-archive.ts'

const directory = mkdtempSync(join(tmpdir(), 'podd-archives-'))
afterAll(() => rmSync(directory, { recursive: true }))

function read(data: Uint8Array) {
  const path = join(directory, 'archive')
  writeFileSync(path, data)
  return readImageArchive(path)
}

const file = (path: string, data: Uint8Array | string): TarEntry => ({
  kind: 'file',
  path,
  mode: 0o644,
  data: Buffer.from(data),
})
/** Does not compress well. */
const noise = Buffer.from(Array.from({ length: 40_000 }, (_, index) => (index * index * 7919) % 251))
const image = (name: string) => ({ name, entries: [file('noise', noise)], entrypoint: ['/x'] })
const oci = formatOciArchive(image('localhost/a:1'), image('busybox'))
const docker = formatDockerArchive('web:2', [file('noise', noise)])
const index = (annotations: object) => JSON.stringify({ manifests: [{ digest: 'sha256:1', annotations }] })
const half = (data: Buffer): Buffer => data.subarray(0, data.length / 2)
const damage = (data: Buffer): Buffer =>
  Buffer.concat([data.subarray(0, 20), Buffer.from('garbagegarbage'), data.subarray(34)])
/** Of the first entry of a tar: its type, and what else is put into its header. */
function retype(tar: Buffer, type: string, change: (header: Buffer) => void = () => undefined): Buffer {
  const header = Buffer.from(tar.subarray(0, 512))
  header.write(type, 156, 'latin1')
  change(header)
  header.fill(0x20, 148, 156)
  const sum = header.reduce((all, byte) => all + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return Buffer.concat([header, tar.subarray(512)])
}
/** An extended header of this content before an image's index. */
const pax = (content: string): Buffer =>
  Buffer.concat([retype(formatTar([file('pax', content)]), 'x').subarray(0, -1024), docker])
const names = ['localhost/a:1', 'docker.io/library/busybox:latest']

describe('readImageArchive', () => {
  it.each([
    ['an OCI layout', oci, names],
    ['one with gzip', gzipSync(oci), names],
    ['one with zstd', zstdCompressSync(oci), names],
    [
      'one of two zstd frames',
      Buffer.concat([zstdCompressSync(oci.subarray(0, 9000)), zstdCompressSync(oci.subarray(9000))]),
      names,
    ],
    ['docker save', docker, ['docker.io/library/web:2']],
    ['docker save with gzip', gzipSync(docker), ['docker.io/library/web:2']],
    [
      'a full reference as podman writes it',
      formatTar([file('./index.json', index({ 'org.opencontainers.image.ref.name': 'quay.io/x/y:3' }))]),
      ['quay.io/x/y:3'],
    ],
  ])('gives the complete names of the images of %s', async (_, data, images) => {
    const reading = await read(data)
    expect(reading).toMatchObject({ kind: 'archive', images, isMarked: true })
  })

  it.each(['', '13 comment=a\n'])('takes the extended header %j', async (content) => {
    expect((await read(pax(content))).kind).toBe('archive')
  })

  it.each([
    '8 path=\n',
    '8 size=\n',
    '1e-9 a=b\n',
    '0 a=b\n',
    '-6 a=b\n',
    '99999999999999999999 a=b\n',
    '6 ab\n',
    'a=b\n',
    '11 size=-1\n',
    '12 size=1e3\n',
    '28 size=99999999999999999999\n',
  ])('comes to a verdict on the odd extended header %j', async (content) => {
    expect((await read(pax(content))).kind).toMatch(/^(?:archive|bad|incomplete)$/u)
  })

  it('refuses a header that is too large', async () => {
    expect(await read(pax(`${'a'.repeat(2 ** 20)}\n`))).toEqual({
      kind: 'bad',
      message: `a header of ${2 ** 20 + 1} bytes is too large`,
    })
  })

  it.each([
    ['negative', Buffer.alloc(12, 0xff)],
    ['signed', Buffer.from('-0000000001\0')],
  ])('refuses an entry whose size is %s', async (_, size) => {
    const tar = retype(docker, '0', (header) => void size.copy(header, 124))
    const message = 'an entry of the tar archive has no valid size'
    expect(await read(tar)).toEqual({ kind: 'bad', message })
  })

  it('gives equal digests for equal images, whatever the compression', async () => {
    const [plain, zipped, other] = [await read(oci), await read(gzipSync(oci)), await read(docker)]
    expect(plain).toMatchObject({ digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/u) })
    expect(zipped).toEqual(plain)
    expect(other).not.toMatchObject({ digest: plain.kind === 'archive' ? plain.digest : '' })
  })

  it.each([
    ['an empty file', Buffer.alloc(0)],
    ['the first half', oci.subarray(0, oci.length / 2)],
    ['the first header alone', oci.subarray(0, 512)],
    ['half a header', oci.subarray(0, 100)],
    [
      'all but the index',
      oci.subarray(0, oci.lastIndexOf('index.json') - (oci.lastIndexOf('index.json') % 512)),
    ],
    ['half of the gzip', half(gzipSync(oci))],
    ['half of the zstd', half(zstdCompressSync(oci))],
    ['a gzip without its end', gzipSync(oci).subarray(0, -4)],
  ])('calls %s incomplete', async (_, data) => {
    expect(await read(data)).toEqual({ kind: 'incomplete', message: 'it ends in the middle' })
  })

  it('takes a tar without an end mark, and says so', async () => {
    expect(await read(oci.subarray(0, -1024))).toMatchObject({
      kind: 'archive',
      images: names,
      isMarked: false,
    })
  })

  it.each([
    ['text', Buffer.from('hello\n'.repeat(1000)), /^it is not a tar archive$/u],
    ['zeros', Buffer.alloc(4096), /^it is not a tar archive$/u],
    [
      'another tar',
      formatTar([file('hello', 'x')]),
      /^it holds neither an index\.json .* nor a manifest\.json/u,
    ],
    ['a broken index', formatTar([file('index.json', '{')]), /^its index is not valid JSON: /u],
    ['nameless images', formatTar([file('index.json', index({}))]), /^it names none of its images/u],
    [
      'a tag that names no image',
      formatTar([file('index.json', index({ 'org.opencontainers.image.ref.name': 'latest' }))]),
      /^it names none of its images/u,
    ],
    [
      'indexes of odd types',
      formatTar([file('index.json', '[1]'), file('manifest.json', '{"a":1}')]),
      /^it names none/u,
    ],
    ['damaged gzip', damage(gzipSync(oci)), /^it cannot be decompressed \(gzip\): /u],
    ['damaged zstd', damage(zstdCompressSync(oci)), /^it cannot be decompressed \(zstd\): /u],
    [
      'a huge index',
      formatTar([file('index.json', Buffer.alloc(17 * 2 ** 20))]),
      /^index\.json of \d+ bytes is too large$/u,
    ],
  ])('refuses %s', async (_, data, message) => {
    expect(await read(data)).toEqual({ kind: 'bad', message: expect.stringMatching(message) })
  })

  it('refuses a layout with a blob that is not what its name says', async () => {
    const damaged = Buffer.from(oci)
    const inLayer = oci.indexOf(noise.subarray(0, 64))
    damaged.fill(0xff, inLayer, inLayer + 10)
    expect(await read(damaged)).toEqual({
      kind: 'bad',
      message: expect.stringMatching(
        /^blobs\/sha256\/[0-9a-f]{64} is damaged: its digest is sha256:[0-9a-f]{64}$/u,
      ),
    })
  })

  it('refuses a damaged header in the middle', async () => {
    const damaged = Buffer.from(oci)
    damaged[oci.lastIndexOf('index.json')] = 0x58
    expect(await read(damaged)).toEqual({
      kind: 'bad',
      message: 'an entry of the tar archive is not valid: checksum failure',
    })
  })
})

describe('parseImageList', () => {
  it('takes a name in each line, and comments', () => {
    const text = '# what runs here\nbusybox\n\n  registry.example:5000/web:1  # the shop\nbusybox:latest\n'
    expect(parseImageList(text)).toMatchObject({
      kind: 'archive',
      images: ['docker.io/library/busybox:latest', 'registry.example:5000/web:1'],
      isMarked: true,
    })
  })

  it.each([
    ['busybox\nNo Image\n', 'line 2: "No Image" is not the name of an image'],
    ['a b', 'line 1: "a b" is not the name of an image'],
  ])('names the line that is no image: %j', (text, message) => {
    expect(parseImageList(text)).toEqual({ kind: 'bad', message })
  })

  it('tells whether the last line is complete', () => {
    expect(parseImageList('busybox:1\nregistry.exam')).toMatchObject({ kind: 'archive', isMarked: false })
  })
})
