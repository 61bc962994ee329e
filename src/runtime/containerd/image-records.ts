import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Blob, Ingest } from '../../decide/node/pull-progress.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { criHeaders, methodOf, objectsIn, withDeadline } from './records.ts'
import type { ContainerdCalls, ServiceDefinitions } from './records.ts'

/** A connection to containerd's socket that serves these calls alone. */
export interface OwnChannel extends Pick<ContainerdCalls, 'unary'> {
  close(): void
}

export interface ImageRecordsOptions {
  readonly channel: OwnChannel
  /** The definitions of the files of proto/ with these names. */
  readonly definitions: {
    readonly images: ServiceDefinitions
    readonly leases: ServiceDefinitions
  }
  readonly clock: Clock
}

/** A deletion waits for containerd's garbage collection. */
const callMs = 30_000
/** CRI reports an image with it as pinned, from containerd 1.6.22 on. */
const pinLabel = 'io.cri-containerd.pinned'
/** The leases of CRI's sandboxes, which are named by their ids. */
const sandboxLease = /^[0-9a-f]{64}$/u

/**
 * containerd's records of images in CRI's namespace, one for each name of an image, by its own API. The errors are the
 * channel's, and RUNTIME_TIMEOUT.
 */
export class ImageRecords {
  readonly #channel: OwnChannel
  readonly #clock: Clock
  readonly #images: Readonly<Record<string, WireMethod>>
  readonly #leases: Readonly<Record<string, WireMethod>>

  constructor({ channel, definitions, clock }: ImageRecordsOptions) {
    this.#channel = channel
    this.#clock = clock
    this.#images = definitions.images.service('containerd.services.images.v1.Images')
    this.#leases = definitions.leases.service('containerd.services.leases.v1.Leases')
  }

  async has(name: string): Promise<boolean> {
    return (await this.#sendUnlessGone(this.#images, 'Get', { name })) !== undefined
  }

  /** The pinned names, on any version of containerd. */
  async pinned(): Promise<readonly string[]> {
    const filters = [`labels.${JSON.stringify(pinLabel)}==pinned`]
    const reply = await this.#send(this.#images, 'List', { filters })
    return objectsIn(reply, 'images').flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
  }

  /** Pins a name, or unpins it. Throws RUNTIME_NOT_FOUND too. */
  async pin(name: string, pinned = true): Promise<void> {
    // containerd drops a label whose value is empty.
    const labels = { [pinLabel]: pinned ? 'pinned' : '' }
    const updateMask = { paths: [`labels.${pinLabel}`] }
    await this.#send(this.#images, 'Update', { image: { name, labels, target: {} }, updateMask })
  }

  /** Removes a name, and what only it kept. Does nothing where it doesn't exist. */
  async discard(name: string): Promise<void> {
    await this.#sendUnlessGone(this.#images, 'Delete', { name, sync: true })
  }

  /**
   * Removes the leases of abandoned pulls and imports, and with them the layers of no image. Each lease would keep its
   * layers for a day. containerd before 2 has no other leases but those of sandboxes.
   */
  async dropUnfinished(): Promise<void> {
    const reply = await this.#send(this.#leases, 'List', {})
    for (const { id } of objectsIn(reply, 'leases')) {
      if (typeof id !== 'string' || sandboxLease.test(id)) continue
      await this.#sendUnlessGone(this.#leases, 'Delete', { id, sync: true })
    }
  }

  /** Ends the connection. */
  close(): void {
    this.#channel.close()
  }

  /** Undefined where what it is about doesn't exist. */
  async #sendUnlessGone(
    ...call: readonly [service: Readonly<Record<string, WireMethod>>, name: string, request: object]
  ): Promise<object | undefined> {
    try {
      return await this.#send(...call)
    } catch (error) {
      if (errorCode(error) === 'RUNTIME_NOT_FOUND') return undefined
      throw error
    }
  }

  #send(service: Readonly<Record<string, WireMethod>>, name: string, request: object): Promise<object> {
    const method = methodOf(service, name)
    return withDeadline({ clock: this.#clock, name: method.path, callMs }, (signal) =>
      this.#channel.unary(method, request, signal, criHeaders),
    )
  }
}

export interface ContentStoreOptions {
  readonly channel: ContainerdCalls
  /** proto/containerd-content.proto. */
  readonly definitions: ServiceDefinitions
  readonly clock: Clock
}

const contentCallMs = 10_000
/**
 * The label of each pulled blob: the key ends with the registry's host, the value lists the repositories, separated by
 * commas.
 */
const sourceLabel = 'containerd.io/distribution.source.'
const digestPattern = /sha256:[0-9a-f]{64}$/u
const partPattern = /^(?:layer|config)-/u

/** containerd's content store, while images are pulled into it. The errors are the channel's. */
export class ContentStore {
  readonly #channel: ContainerdCalls
  readonly #clock: Clock
  readonly #list: WireMethod
  readonly #read: WireMethod
  readonly #listStatuses: WireMethod

  constructor({ channel, definitions, clock }: ContentStoreOptions) {
    this.#channel = channel
    this.#clock = clock
    const service = definitions.service('containerd.services.content.v1.Content')
    this.#list = methodOf(service, 'List')
    this.#read = methodOf(service, 'Read')
    this.#listStatuses = methodOf(service, 'ListStatuses')
  }

  /** The blobs that are being written. */
  async listIngests(): Promise<readonly Ingest[]> {
    const reply = await this.#bounded('ListStatuses', (signal) =>
      this.#channel.unary(this.#listStatuses, {}, signal, criHeaders),
    )
    return objectsIn(reply, 'statuses').flatMap(({ ref, offset }) => {
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
      for (const { digest, size, createdAt } of objectsIn(message, 'info')) {
        const seconds: unknown = isJsonObject(createdAt) ? createdAt['seconds'] : undefined
        const nanos: unknown = isJsonObject(createdAt) ? createdAt['nanos'] : undefined
        if (typeof digest !== 'string' || typeof size !== 'number' || typeof seconds !== 'number') continue
        const millis = typeof nanos === 'number' ? nanos / 1e6 : 0
        blobs.push({ digest, sizeBytes: size, createdAtMs: seconds * 1000 + millis })
      }
    }
    const inList = `(^|,)${repository.replaceAll('.', '[.]')}(,|$)`
    // Without its port (core/remotes/docker/handler.go, AppendDistributionSourceLabel).
    const host = registry.replace(/:\d+$/u, '').replace(/^\[(.*)\]$/u, '$1')
    const filters = [`labels.${JSON.stringify(sourceLabel + host)}~=${JSON.stringify(inList)}`]
    await this.#bounded('List', (signal) =>
      this.#channel.stream(this.#list, { filters }, take, signal, criHeaders),
    )
    return blobs
  }

  /** The bytes of a blob, which is held in memory as a whole. */
  async readBlob(digest: string): Promise<Buffer> {
    const chunks: Buffer[] = []
    const take = (message: object): void => {
      const data: unknown = isJsonObject(message) ? message['data'] : undefined
      if (Buffer.isBuffer(data)) chunks.push(data)
    }
    await this.#bounded('Read', (signal) =>
      this.#channel.stream(this.#read, { digest }, take, signal, criHeaders),
    )
    return Buffer.concat(chunks)
  }

  #bounded<T>(name: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline({ clock: this.#clock, name, callMs: contentCallMs }, call)
  }
}
