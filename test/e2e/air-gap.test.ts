import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, it } from 'vitest'
import type { EventObject } from '../../src/api/resource.ts'
import type { ImageEntry } from '../../src/api/routes.ts'
import { formatOciArchive } from '../../src/images/sandbox-image.ts'
import { formatDockerArchive } from '../support/docker-archive.ts'
import { shellImage } from '../support/oci-image.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { push, registryProgram, startRegistry } from '../support/loopback-registry.ts'
import { shellPod } from '../support/shell-pods.ts'

/** Nobody answers there: what isn't imported can't be had. */
const registry = 'registry.invalid/air'

function archiveOf(...names: readonly string[]): Buffer {
  return formatOciArchive(...names.map((name) => shellImage(`${registry}/${name}`)))
}

/** Puts a file into the directory of archives at once, as `mv` does. */
function place(podd: PoddRig, name: string, data: Uint8Array | string): void {
  const temporary = join(podd.directory, `placed-${name}`)
  writeFileSync(temporary, data)
  mkdirSync(join(podd.rootDir, 'images'), { recursive: true })
  renameSync(temporary, archivePath(podd, name))
}

function archivePath(podd: PoddRig, name: string): string {
  return join(podd.rootDir, 'images', name)
}

function podWith(podd: PoddRig, name: string, image: string, fields: object = {}): object {
  return shellPod(name, podd.shared, 'stay', { container: { image: `${registry}/${image}`, ...fields } })
}

async function findImage(podd: PoddRig, name: string): Promise<ImageEntry | undefined> {
  const images = await podd.get<readonly ImageEntry[]>('/podd/v1/images')
  return images.find(({ tags }) => tags.includes(`${registry}/${name}`))
}

/** How often an archive was imported, by podd's own log. */
function countImports(podd: PoddRig, name: string): number {
  const log = readFileSync(join(podd.directory, 'podd.log'), 'utf8')
  return log
    .split('\n')
    .filter((line) => line.includes('imported an image archive') && line.includes(`/${name}"`)).length
}

async function nodeEvents(podd: PoddRig, reason: string): Promise<readonly string[]> {
  const { items } = await podd.get<{ readonly items: readonly EventObject[] }>('/api/v1/events')
  return items.filter((event) => event.reason === reason).map(({ message }) => message)
}

