import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { ImageArchives } from '../../../src/control/images/archives.ts'
import type { ArchiveHint } from '../../../src/control/images/archive-files.ts'
import type { ArchiveContent } from '../../../src/decide/node/plan-image-archives.ts'
import type { ArchiveLook } from '../../../src/images/archive-directory.ts'
import type { NodeEvent } from '../../../src/pod/state/pod-event.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A directory, a runtime and a state file, in memory. */
class FakeHost {
  readonly clock = new ManualClock()
  readonly looks = new Map<string, ArchiveLook>()
  readonly contents = new Map<string, ArchiveContent>()
  readonly present = new Set<string>()
  readonly pinned = new Set<string>()
  readonly calls: string[] = []
  readonly events: NodeEvent[] = []
  readonly announced: string[] = []
  readonly imported: string[] = []
  /** By containers and pulls. */
  readonly used = new Set<string>()
  device: string | undefined = '1'
  /** What happens while an archive is imported. */
  onImport: () => void = () => undefined
  /** What the next calls throw, by call. */
  readonly failures = new Map<string, string>()
  isRuntimeUp = true
  availableBytes = 1_000_000
  state: string | undefined
  onHint: (hint: ArchiveHint) => void = () => undefined
  archives = this.#create()
  #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()

  #create(unsupported?: string): ImageArchives {
    const call = (name: string): void => {
      this.calls.push(name)
      const failure = this.failures.get(name)
      if (failure !== undefined) throw new Error(failure)
    }
    return new ImageArchives({
      host: {
        directory: '/images',
        prepare: async () => undefined,
        list: async () => {
          const failure = this.failures.get('list')
          if (failure !== undefined) throw new Error(failure)
          return { device: this.device, looks: [...this.looks.values()] }
        },
        read: async (name) => {
          call(`read ${name}`)
          return this.contents.get(name) ?? { kind: 'bad', message: 'no content' }
        },
        watch: (onHint) => {
          this.onHint = onHint
          return { close: async () => undefined }
        },
        unsupported,
        importArchive: async (name) => {
          this.onImport()
          call(`import ${name}`)
          const content = this.contents.get(name)
          const images = content?.kind === 'archive' ? content.images : []
          for (const image of images) {
            this.present.add(image)
            // An image that replaces another has no labels of it.
            this.pinned.delete(image)
          }
          return images
        },
        discard: async (image) => void this.calls.push(`discard ${image}`),
        isUsed: async (image) => this.used.has(image),
        pinnedImages: async () => new Set(this.pinned),
        pull: async (image) => {
          call(`pull ${image}`)
          this.present.add(image)
        },
        pin: async (image, pinned) => {
          call(`${pinned ? 'pin' : 'unpin'} ${image}`)
          if (pinned) this.pinned.add(image)
          else this.pinned.delete(image)
        },
        presentImages: async () => {
          if (!this.isRuntimeUp) throw new Error('no runtime')
          return new Set(this.present)
        },
        availableBytes: async () => this.availableBytes,
      },
      stateFile: {
        path: '/state.json',
        read: async () => this.state,
        write: async (text) => {
          this.state = text
        },
      },
      events: { recordNode: (event) => void this.events.push(event) },
      clock: this.clock,
      logger: silentLogger,
      onImported: async (names) => void this.imported.push(...names),
      onImages: (names) => void this.announced.push(...names),
    })
  }

  put(name: string, images: readonly string[], look: Partial<ArchiveLook> = {}): void {
    const full = {
      name,
      sizeBytes: 1000,
      modifiedAtMs: 0,
      fingerprint: `${name} ${images.join(' ')}`,
      ...look,
    }
    this.looks.set(name, full)
    this.contents.set(name, { kind: 'archive', images, digest: images.join(' '), isMarked: true })
  }

  remove(name: string): void {
    this.looks.delete(name)
    this.onHint({ kind: 'renamed', name })
  }

  async start(unsupported?: string): Promise<void> {
    this.#stop = new AbortController()
    this.archives = this.#create(unsupported)
    this.#running = this.archives.run(this.#stop.signal)
    await this.clock.advance(0)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  /** Calls since it was last asked. */
  takeCalls(): string[] {
    return this.calls.splice(0)
  }
}

let host: FakeHost
beforeEach(() => {
  host = new FakeHost()
})
afterEach(() => host.stop())

const a = 'docker.io/library/a:1'
const b = 'docker.io/library/b:1'

