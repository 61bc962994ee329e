import { expect, it } from 'vitest'
import { ContainerdRecords } from '../../../src/runtime/containerd/records.ts'
import type { ContainerdChannel } from '../../../src/runtime/containerd/records.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const asked: unknown[] = []
let hangs = false

/** A message as containerd sends it: length-delimited fields, each of less than 128 bytes. */
function message(...fields: readonly (readonly [number: number, value: string | Buffer])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([number, value]) => {
      const bytes = Buffer.from(value)
      return [Buffer.from([(number << 3) | 2, bytes.length]), bytes]
    }),
  )
}

const running = Buffer.concat([message([1, 'a'], [2, 'a']), Buffer.from([0x18, 7, 0x20, 2])])
const replies: Readonly<Record<string, readonly Buffer[]>> = {
  '/containerd.services.containers.v1.Containers/ListStream': [
    message([1, message([1, 'a'], [2, message([1, 'io.cri-containerd.kind'], [2, 'sandbox'])])]),
    message([1, message([1, 'b'], [2, message([1, 'io.cri-containerd.kind'], [2, 'container'])])]),
    message([1, message([1, 'theirs'])]),
  ],
  '/containerd.services.tasks.v1.Tasks/List': [message([1, running])],
  '/containerd.services.snapshots.v1.Snapshots/List': [
    message([1, message([1, 'a'], [2, 'sha256:1'])], [1, message([1, 'b'])]),
    message([1, message([1, 'c'])]),
  ],
  '/containerd.services.leases.v1.Leases/List': [message([1, message([1, 'a'])], [1, message([1, 'b'])])],
}

const channel: ContainerdChannel = {
  ready: async () => {},
  async unary(method, request, signal, headers) {
    asked.push(headers, request)
    if (hangs)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    return method.responseDeserialize(replies[method.path]?.[0] ?? Buffer.alloc(0))
  },
  async stream(method, request, onMessage, _signal, headers) {
    asked.push(headers, request)
    for (const reply of replies[method.path] ?? []) onMessage(method.responseDeserialize(reply))
  },
}

const clock = new ManualClock()
const records = new ContainerdRecords(channel, clock)

it("reads what containerd records in CRI's namespace", async () => {
  expect(await records.containers()).toEqual([
    { id: 'a', kind: 'sandbox' },
    { id: 'b', kind: 'container' },
    { id: 'theirs', kind: undefined },
  ])
  expect(await records.tasks()).toEqual([{ id: 'a', status: 'RUNNING' }])
  expect(await records.snapshots()).toEqual(['a', 'b', 'c'])
  expect(await records.snapshots('native')).toHaveLength(3)
  expect(await records.leases()).toEqual(['a', 'b'])
  const inNamespace = { 'containerd-namespace': 'k8s.io' }
  expect(asked).toEqual(
    [{}, {}, { snapshotter: 'overlayfs' }, { snapshotter: 'native' }, {}].flatMap((request) => [
      inNamespace,
      request,
    ]),
  )
})

it('gives up on a containerd that does not answer', async () => {
  hangs = true
  const failed = records.tasks().catch((error: unknown) => error)
  await clock.advance(30_000)
  hangs = false
  expect(await failed).toMatchObject({ code: 'RUNTIME_TIMEOUT' })
})
