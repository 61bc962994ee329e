import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { mkdtemp, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  formatOciArchive,
  buildSandboxImage,
  findPauseProgram,
  sandboxImageName,
  isStaticElf,
} from '../../../src/images/sandbox-image.ts'
import { formatTar } from '../../../src/images/tar.ts'

let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-oci-'))
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

/** Unpacks with the system's own tar, which must take what we write without a word. */
function unpack(archive: Buffer): string {
  const result = spawnSync('tar', ['-x', '-C', directory], { input: archive })
  expect(result.stderr.toString()).toBe('')
  expect(result.status).toBe(0)
  return directory
}

describe('formatTar', () => {
  it('is read by tar: files of any size, directories, links, modes', async () => {
    unpack(
      formatTar([
        { kind: 'directory', path: 'bin/', mode: 0o755 },
        { kind: 'file', path: 'bin/tool', mode: 0o750, data: Buffer.from('x'.repeat(513)) },
        { kind: 'file', path: 'empty', mode: 0o644, data: new Uint8Array() },
        { kind: 'file', path: 'block', mode: 0o600, data: Buffer.alloc(512, 'b') },
        { kind: 'link', path: 'bin/alias', target: 'tool' },
      ]),
    )
    expect(await readFile(join(directory, 'bin/tool'), 'utf8')).toBe('x'.repeat(513))
    expect((await stat(join(directory, 'bin/tool'))).mode & 0o777).toBe(0o750)
    expect((await stat(join(directory, 'empty'))).size).toBe(0)
    expect((await stat(join(directory, 'block'))).size).toBe(512)
    expect(await readlink(join(directory, 'bin/alias'))).toBe('tool')
  })

  it('gives equal bytes for equal entries', () => {
    const entries = [{ kind: 'file', path: 'a', mode: 0o644, data: Buffer.from('a') }] as const
    expect(formatTar(entries).equals(formatTar(entries))).toBe(true)
  })

  it('writes names of any length and alphabet', async () => {
    const path = `${'long/'.repeat(60)}${'ü'.repeat(120)}`
    unpack(
      formatTar([
        { kind: 'file', path, mode: 0o644, data: Buffer.from('a') },
        { kind: 'link', path: 'link', target: path },
      ]),
    )
    expect(await readFile(join(directory, path), 'utf8')).toBe('a')
    expect(await readlink(join(directory, 'link'))).toBe(path)
  })
})

interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly annotations: Record<string, string>
}