describe('ImageArchives', () => {
  it('imports what is there at start, tells of it, and nothing again at the next start', async () => {
    host.put('a.tar', [a])
    host.put('b.tar.gz', [b])
    await host.start()
    expect(host.takeCalls()).toEqual([
      'read a.tar',
      'read b.tar.gz',
      'import a.tar',
      `pin ${a}`,
      'import b.tar.gz',
      `pin ${b}`,
    ])
    expect(host.announced).toEqual([a, b])
    expect(host.events.map(({ reason, message }) => `${reason} ${message}`)).toEqual([
      `ImagesImported Imported ${a} from /images/a.tar`,
      `ImagesImported Imported ${b} from /images/b.tar.gz`,
    ])
    expect(host.archives.reports()).toMatchObject([
      { path: '/images/a.tar', type: 'archive', state: 'imported', images: [a] },
      { path: '/images/b.tar.gz', state: 'imported' },
    ])
    await host.stop()
    await host.start()
    expect(host.takeCalls()).toEqual([])
    expect(host.archives.reports()).toMatchObject([{ state: 'imported' }, { state: 'imported' }])
  })

  it('holds images up until the archive that brings them is imported, but no others', async () => {
    expect(host.archives.awaited('a:1')).toBe('waiting for the image archives in /images to be read')
    host.isRuntimeUp = false
    host.put('a.tar', [a])
    await host.start()
    expect(host.archives.awaited('a:1')).toBe(
      'waiting for /images/a.tar to be imported, which has image "a:1"',
    )
    expect(host.archives.awaited('b:1')).toBeUndefined()
    host.isRuntimeUp = true
    await host.clock.advance(1000)
    expect(host.calls).toContain('import a.tar')
    expect(host.archives.awaited('a:1')).toBeUndefined()
  })

  it('imports first what pods wait for', async () => {
    host.isRuntimeUp = false
    host.put('a.tar', [a])
    host.put('b.tar', [b])
    await host.start()
    expect(host.archives.awaited('b:1')).toContain('b.tar')
    host.archives.prefer('b:1')
    host.isRuntimeUp = true
    await host.clock.advance(1000)
    expect(host.calls.slice(-4)).toEqual(['import b.tar', `pin ${b}`, 'import a.tar', `pin ${a}`])
  })

  it('imports in the same order however often it is asked what an image waits for', async () => {
    host.isRuntimeUp = false
    host.put('a.tar', [a])
    host.put('b.tar', [b])
    await host.start()
    for (let times = 0; times < 3; times += 1) expect(host.archives.awaited('b:1')).toContain('b.tar')
    host.isRuntimeUp = true
    await host.clock.advance(1000)
    expect(host.calls.slice(-4)).toEqual(['import a.tar', `pin ${a}`, 'import b.tar', `pin ${b}`])
  })

  it('imports again what the runtime has lost', async () => {
    host.put('a.tar', [a])
    await host.start()
    host.takeCalls()
    host.present.clear()
    host.archives.recheck()
    await host.clock.advance(0)
    expect(host.takeCalls()).toEqual(['import a.tar', `pin ${a}`])
    host.present.clear()
    await host.clock.advance(300_000)
    expect(host.takeCalls()).toEqual(['import a.tar', `pin ${a}`])
  })

  it('reads what is written in place once it is quiet, and what was renamed at once', async () => {
    await host.start()
    host.put('slow.tar', [a], { sizeBytes: 10 })
    host.onHint({ kind: 'renamed', name: 'slow.tar' })
    host.onHint({ kind: 'written', name: 'slow.tar' })
    host.put('moved.tar', [b])
    host.onHint({ kind: 'renamed', name: 'moved.tar' })
    await host.clock.advance(0)
    expect(host.takeCalls()).toEqual(['read moved.tar', 'import moved.tar', `pin ${b}`])
    await host.clock.advance(800)
    host.put('slow.tar', [a], { sizeBytes: 20, fingerprint: '2' })
    host.onHint({ kind: 'written', name: 'slow.tar' })
    await host.clock.advance(800)
    expect(host.takeCalls()).toEqual([])
    await host.clock.advance(200)
    expect(host.takeCalls()).toEqual(['read slow.tar', 'import slow.tar', `pin ${a}`])
  })

  it('calls a file that ends too early an error after a while only, and reads it again when it goes on', async () => {
    await host.start()
    host.put('half.tar', [a])
    host.contents.set('half.tar', { kind: 'incomplete', message: 'it ends in the middle' })
    host.onHint({ kind: 'written', name: 'half.tar' })
    await host.clock.advance(1000)
    expect(host.takeCalls()).toEqual(['read half.tar'])
    expect(host.archives.problems()).toEqual([])
    await host.clock.advance(9000)
    const problem = {
      severity: 'error',
      place: { path: '/images/half.tar' },
      message: 'it ends in the middle',
    }
    expect(host.archives.problems()).toEqual([problem])
    expect(host.events).toEqual([
      { type: 'Warning', reason: 'ImageImportFailed', message: '/images/half.tar: it ends in the middle' },
    ])
    host.put('half.tar', [a], { fingerprint: 'whole' })
    host.onHint({ kind: 'written', name: 'half.tar' })
    await host.clock.advance(1000)
    expect(host.takeCalls()).toEqual(['read half.tar', 'import half.tar', `pin ${a}`])
    expect(host.archives.problems()).toEqual([])
  })

  it('goes on with others where an archive is bad or cannot be imported, and tries the latter again', async () => {
    host.put('a.tar', [a])
    host.put('b.tar', [b])
    host.put('c.tar', ['c'])
    host.contents.set('c.tar', { kind: 'bad', message: 'it is not a tar archive' })
    host.failures.set('import a.tar', 'cannot import')
    host.availableBytes = 10
    await host.start()
    expect(host.takeCalls()).toEqual([
      'read a.tar',
      'read b.tar',
      'read c.tar',
      'import a.tar',
      `discard ${a}`,
      'import b.tar',
      `pin ${b}`,
    ])
    expect(host.archives.problems().map(({ message }) => message)).toEqual([
      'cannot import; the disk that holds the images has 10 bytes available, and the archive has 1000',
      'it is not a tar archive',
    ])
    expect(host.archives.awaited('a:1')).toBeUndefined()
    const failures = () => host.events.filter(({ reason }) => reason === 'ImageImportFailed')
    expect(failures()).toHaveLength(2)
    await host.clock.advance(10_000)
    expect(host.takeCalls()).toEqual(['import a.tar', `discard ${a}`])
    await host.clock.advance(19_000)
    expect(host.takeCalls()).toEqual([])
    host.failures.clear()
    await host.clock.advance(1000)
    expect(host.takeCalls()).toEqual(['import a.tar', `pin ${a}`])
    expect(host.archives.problems()).toHaveLength(1)
    expect(failures()).toHaveLength(2)
  })

  it('unpins the images of a file that is gone, also while podd was stopped, but none that another file holds', async () => {
    host.put('a.tar', [a, b])
    host.put('b.tar', [b])
    await host.start()
    host.remove('a.tar')
    await host.clock.advance(0)
    expect([...host.pinned]).toEqual([b])
    await host.stop()
    host.looks.clear()
    await host.start()
    expect([...host.pinned]).toEqual([])
    expect(host.state).toBe('{"version":1,"archives":{}}')
  })

  it('unpins what a new version of a file lacks', async () => {
    host.put('a.tar', [a])
    await host.start()
    host.put('a.tar', [b], { sizeBytes: 2000 })
    host.onHint({ kind: 'renamed', name: 'a.tar' })
    await host.clock.advance(0)
    expect([...host.pinned]).toEqual([b])
  })

  it('takes a directory that cannot be read for no answer', async () => {
    host.put('a.tar', [a])
    await host.start()
    host.failures.set('list', 'EIO')
    host.onHint({ kind: 'directory' })
    await host.clock.advance(0)
    expect([...host.pinned]).toEqual([a])
    expect(host.archives.problems()).toEqual([
      { severity: 'error', place: { path: '/images' }, message: 'cannot be read: EIO' },
    ])
  })

  it('discards no image that a container or a pull has brought while its archive was imported', async () => {
    host.put('a.tar', [a, b])
    host.failures.set('import a.tar', 'no space')
    host.used.add(a)
    await host.start()
    expect(host.takeCalls()).toEqual(['read a.tar', 'import a.tar', `discard ${b}`])
  })

  it('discards no image that came since the images were last listed', async () => {
    host.put('b.tar', [b])
    await host.start()
    host.present.add(a)
    host.put('a.tar', [a])
    host.failures.set('import a.tar', 'no space')
    host.takeCalls()
    host.onHint({ kind: 'renamed', name: 'a.tar' })
    await host.clock.advance(0)
    expect(host.takeCalls()).toEqual(['read a.tar', 'import a.tar'])
  })

  it.each(['the runtime is gone', 'it cannot be pinned'])(
    'discards nothing where after an import %s, and tries again',
    async (reason) => {
      host.put('a.tar', [a])
      if (reason === 'the runtime is gone') host.onImport = () => (host.isRuntimeUp = false)
      else host.failures.set(`pin ${a}`, reason)
      await host.start()
      expect(host.takeCalls()).toEqual(['read a.tar', 'import a.tar', `pin ${a}`])
      host.onImport = () => undefined
      host.failures.clear()
      host.isRuntimeUp = true
      await host.clock.advance(10_000)
      expect(host.takeCalls()).toEqual(['import a.tar', `pin ${a}`])
      host.remove('a.tar')
      await host.clock.advance(0)
      expect([...host.pinned]).toEqual([])
    },
  )

  it('tells of imports, and not of pulls, that they bring what all pods may use', async () => {
    host.put('a.tar', [a])
    host.put('list.txt', ['c'])
    await host.start()
    expect(host.imported).toEqual([a])
    const d = 'docker.io/library/d:1'
    host.present.add(b).add(d)
    const { signal } = new AbortController()
    await host.archives.announce([b], 'pulled', signal)
    await host.archives.announce([d], 'imported', signal)
    expect(host.imported).toEqual([a, d])
    expect(host.announced).toEqual([a, 'c', b, d])
  })

  it.each(['an archive', 'a list'])(
    'keeps what a user has pinned before %s came, when that is gone',
    async (what) => {
      const name = what === 'a list' ? 'a.txt' : 'a.tar'
      host.present.add(a)
      host.pinned.add(a)
      host.put(name, [a, b])
      await host.start()
      expect([...host.pinned].toSorted()).toEqual([a, b])
      await host.stop()
      await host.start()
      host.remove(name)
      await host.clock.advance(0)
      expect([...host.pinned]).toEqual([a])
    },
  )

  it('keeps what a user has pinned since, and no longer what a user has unpinned', async () => {
    host.present.add(a)
    host.pinned.add(a)
    host.put('a.tar', [a, b])
    await host.start()
    await host.archives.noteUserPins([b], true)
    await host.archives.noteUserPins([a], false)
    await host.stop()
    await host.start()
    host.remove('a.tar')
    await host.clock.advance(0)
    expect([...host.pinned]).toEqual([b])
  })

  it.each([
    ['not there', undefined, 'it is not there, and image archives were imported from it'],
    [
      'an empty one of another file system',
      '2',
      'it is empty, and not on the file system from which image archives were imported: is that mounted?',
    ],
  ])('unpins nothing where the directory is %s, also after a restart', async (_, device, message) => {
    host.put('a.tar', [a])
    await host.start()
    host.looks.clear()
    host.device = device
    host.onHint({ kind: 'directory' })
    await host.clock.advance(0)
    expect([...host.pinned]).toEqual([a])
    await host.stop()
    await host.start()
    expect([...host.pinned]).toEqual([a])
    expect(host.archives.problems()).toEqual([{ severity: 'error', place: { path: '/images' }, message }])
    host.device = '2'
    host.put('b.tar', [b])
    host.onHint({ kind: 'renamed', name: 'b.tar' })
    await host.clock.advance(0)
    expect([...host.pinned]).toEqual([b])
    expect(host.archives.problems()).toEqual([])
  })

  it('pulls what lists name and is not there, pins all of it, and tries again what failed', async () => {
    host.present.add(a)
    host.put('list.txt', [a, b, 'c'])
    host.failures.set(`pull ${b}`, 'no route to host')
    await host.start()
    expect(host.takeCalls()).toEqual(['read list.txt', `pin ${a}`, `pull ${b}`, 'pull c', 'pin c'])
    expect(host.announced).toEqual(['c'])
    expect(host.archives.problems()).toMatchObject([{ message: `cannot pull ${b}: no route to host` }])
    host.failures.clear()
    await host.clock.advance(10_000)
    expect(host.takeCalls()).toEqual([`pin ${a}`, `pull ${b}`, `pin ${b}`, 'pin c'])
    expect(host.archives.reports()).toMatchObject([{ type: 'list', state: 'imported', images: [a, b, 'c'] }])
  })

  it('says of archives that somebody else has to import them where the runtime is not its own', async () => {
    host.put('a.tar', [a])
    host.put('list.txt', [b])
    await host.start('into the embedded containerd only')
    expect(host.takeCalls()).toEqual(['read list.txt', `pull ${b}`])
    expect(host.archives.problems()).toMatchObject([{ message: 'into the embedded containerd only' }])
    expect(host.archives.awaited('a:1')).toBeUndefined()
  })

  it.each(['{', '{"version":9}', '{"version":1,"archives":{"a.tar":{"images":1}}}', '[]'])(
    'starts afresh where its state is %s',
    async (state) => {
      host.state = state
      host.put('a.tar', [a])
      await host.start()
      // It is put aside on the real file system.
      await expect.poll(() => host.calls).toEqual(['read a.tar', 'import a.tar', `pin ${a}`])
    },
  )
})
