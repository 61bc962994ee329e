import { expect, it } from 'vitest'
import { errorCode, PoddError } from '../../../src/base/errors.ts'
import { loadProto } from '../../../src/grpc/load-proto.ts'
import { ContentStore, ImageRecords } from '../../../src/runtime/containerd/image-records.ts'
import type { OwnChannel } from '../../../src/runtime/containerd/image-records.ts'
import type { ContainerdChannel } from '../../../src/runtime/containerd/records.ts'
import { ManualClock } from '../../support/manual-clock.ts'

type Answer = object | PoddError | 'none'

const gone = new PoddError('RUNTIME_NOT_FOUND', 'it is not found')
const sandbox = 'a'.repeat(64)
const images = '/containerd.services.images.v1.Images'
const leases = '/containerd.services.leases.v1.Leases'

const definitions = {
  images: loadProto('containerd-images.proto'),
  leases: loadProto('containerd-leases.proto'),
}
const methods = [
  definitions.images.service('containerd.services.images.v1.Images'),
  definitions.leases.service('containerd.services.leases.v1.Leases'),
].flatMap((service) => Object.values(service))

/** Records whose calls are answered so, by their paths; what was sent is kept as the wire carries it. */
function recordsWith(answers: Readonly<Record<string, Answer>>) {
  const clock = new ManualClock()
  const sent: unknown[] = []
  const channel: OwnChannel = {
    ready: async () => {},
    stream: () => Promise.reject(new Error('no call of these streams')),
    async unary({ path, requestSerialize }, request, signal, headers) {
      expect(headers).toEqual({ 'containerd-namespace': 'k8s.io' })
      const method = methods.find((each) => each.path === path)!
      sent.push([path, method.requestDeserialize(requestSerialize(request))])
      const answer = answers[path] ?? {}
      if (answer instanceof PoddError) throw answer
      if (answer !== 'none') return method.responseDeserialize(method.responseSerialize(answer))
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
    close: () => void sent.push('closed'),
  }
  return { clock, sent, records: new ImageRecords(channel, clock) }
}

it('knows whether a name exists', async () => {
  expect(await recordsWith({}).records.has('a:1')).toBe(true)
  expect(await recordsWith({ [`${images}/Get`]: gone }).records.has('a:1')).toBe(false)
})

it('lists the pinned names', async () => {
  const { records, sent } = recordsWith({
    [`${images}/List`]: { images: [{ name: 'a:1' }, { name: 'b:1' }] },
  })
  expect(await records.pinned()).toEqual(['a:1', 'b:1'])
  expect(sent).toEqual([[`${images}/List`, { filters: ['labels."io.cri-containerd.pinned"==pinned'] }]])
})

it.each([
  ['pins', true, 'pinned'],
  ['unpins', false, ''],
])('%s a name by its label alone', async (_, pinned, value) => {
  const { records, sent } = recordsWith({})
  await records.pin('a:1', pinned)
  const label = 'io.cri-containerd.pinned'
  const image = { name: 'a:1', labels: { [label]: value }, target: {} }
  expect(sent).toEqual([[`${images}/Update`, { image, updateMask: { paths: [`labels.${label}`] } }]])
})

it('refuses to pin a name that does not exist', async () => {
  const { records } = recordsWith({ [`${images}/Update`]: gone })
  await expect(records.pin('a:1')).rejects.toBe(gone)
})

it('discards a name, one that does not exist too', async () => {
  const { records, sent } = recordsWith({ [`${images}/Delete`]: gone })
  await records.discard('a:1')
  expect(sent).toEqual([[`${images}/Delete`, { name: 'a:1', sync: true }]])
})

it("drops the leases of unfinished pulls and imports, and none of sandboxes'", async () => {
  const ids = ['of-a-pull', sandbox, 'expired']
  const { records, sent } = recordsWith({
    [`${leases}/List`]: { leases: ids.map((id) => ({ id })) },
    [`${leases}/Delete`]: gone,
  })
  await records.dropUnfinished()
  expect(sent).toEqual([
    [`${leases}/List`, {}],
    [`${leases}/Delete`, { id: 'of-a-pull', sync: true }],
    [`${leases}/Delete`, { id: 'expired', sync: true }],
  ])
})

it('passes on every other failure', async () => {
  const failed = new PoddError('RUNTIME_FAILED', 'no space left')
  const { records } = recordsWith({ [`${images}/Delete`]: failed, [`${images}/Get`]: failed })
  await expect(records.discard('a:1')).rejects.toBe(failed)
  await expect(records.has('a:1')).rejects.toBe(failed)
})

it('gives up on a containerd that does not answer', async () => {
  const { clock, records } = recordsWith({ [`${images}/List`]: 'none' })
  const outcome = records.pinned().catch((error: unknown) => errorCode(error))
  await clock.advance(30_000)
  expect(await outcome).toBe('RUNTIME_TIMEOUT')
})

it('ends its connection', () => {
  const { records, sent } = recordsWith({})
  records.close()
  expect(sent).toEqual(['closed'])
})

const digest = `sha256:${'a'.repeat(64)}`

/** A store over a channel that answers with these messages; the requests are kept. */
function storeOf(answers: { readonly unary?: object; readonly stream?: readonly object[] }) {
  const clock = new ManualClock()
  const requests: object[] = []
  const channel: ContainerdChannel = {
    ready: async () => {},
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
  return { clock, requests, store: new ContentStore(channel, clock) }
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
