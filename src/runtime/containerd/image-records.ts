import type { Clock } from '../../base/clock.ts'
import { jsonAt, objectOrEmpty, objectsAt } from '../../base/json.ts'
import type { Blob, Ingest } from '../../decide/node/pull-progress.ts'
import { ContainerdService } from './records.ts'
import type { ContainerdChannel } from './records.ts'

/** A connection to containerd's socket that serves these calls alone. */
export interface OwnChannel extends ContainerdChannel {
  close(): void
}

/** A deletion waits for containerd's garbage collection. */
const callMs = 30_000
/** CRI reports an image with it as pinned, from containerd 1.6.22 on. */
const pinLabel = 'io.cri-containerd.pinned'
/** The leases of CRI's sandboxes, which are named by their ids. */
const sandboxLease = /^[0-9a-f]{64}$/u

/**
 * containerd's records of images in CRI's namespace, one for each name of an image, by its own API. Throws as
 * ContainerdService.
 */
export class ImageRecords {
  readonly #channel: OwnChannel
  readonly #images: ContainerdService
  readonly #leases: ContainerdService

  constructor(channel: OwnChannel, clock: Clock) {
    this.#channel = channel
    this.#images = new ContainerdService('images', channel, clock, callMs)
    this.#leases = new ContainerdService('leases', channel, clock, callMs)
  }

  async has(name: string): Promise<boolean> {
    return (await this.#images.sendIfThere('Get', { name })) !== undefined
  }

  /** The pinned names, on any version of containerd. */
  async pinned(): Promise<readonly string[]> {
    const filters = [`labels.${JSON.stringify(pinLabel)}==pinned`]
    const reply = await this.#images.send('List', { filters })
    return objectsAt(reply, 'images').flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
  }

  /** Pins a name, or unpins it. Throws RUNTIME_NOT_FOUND too. */
  async pin(name: string, pinned = true): Promise<void> {
    // containerd drops a label whose value is empty.
    const labels = { [pinLabel]: pinned ? 'pinned' : '' }
    const updateMask = { paths: [`labels.${pinLabel}`] }
    await this.#images.send('Update', { image: { name, labels, target: {} }, updateMask })
  }

  /** Removes a name, and what only it kept. Does nothing where it doesn't exist. */
  async discard(name: string): Promise<void> {
    await this.#images.sendIfThere('Delete', { name, sync: true })
  }

  /**
   * Removes the leases of abandoned pulls and imports, and with them the layers of no image. Each lease would keep its
   * layers for a day. containerd before 2 has no other leases but those of sandboxes.
   */
  async dropUnfinished(): Promise<void> {
    const reply = await this.#leases.send('List', {})
    for (const { id } of objectsAt(reply, 'leases')) {
      if (typeof id !== 'string' || sandboxLease.test(id)) continue
      await this.#leases.sendIfThere('Delete', { id, sync: true })
    }
  }

  close(): void {
    this.#channel.close()
  }
}

const contentCallMs = 10_000
/**
 * The label of each pulled blob: the key ends with the registry's host, the value lists the repositories, separated by
 * commas.
 */
const sourceLabel = 'containerd.io/distribution.source.'
const digestPattern = /sha256:[0-9a-f]{64}$/u
const partPattern = /^(?:layer|config)-/u

/** containerd's content store, while images are pulled into it. Throws as ContainerdService. */
export class ContentStore {
  readonly #content: ContainerdService

  constructor(channel: ContainerdChannel, clock: Clock) {
    this.#content = new ContainerdService('content', channel, clock, contentCallMs)
  }

  /** The blobs that are being written. */
  async listIngests(): Promise<readonly Ingest[]> {
    const reply = await this.#content.send('ListStatuses', {})
    return objectsAt(reply, 'statuses').flatMap(({ ref, offset }) => {
      if (typeof ref !== 'string' || typeof offset !== 'number') return []
      // `layer-sha256:…` (core/remotes/handlers.go, MakeRefKey)
      const digest = digestPattern.exec(ref)?.[0]
      return digest === undefined ? [] : [{ digest, offsetBytes: offset, isPart: partPattern.test(ref) }]
    })
  }

  /** The blobs that were pulled for a repository of a registry, both as an image's name has them. */
  async listBlobs(registry: string, repository: string): Promise<readonly Blob[]> {
    const blobs: Blob[] = []
    const take = (message: object): void => {
      for (const { digest, size, createdAt } of objectsAt(message, 'info')) {
        const { seconds, nanos } = objectOrEmpty(createdAt)
        if (typeof digest !== 'string' || typeof size !== 'number' || typeof seconds !== 'number') continue
        const millis = typeof nanos === 'number' ? nanos / 1e6 : 0
        blobs.push({ digest, sizeBytes: size, createdAtMs: seconds * 1000 + millis })
      }
    }
    const inList = `(^|,)${repository.replaceAll('.', '[.]')}(,|$)`
    // Without its port (core/remotes/docker/handler.go, AppendDistributionSourceLabel).
    const host = registry.replace(/:\d+$/u, '').replace(/^\[(.*)\]$/u, '$1')
    const filters = [`labels.${JSON.stringify(sourceLabel + host)}~=${JSON.stringify(inList)}`]
    await this.#content.stream('List', { filters }, take)
    return blobs
  }

  /** The bytes of a blob, which is held in memory as a whole. */
  async readBlob(digest: string): Promise<Buffer> {
    const chunks: Buffer[] = []
    const take = (message: object): void => {
      const data: unknown = jsonAt(message, 'data')
      if (Buffer.isBuffer(data)) chunks.push(data)
    }
    await this.#content.stream('Read', { digest }, take)
    return Buffer.concat(chunks)
  }
}