describe('formatOciArchive', () => {
  const image = {
    name: 'localhost/tool:1',
    entries: [{ kind: 'file', path: 'tool', mode: 0o755, data: Buffer.from('#!') }],
    entrypoint: ['/tool'],
    command: ['-v'],
  } as const

  async function readBlob(descriptor: Descriptor): Promise<Buffer> {
    const data = await readFile(join(directory, 'blobs/sha256', descriptor.digest.slice(7)))
    expect(data.length).toBe(descriptor.size)
    expect(`sha256:${createHash('sha256').update(data).digest('hex')}`).toBe(descriptor.digest)
    return data
  }

  it('describes every blob by its own digest and size, and the layer also unpacked', async () => {
    unpack(formatOciArchive(image))
    expect(JSON.parse(readFileSync(join(directory, 'oci-layout'), 'utf8'))).toEqual({
      imageLayoutVersion: '1.0.0',
    })
    const index = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8')) as {
      manifests: [Descriptor]
    }
    expect(index.manifests[0].annotations['io.containerd.image.name']).toBe('localhost/tool:1')
    const manifest = JSON.parse((await readBlob(index.manifests[0])).toString()) as {
      config: Descriptor
      layers: [Descriptor]
    }
    const layer = await readBlob(manifest.layers[0])
    const config = JSON.parse((await readBlob(manifest.config)).toString()) as object
    expect(config).toMatchObject({
      os: 'linux',
      config: { Entrypoint: ['/tool'], Cmd: ['-v'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${createHash('sha256').update(layer).digest('hex')}`] },
    })
  })

  it('holds several images, and what they share once', () => {
    unpack(formatOciArchive(image, { ...image, name: 'localhost/tool:2', user: '1001' }))
    const index = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8')) as {
      manifests: Descriptor[]
    }
    expect(index.manifests.map(({ annotations }) => annotations['io.containerd.image.name'])).toEqual([
      'localhost/tool:1',
      'localhost/tool:2',
    ])
    const blobs = readdirSync(join(directory, 'blobs/sha256'))
    expect(blobs).toHaveLength(5)
    const texts = blobs.map((name) => readFileSync(join(directory, 'blobs/sha256', name), 'latin1'))
    expect(texts.filter((text) => text.includes('"User":"1001"'))).toHaveLength(1)
  })

  it.each([
    ['x64', { architecture: 'amd64' }],
    ['arm64', { architecture: 'arm64' }],
    ['arm', { architecture: 'arm', variant: 'v7' }],
    ['ppc64', { architecture: 'ppc64le' }],
  ])('names %s as images do', (arch, expected) => {
    const text = formatOciArchive({ ...image, arch }).toString('latin1')
    for (const [key, value] of Object.entries(expected)) expect(text).toContain(`"${key}":"${value}"`)
  })
})

/** The start of an ELF file with program headers of these types. */
function elf(types: readonly number[]): Buffer {
  const data = Buffer.alloc(64 + types.length * 56)
  data.writeUInt32BE(0x7f454c46, 0)
  data.writeUInt8(2, 4)
  data.writeUInt8(1, 5)
  data.writeBigUInt64LE(64n, 32)
  data.writeUInt16LE(56, 54)
  data.writeUInt16LE(types.length, 56)
  for (const [index, type] of types.entries()) data.writeUInt32LE(type, 64 + index * 56)
  return data
}

describe('isStaticElf', () => {
  it.each([
    ['a static program', elf([1, 1]), true],
    ['one with a loader', elf([6, 3, 1]), false],
    ['a script', Buffer.from(`#!/bin/sh\n${' '.repeat(100)}`), false],
    ['an empty file', Buffer.alloc(0), false],
    ['a cut file', elf([1, 1]).subarray(0, 70), false],
  ])('%s: %s', (_, data, expected) => {
    expect(isStaticElf(data)).toBe(expected)
  })

  it('knows node itself for a dynamic program', () => {
    expect(isStaticElf(readFileSync(process.execPath).subarray(0, 4096))).toBe(false)
  })
})

describe('findPauseProgram', () => {
  it('takes catatonit before busybox, and never a dynamic one', async () => {
    const catatonit = join(directory, 'catatonit')
    const busybox = join(directory, 'busybox')
    await writeFile(busybox, elf([1]))
    const find = (name: string): string => join(directory, name)
    await writeFile(catatonit, elf([3]))
    expect(await findPauseProgram(find)).toMatchObject({ hostPath: busybox })
    await writeFile(catatonit, elf([1]))
    expect(await findPauseProgram(find)).toMatchObject({ hostPath: catatonit })
  })

  it('says what to install where there is none', async () => {
    await expect(buildSandboxImage(() => undefined)).rejects.toMatchObject({
      code: 'SANDBOX_IMAGE',
      hint: expect.stringContaining('catatonit') as string,
    })
  })

  it('makes an image under the name that containerd is told', async () => {
    const path = join(directory, 'catatonit')
    await writeFile(path, elf([1]))
    const archive = await buildSandboxImage((name) => (name === 'catatonit' ? path : undefined))
    expect(archive.toString('latin1')).toContain(`"io.containerd.image.name":"${sandboxImageName}"`)
    expect(archive.toString('latin1')).toContain('"Entrypoint":["/pause","-P"]')
  })
})
