import { describe, expect, it } from 'vitest'
import { readLogQuery } from '../../../src/server/routes/pod-logs.ts'

const nowMs = Date.UTC(2026, 0, 31, 9, 30)
const read = (text: string) => readLogQuery(new URLSearchParams(text), 'web', nowMs)

describe('readLogQuery', () => {
  it.each([
    ['', undefined],
    ['sinceSeconds=5', nowMs - 5000],
    ['sinceTime=2026-01-31T09:30:00Z', nowMs],
    ['sinceTime=2026-01-31T09:30:00.123456789Z', nowMs + 123],
    ['sinceTime=2026-01-31T10:30:00%2B01:00', nowMs],
    ['sinceTime=2099-01-01T00:00:00Z', Date.UTC(2099, 0, 1)],
  ])('reads from when %j wants the log', (text, sinceMs) => {
    expect(read(text).sinceMs).toBe(sinceMs)
  })

  it.each([
    'sinceTime=2026-01-31',
    'sinceTime=2026-01-31T09:30:00',
    'sinceTime=2026-01-31T09:30Z',
    'sinceTime=2026-13-31T09:30:00Z',
    'sinceTime=yesterday',
    'sinceSeconds=x',
    'tailLines=1.5',
    'limitBytes=',
  ])('refuses %j as one that cannot be read', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: expect.stringMatching(/BadRequest/u) }))
  })

  it.each([
    ['sinceSeconds=0', 'sinceSeconds: Invalid value: 0: must be greater than 0'],
    ['limitBytes=0', 'limitBytes: Invalid value: 0: must be greater than 0'],
    ['tailLines=-1', 'tailLines: Invalid value: -1: must be greater than or equal to 0'],
    [
      'sinceSeconds=1&sinceTime=2026-01-31T09:30:00Z',
      'Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
    ],
    ['stream=Both', 'stream: Unsupported value: "Both": supported values: "All", "Stderr", "Stdout"'],
    [
      'stream=Stdout&tailLines=1',
      'Forbidden: `tailLines` and specific `stream` are mutually exclusive for now',
    ],
  ])('refuses %j as invalid', (text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ message: `PodLogOptions "web" is invalid: ${message}` }),
    )
  })

  it('leaves out what asks for nothing here', () => {
    expect(read('insecureSkipTLSVerifyBackend=true&pretty=true')).toEqual(read(''))
  })
})
