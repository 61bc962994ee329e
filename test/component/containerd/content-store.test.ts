import { expect, it } from 'vitest'
import { errorCode } from '../../../src/base/errors.ts'
import { ContentStore } from '../../../src/runtime/containerd/image-records.ts'
import type { CallChannel } from '../../../src/runtime/containerd/records.ts'
import { loadProto } from '../../../src/grpc/load-proto.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const digest = `sha256:${'a'.repeat(64)}`

/** A store over a channel that answers with these messages; the requests are kept. */
function storeOf(answers: { readonly unary?: object; readonly stream?: readonly object[] }) {
  const clock = new ManualClock()
  const requests: object[] = []
  const channel: CallChannel = {
    unary: (_method, request, signal) => {
      requests.push(request)
      if (answers.unary !== undefined) return Promise.resolve(answers.unary)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
    stream: (_method, request, onMessage, _signal, headers) => {
      expect(headers).toEqual({ 'containerd-namespace': 'k8s.io' })
      requests.push(request)
      for (const message of answers.stream ?? []) onMessage(message)
      return Promise.resolve()
    },
  }
  const definitions = loadProto('containerd-content.proto')
  return { clock, requests, store: new ContentStore({ channel, definitions, clock }) }
}

it('lists what is being written, by digest', async () => {
  const statuses = [
    { ref: `layer-${digest}`, offset: 7, total: 9 },
    { ref: `config-${digest}`, offset: 1, total: 1 },
    { ref: `manifest-${digest}`, offset: 0, total: 3 },
    { ref: 'upload-of-something', offset: 1, total: 2 },
  ]
  expect(await storeOf({ unary: { statuses } }).store.listIngests()).toEqual([
    { digest, offsetBytes: 7, isPart: true },
    { digest, offsetBytes: 1, isPart: true },
    { digest, offsetBytes: 0, isPart: false },
  ])
})

it.each([
  ['docker.io', 'library/busybox', 'docker.io', '(^|,)library/busybox(,|$)'],
  ['127.0.0.1:5000', 'a.b/c', '127.0.0.1', '(^|,)a[.]b/c(,|$)'],
  ['[::1]:5000', 'app', '::1', '(^|,)app(,|$)'],
])('lists the blobs of a repository of %s', async (registry, repository, host, list) => {
  const info = [{ digest, size: 5, createdAt: { seconds: 2, nanos: 500_000_000 } }]
  const { requests, store } = storeOf({ stream: [{ info }, { info: [] }] })
  expect(await store.listBlobs(registry, repository)).toEqual([{ digest, sizeBytes: 5, createdAtMs: 2500 }])
  expect(requests).toEqual([{ filters: [`labels."containerd.io/distribution.source.${host}"~="${list}"`] }])
})

it('reads a blob that comes in pieces', async () => {
  const { store } = storeOf({ stream: [{ data: Buffer.from('ab') }, { data: Buffer.from('c') }] })
  expect((await store.readBlob(digest)).toString()).toBe('abc')
})

it('gives up a call that gets no answer', async () => {
  const { clock, store } = storeOf({})
  const outcome = store.listIngests().catch((error: unknown) => errorCode(error))
  await clock.advance(10_000)
  expect(await outcome).toBe('RUNTIME_TIMEOUT')
})