describePodd('air gap', {}, (rig) => {
  it('imports archives of each format at start, before pods pull what they bring, and pins them', async () => {
    const podd = rig()
    await podd.stopDaemon()
    place(podd, 'plain.tar', archiveOf('plain:1'))
    place(podd, 'gzip.tar.gz', gzipSync(archiveOf('gzip:1', 'gzip:2')))
    place(podd, 'zstd.tar.zst', zstdCompressSync(archiveOf('zstd:1')))
    place(podd, 'docker.tar', formatDockerArchive(`${registry}/docker:1`, shellImage().entries))
    for (const name of ['plain', 'gzip', 'zstd', 'docker']) podd.drop(name, podWith(podd, name, `${name}:1`))
    podd.drop('never', podWith(podd, 'never', 'gzip:2', { imagePullPolicy: 'Never' }))
    await podd.startDaemon()
    for (const name of ['plain', 'gzip', 'zstd', 'docker', 'never']) {
      const pod = await podd.untilReady(name)
      expect(containerOf(pod, 'main').restartCount).toBe(0)
      const reasons = (await podd.events(name)).map(({ reason }) => reason)
      expect(reasons).toContain('Pulled')
      expect(reasons).not.toContain('Pulling')
      expect(reasons).not.toContain('ErrImageNeverPull')
    }
    for (const name of ['plain:1', 'gzip:1', 'gzip:2', 'zstd:1', 'docker:1'])
      expect(await podd.until(name, () => findImage(podd, name))).toMatchObject({ pinned: true })
    expect((await nodeEvents(podd, 'ImagesImported')).join('\n')).toContain(
      `Imported ${registry}/gzip:1, ${registry}/gzip:2 from ${archivePath(podd, 'gzip.tar.gz')}`,
    )
  })

  it('imports nothing again at the next start, nor when a file is only touched', async () => {
    const podd = rig()
    utimesSync(archivePath(podd, 'zstd.tar.zst'), 1, 1)
    await podd.restartDaemon('SIGKILL')
    const path = '/podd/v1/images/archives'
    await podd.until('all archives known', async () => {
      const archives = await podd.get<readonly { readonly state: string }[]>(path)
      return archives.length === 4 && archives.every(({ state }) => state === 'imported')
    })
    for (const name of ['plain.tar', 'gzip.tar.gz', 'zstd.tar.zst', 'docker.tar'])
      expect([name, countImports(podd, name)]).toEqual([name, 1])
  })

  it('imports what appears, once it is complete', async () => {
    const podd = rig()
    podd.drop('late', podWith(podd, 'late', 'late:1'))
    await podd.untilEvent('late', 'Failed', /Failed to pull image/u)
    const data = gzipSync(archiveOf('late:1'))
    const file = openSync(archivePath(podd, 'late.tar.gz'), 'w')
    writeSync(file, data.subarray(0, data.length / 2))
    const note = 'late.tar.gz: it ends in the middle; it may still be written'
    await podd.until('the half to be read', async () => (await podd.ask('images')).stderr.includes(note))
    writeSync(file, data.subarray(data.length / 2))
    closeSync(file)
    const pod = await podd.untilReady('late')
    expect(containerOf(pod, 'main').restartCount).toBe(0)
    expect(countImports(podd, 'late.tar.gz')).toBe(1)
    expect(await findImage(podd, 'late:1')).toMatchObject({ pinned: true })
  })

  it('names a bad archive and why, and goes on with the others', async () => {
    const podd = rig()
    place(podd, 'a-text.tar', 'this is no archive\n'.repeat(100))
    const whole = archiveOf('broken:1')
    whole.fill(0xff, whole.indexOf('1f8b08', 0, 'hex') + 5000, whole.indexOf('1f8b08', 0, 'hex') + 6000)
    place(podd, 'b-broken.tar', whole)
    place(podd, 'c-xz.tar.xz', 'xz')
    // Of docker save no layer bears its digest: containerd finds out, and what it has imported by then goes.
    const own = { kind: 'file', path: 'own', mode: 0o644, data: Buffer.from('layered') } as const
    const layered = formatDockerArchive(`${registry}/layered:1`, [...shellImage().entries, own])
    layered.write('damaged', layered.lastIndexOf('layered', layered.lastIndexOf('manifest.json')))
    place(podd, 'd-layered.tar', layered)
    place(podd, 'good.tar', archiveOf('good:1'))
    podd.drop('good', podWith(podd, 'good', 'good:1'))
    await podd.untilReady('good')
    const problem = (name: string) =>
      podd.until(`the problem of ${name}`, async () => {
        const { problems } = await podd.status()
        return problems.find(({ place: { path } }) => path === archivePath(podd, name))
      })
    expect(await problem('a-text.tar')).toMatchObject({
      severity: 'error',
      message: 'it is not a tar archive',
    })
    expect((await problem('b-broken.tar')).message).toMatch(
      /^blobs\/sha256\/[0-9a-f]{64} is damaged: its digest is /u,
    )
    expect((await problem('d-layered.tar')).message).toMatch(/^cannot import .*d-layered\.tar: /u)
    expect(podd.ctr('images', 'ls', '-q')).not.toMatch(/broken|layered/u)
    expect((await problem('c-xz.tar.xz')).message).toContain('its name ends in none of .tar, .tar.gz')
    expect((await podd.cli('images')).stderr).toContain(
      `${archivePath(podd, 'a-text.tar')}: it is not a tar archive`,
    )
    expect((await nodeEvents(podd, 'ImageImportFailed')).join('\n')).toContain(
      'a-text.tar: it is not a tar archive',
    )
    for (const name of ['a-text.tar', 'b-broken.tar', 'c-xz.tar.xz', 'd-layered.tar'])
      rmSync(archivePath(podd, name))
    await podd.until('no problems', async () => (await podd.status()).problems.length === 0)
  })

  it('unpins the images of an archive that was removed, but those that another holds', async () => {
    const podd = rig()
    place(podd, 'other.tar', archiveOf('gzip:2'))
    await podd.until('its import', () => countImports(podd, 'other.tar') === 1)
    rmSync(archivePath(podd, 'gzip.tar.gz'))
    const isPinned = (name: string): boolean =>
      podd
        .ctr('images', 'ls', '-q', 'labels."io.cri-containerd.pinned"==pinned')
        .split('\n')
        .includes(`${registry}/${name}`)
    await podd.until('gzip:1 unpinned', () => !isPinned('gzip:1'))
    expect(isPinned('gzip:2')).toBe(true)
    expect(isPinned('zstd:1')).toBe(true)
  })

  it('exports an image, which another store imports as the same', async () => {
    const podd = rig()
    const file = join(podd.directory, 'exported.tar')
    const before = await podd.until('its image', () => findImage(podd, 'docker:1'))
    expect(await podd.cliOk('images', 'export', `${registry}/docker:1`, '-o', file)).toMatch(
      /^exported .*docker:1 to .*exported\.tar \([\d.]+MB\)$/mu,
    )
    expect(await podd.cli('images', 'export', 'none:1', '-o', file)).toMatchObject({ code: 1 })
    // A pod of the first test uses it.
    const refused = await podd.cli('images', 'rm', `${registry}/docker:1`)
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.stderr).toContain('is used by container default/docker main, pod default/docker')
    podd.removeManifest('docker')
    await podd.untilGone('docker')
    expect((await podd.cli('images', 'rm', `${registry}/docker:1`)).stderr).toContain('is pinned')
    rmSync(archivePath(podd, 'docker.tar'))
    await podd.until('it unpinned', async () => (await findImage(podd, 'docker:1'))?.pinned === false)
    expect(await podd.cliOk('images', 'prune', '--all', '--dry-run')).toContain(`${registry}/docker:1 `)
    expect(await podd.cliOk('images', 'rm', `${registry}/docker:1`)).toMatch(/^removed .* freed$/mu)
    expect(await findImage(podd, 'docker:1')).toBeUndefined()
    expect(await podd.cliOk('images', 'import', file)).toBe(`imported ${registry}/docker:1\n`)
    const after = await podd.until('it again', () => findImage(podd, 'docker:1'))
    expect(after).toMatchObject({ id: before.id, pinned: true })
    podd.drop('docker', podWith(podd, 'docker', 'docker:1'))
    await podd.untilReady('docker')
    expect(await podd.cliOk('images', 'ls', '-o', 'wide', '--digests')).toMatch(
      /air\/docker +1 +<none> +[0-9a-f]{13} +[\d.]+MB +yes +container default\/docker main, pod default\/docker$/mu,
    )
  })

  it.skipIf(!existsSync(registryProgram))(
    'pulls what a list names, and pins it; and what is asked for',
    async () => {
      const podd = rig()
      const { child, address } = await startRegistry(podd)
      try {
        for (const name of ['listed:1', 'asked:1']) await push(podd, address, name)
        const image = (name: string) => async (): Promise<ImageEntry | undefined> => {
          const images = await podd.get<readonly ImageEntry[]>('/podd/v1/images')
          return images.find(({ tags }) => tags.includes(`${address}/${name}`))
        }
        place(podd, 'list.txt', `# from the registry\n${address}/listed:1\n127.0.0.1:1/none:1\n`)
        await podd.until('it pulled', image('listed:1'))
        await podd.until('it pinned', async () => (await image('listed:1')())?.pinned)
        const problem = await podd.until('the other one to fail', async () => {
          const { problems } = await podd.status()
          return problems.find(({ place: { path } }) => path === archivePath(podd, 'list.txt'))
        })
        expect(problem.message).toMatch(/^cannot pull 127\.0\.0\.1:1\/none:1: /u)
        rmSync(archivePath(podd, 'list.txt'))
        const pulled = await podd.cli('images', 'pull', `${address}/asked:1`)
        expect(pulled).toMatchObject({ code: 0 })
        expect(pulled.stdout).toMatch(/^pulled .*asked:1: sha256:[0-9a-f]{64}, [\d.]+MB$/mu)
        expect(await image('asked:1')()).toBeDefined()
        expect(await podd.cli('images', 'pull', `${address}/none:1`)).toMatchObject({ code: 1, stdout: '' })
      } finally {
        child.kill('SIGKILL')
      }
    },
  )

  it('imports again what containerd has lost', async () => {
    const podd = rig()
    const down = await podd.cli('down', '--grace-period', '0', ...podd.flags())
    expect(down.code).toBe(0)
    await podd.stopDaemon()
    rmSync(join(podd.rootDir, 'containerd'), { recursive: true, force: true })
    await podd.startDaemon()
    const pod = await podd.untilReady('zstd')
    expect(containerOf(pod, 'main').restartCount).toBe(0)
    await podd.until('the second import', () => countImports(podd, 'zstd.tar.zst') === 2)
    expect(await podd.until('zstd:1', () => findImage(podd, 'zstd:1'))).toMatchObject({ pinned: true })
  })
})
