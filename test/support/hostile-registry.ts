import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { formatTar } from '../../src/images/tar.ts'
import { shellImage } from './oci-image.ts'

/** One request for a manifest or a blob; HEAD requests for manifests are asked with `isHead`. */
export interface RegistryCall {
  readonly kind: 'manifest' | 'blob'
  readonly repository: string
  /** A tag or a digest. */
  readonly reference: string
  readonly isHead: boolean
}

/** What becomes of a call. */
export type Fault =
  | { readonly kind: 'status'; readonly code: number; readonly retryAfterSeconds?: number }
  /** Nothing is ever sent. */
  | { readonly kind: 'hang' }
  /** The connection breaks after so many bytes. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Nothing more is sent after so many bytes. */
  | { readonly kind: 'stop'; readonly afterBytes: number }
  | { readonly kind: 'slow'; readonly bytesPerSecond: number }
  /** The answer waits for this. */
  | { readonly kind: 'held'; readonly until: Promise<unknown> }
  /** As many bytes as there should be, but others. */
  | { readonly kind: 'corrupt' }

export interface AddedImage {
  /** `127.0.0.1:5000/app:1` */
  readonly name: string
  /** Of the manifest that the tag leads to. */
  readonly digest: string
  /** Of the layers, the shell's first. */
  readonly layers: readonly string[]
  readonly config: string
}

