import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { criHeaders, methodOf, objectsIn, withDeadline } from './containerd-calls.ts'
import type { CallChannel, ServiceDefinitions } from './containerd-calls.ts'

/** A connection to containerd's socket that serves these calls alone. */
export interface OwnChannel extends Pick<CallChannel, 'unary'> {
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
