import { expect, it } from 'vitest'
import { encodeRequestHeaders } from '../../../src/streams/grpc-call.ts'
import { HeaderDecoder } from '../../../src/streams/hpack.ts'

it.each([
  ['none', undefined, []],
  [
    'some',
    { 'containerd-namespace': 'k8s.io', 'x-long': 'x'.repeat(300) },
    ['containerd-namespace', 'x-long'],
  ],
])('begins a call with its path, pseudo-headers first, and %s of its own headers', (_, headers, own) => {
  const path = '/runtime.v1.RuntimeService/ListPodSandbox'
  const list = new HeaderDecoder().decode(encodeRequestHeaders({ path, headers }))
  expect(list.map(([name]) => name)).toEqual([
    ':method',
    ':scheme',
    ':path',
    ':authority',
    'content-type',
    'te',
    'user-agent',
    ...own,
  ])
  expect(Object.fromEntries(list)).toEqual({
    ':method': 'POST',
    ':scheme': 'http',
    ':path': path,
    ':authority': 'localhost',
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': 'podd',
    ...headers,
  })
})