export interface ImageContent {
  /** Sizes of layers of random bytes, on top of the shell. */
  readonly layerBytes?: readonly number[]
  /** The tag leads to an index that has this platform's image alone. */
  readonly onlyArchitecture?: string
  /** Instead of the image's config. */
  readonly configText?: string
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json'
const indexType = 'application/vnd.oci.image.index.v1+json'
const chunkBytes = 16 * 1024

/** A registry on loopback that is as bad as a test wants it to be, repository by repository. */
export class HostileRegistry {
  readonly calls: RegistryCall[] = []
  readonly #server: Server
  readonly #blobs = new Map<string, Buffer>()
  readonly #manifests = new Map<string, { readonly type: string; readonly data: Buffer }>()
  readonly #faults = new Map<string, (call: RegistryCall) => Fault | undefined>()
  readonly #closing = new AbortController()
  #shellLayer: Buffer | undefined

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response))
  }

  static async start(): Promise<HostileRegistry> {
    const registry = new HostileRegistry()
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve))
    return registry
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Adds an image with a shell. */
  add(repository: string, content: ImageContent = {}): AddedImage {
    this.#shellLayer ??= formatTar(shellImage().entries)
    const tars = [
      this.#shellLayer,
      ...(content.layerBytes ?? []).map((size, index) =>
        formatTar([{ kind: 'file', path: `data-${index}`, mode: 0o644, data: randomBytes(size) }]),
      ),
    ]
    const architecture = content.onlyArchitecture ?? (process.arch === 'x64' ? 'amd64' : process.arch)
    const config = this.#addBlob(
      Buffer.from(
        content.configText ??
          JSON.stringify({
            architecture,
            os: 'linux',
            config: { Cmd: ['sleep', '1000000'], Env: ['PATH=/bin'] },
            rootfs: { type: 'layers', diff_ids: tars.map((tar) => sha256(tar)) },
          }),
      ),
    )
    // The random ones stay as large as they are.
    const layers = tars.map((tar) => this.#addBlob(gzipSync(tar, { level: 1 })))
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: manifestType,
        config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
        layers: layers.map((layer) => ({
          mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
          ...layer,
        })),
      }),
    )
    let digest = this.#addManifest(repository, manifestType, manifest)
    if (content.onlyArchitecture !== undefined) {
      const platform = { os: 'linux', architecture }
      const entry = { mediaType: manifestType, digest, size: manifest.length, platform }
      const index = { schemaVersion: 2, mediaType: indexType, manifests: [entry] }
      digest = this.#addManifest(repository, indexType, Buffer.from(JSON.stringify(index)))
    }
    const tagged = this.#manifests.get(`${repository}@${digest}`)
    if (tagged !== undefined) this.#manifests.set(`${repository}@1`, tagged)
    return {
      name: `${this.address}/${repository}:1`,
      digest,
      layers: layers.map((layer) => layer.digest),
      config: config.digest,
    }
  }

  /** Has this decide what becomes of each call for a repository; undefined: all is well. */
  misbehave(repository: string, fault: ((call: RegistryCall) => Fault | undefined) | undefined): void {
    if (fault === undefined) this.#faults.delete(repository)
    else this.#faults.set(repository, fault)
  }

  callsFor(repository: string): readonly RegistryCall[] {
    return this.calls.filter((call) => call.repository === repository)
  }

  #addBlob(data: Buffer): { readonly digest: string; readonly size: number } {
    const digest = sha256(data)
    this.#blobs.set(digest, data)
    return { digest, size: data.length }
  }

  #addManifest(repository: string, type: string, data: Buffer): string {
    const digest = sha256(data)
    this.#manifests.set(`${repository}@${digest}`, { type, data })
    return digest
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    const path = (request.url ?? '').replace(/\?.*$/u, '')
    const [, repository = '', kind, reference = ''] =
      /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/u.exec(path) ?? []
    if (kind === undefined) return void response.end('{}')
    const isHead = request.method === 'HEAD'
    const call: RegistryCall = {
      kind: kind === 'manifests' ? 'manifest' : 'blob',
      repository,
      reference,
      isHead,
    }
    this.calls.push(call)
    const found =
      call.kind === 'manifest'
        ? this.#manifests.get(`${repository}@${reference}`)
        : { type: 'application/octet-stream', data: this.#blobs.get(reference) }
    const fault = this.#faults.get(repository)?.(call)
    if (fault?.kind === 'hang') return
    if (fault?.kind === 'held') await fault.until
    if (fault?.kind === 'status') {
      const { code, retryAfterSeconds } = fault
      if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds)
      response.writeHead(code)
      return void response.end()
    }
    if (found?.data === undefined) return void response.writeHead(404).end()
    await this.#send(request, response, { type: found.type, data: found.data, fault })
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    {
      type,
      data,
      fault,
    }: { readonly type: string; readonly data: Buffer; readonly fault: Fault | undefined },
  ): Promise<void> {
    const from = Number(/^bytes=(\d+)-/u.exec(request.headers.range ?? '')?.[1] ?? 0)
    const body = fault?.kind === 'corrupt' ? Buffer.alloc(data.length - from, 7) : data.subarray(from)
    response.writeHead(from > 0 ? 206 : 200, {
      'content-type': type,
      'content-length': body.length,
      'docker-content-digest': sha256(data),
      ...(from > 0 && { 'content-range': `bytes ${from}-${data.length - 1}/${data.length}` }),
    })
    if (request.method === 'HEAD') return void response.end()
    if (fault?.kind === 'slow') return this.#sendSlowly(response, body, fault.bytesPerSecond)
    if (fault?.kind !== 'cut' && fault?.kind !== 'stop') return void response.end(body)
    const broken = (): void => {
      if (fault.kind === 'cut') response.destroy()
    }
    if (from < fault.afterBytes) response.write(body.subarray(0, fault.afterBytes - from), broken)
    else response.flushHeaders()
    if (from >= fault.afterBytes) broken()
  }

  async #sendSlowly(response: ServerResponse, body: Buffer, bytesPerSecond: number): Promise<void> {
    const pauseMs = (chunkBytes / bytesPerSecond) * 1000
    for (let at = 0; at < body.length && !response.destroyed; at += chunkBytes) {
      response.write(body.subarray(at, at + chunkBytes))
      await sleep(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => {})
    }
    response.end()
  }
}

function sha256(data: Uint8Array): string {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`
}
