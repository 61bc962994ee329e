import { describe, expect, it } from 'vitest'
import { formatDuration } from '../../../src/base/text.ts'
import { describeDialError, describeReadError, joinHostPort } from '../../../src/probes/go-words.ts'
import { buildHttpRequest, requestUrl } from '../../../src/probes/http-probe.ts'
import type { HttpGetAction } from '../../../src/probes/http-probe.ts'
import { resolvePort } from '../../../src/probes/probe-outcome.ts'

const ports = [
  { name: 'web', containerPort: 8080, protocol: 'TCP' },
  { containerPort: 9090, protocol: 'TCP' },
] as const

describe('a port', () => {
  it.each([
    [80, { kind: 'port', port: 80 }],
    ['web', { kind: 'port', port: 8080 }],
    ['8081', { kind: 'port', port: 8081 }],
    ['nope', { kind: 'invalid', message: 'port nope not found' }],
    [0, { kind: 'invalid', message: 'invalid port number: 0' }],
    ['70000', { kind: 'invalid', message: 'invalid port number: 70000' }],
  ])('%s', (reference, resolved) => {
    expect(resolvePort(reference, ports)).toEqual(resolved)
  })
})

const base: HttpGetAction = { path: '/', port: 80, scheme: 'HTTP', httpHeaders: [] }

function build(change: Partial<HttpGetAction>, podIps = ['10.0.0.1']) {
  const built = buildHttpRequest({ ...base, ...change }, { podIps, ports }, 'kube-probe/1.36')
  if (built.kind === 'invalid') throw new Error(built.message)
  return built.request
}

describe('a request', () => {
  it.each<[Partial<HttpGetAction>, string[] | undefined, string]>([
    [{}, undefined, 'http://10.0.0.1:80/'],
    [{ port: 'web', path: '/a?b=c#d' }, undefined, 'http://10.0.0.1:8080/a?b=c'],
    [{ scheme: 'HTTPS', port: 443 }, undefined, 'https://10.0.0.1:443/'],
    [{ path: 'healthz' }, undefined, 'http://10.0.0.1:80/healthz'],
    [{ path: '' }, undefined, 'http://10.0.0.1:80/'],
    [{ path: 'http://evil.example/x' }, undefined, 'http://10.0.0.1:80/x'],
    [{ path: '//evil.example/x' }, undefined, 'http://10.0.0.1:80/x'],
    [{ path: '/a b/ü?q=%20' }, undefined, 'http://10.0.0.1:80/a%20b/%C3%BC?q=%20'],
    [{ path: '/a\r\nX: y' }, undefined, 'http://10.0.0.1:80/a%0D%0AX:%20y'],
    [{ host: 'app.example' }, undefined, 'http://app.example:80/'],
    [{}, ['fd00::7'], 'http://[fd00::7]:80/'],
    [{}, ['fd00::7', '10.0.0.1'], 'http://[fd00::7]:80/'],
  ])('%j to %j goes to %s', (change, podIps, url) => {
    expect(requestUrl(build(change, podIps))).toBe(url)
  })

  it.each<[HttpGetAction['httpHeaders'], readonly (readonly [string, string])[], string | undefined]>([
    [
      [],
      [
        ['User-Agent', 'kube-probe/1.36'],
        ['Accept', '*/*'],
      ],
      undefined,
    ],
    [
      [
        { name: 'user-agent', value: 'me' },
        { name: 'ACCEPT', value: 'text/html' },
      ],
      [
        ['user-agent', 'me'],
        ['ACCEPT', 'text/html'],
      ],
      undefined,
    ],
    [
      [
        { name: 'User-Agent', value: '' },
        { name: 'Accept', value: '' },
      ],
      [],
      undefined,
    ],
    [
      [
        { name: 'host', value: 'a.example' },
        { name: 'X', value: '1' },
        { name: 'X', value: '2' },
      ],
      [
        ['X', '1'],
        ['X', '2'],
        ['User-Agent', 'kube-probe/1.36'],
        ['Accept', '*/*'],
      ],
      'a.example',
    ],
    [
      [
        { name: 'Content-Length', value: '7' },
        { name: 'Transfer-Encoding', value: 'chunked' },
      ],
      [
        ['User-Agent', 'kube-probe/1.36'],
        ['Accept', '*/*'],
      ],
      undefined,
    ],
  ])('with the headers %j', (httpHeaders, headers, hostHeader) => {
    expect(build({ httpHeaders })).toMatchObject({ headers, hostHeader })
  })

  it.each<[Partial<HttpGetAction>, string[], string]>([
    [{ port: 'nope' }, ['10.0.0.1'], 'port nope not found'],
    [{}, [], 'the pod has no IP address yet'],
  ])('%j to %j is invalid', (change, podIps, message) => {
    const built = buildHttpRequest({ ...base, ...change }, { podIps, ports }, 'x')
    expect(built).toEqual({ kind: 'invalid', message })
  })
})

describe('words', () => {
  it.each([
    [250, '250ms'],
    [1_000, '1s'],
    [90_000, '1m30s'],
    [60_000, '1m0s'],
    [3_600_000, '1h0m0s'],
    [3_725_000, '1h2m5s'],
  ])('%i ms are %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it.each([
    ['ECONNREFUSED', 'dial tcp [::1]:80: connect: connection refused'],
    ['EHOSTUNREACH', 'dial tcp [::1]:80: connect: no route to host'],
    ['ENOTFOUND', 'dial tcp: lookup ::1: no such host'],
    ['EODD', 'dial tcp [::1]:80: odd'],
  ])('%s while connecting', (code, text) => {
    expect(describeDialError(Object.assign(new Error('odd'), { code }), '::1', 80)).toBe(text)
  })

  it.each([
    ['ECONNRESET', 'read tcp 10.0.0.1:80: read: connection reset by peer'],
    ['UND_ERR_SOCKET', 'EOF'],
    ['EODD', 'odd'],
  ])('%s while reading', (code, text) => {
    expect(describeReadError(Object.assign(new Error('odd'), { code }), '10.0.0.1', 80)).toBe(text)
  })

  it('put IPv6 in brackets', () => {
    expect([joinHostPort('fd00::1', 1), joinHostPort('10.0.0.1', 2)]).toEqual(['[fd00::1]:1', '10.0.0.1:2'])
  })
})
