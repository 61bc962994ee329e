import { describe, expect, it } from 'vitest'
import { chooseProxy } from '../../../src/sources/http/http-routes.ts'

const proxy = 'http://proxy.example:3128'

describe('chooseProxy', () => {
  it.each<[url: string, env: Record<string, string>, chosen: string | undefined]>([
    ['http://host/', {}, undefined],
    ['http://host/', { HTTP_PROXY: '' }, undefined],
    ['http://host/', { HTTP_PROXY: proxy }, proxy],
    ['http://host/', { http_proxy: proxy }, proxy],
    ['http://host/', { HTTP_PROXY: '', http_proxy: proxy }, proxy],
    ['http://host/', { HTTPS_PROXY: proxy }, undefined],
    ['https://host/', { HTTPS_PROXY: proxy }, proxy],
    ['https://host/', { HTTP_PROXY: proxy }, undefined],
    ['http://host/', { HTTP_PROXY: 'proxy.example:3128' }, proxy],
    ['http://host/', { HTTP_PROXY: '10.0.0.1:3128' }, 'http://10.0.0.1:3128'],
    ['http://host/', { HTTP_PROXY: 'https://proxy.example' }, 'https://proxy.example'],
  ])('%s with %j: %s', (url, env, chosen) => {
    expect(chooseProxy(new URL(url), env)?.origin).toBe(chosen)
  })

  // The cases of golang.org/x/net/http/httpproxy, and what it says of NO_PROXY.
  it.each<[host: string, noProxy: string, isExempt: boolean]>([
    ['localhost', '', true],
    ['localhost:8080', '', true],
    ['127.0.0.1', '', true],
    ['127.0.0.2:80', '', true],
    ['[::1]', '', true],
    ['[::2]', '', false],
    ['example.com', '', false],
    ['example.com', '*', true],
    ['example.com', 'example.com', true],
    ['example.com', 'EXAMPLE.com, other', true],
    ['example.com', 'other, example.com ', true],
    ['www.example.com', 'example.com', true],
    ['example.com', '.example.com', false],
    ['www.example.com', '.example.com', true],
    ['example.com', '*.example.com', false],
    ['www.example.com', '*.example.com', true],
    ['myexample.com', 'example.com', false],
    ['example.com', 'ample.com', false],
    ['example.com:80', 'example.com:80', true],
    ['example.com', 'example.com:80', true],
    ['example.com:81', 'example.com:80', false],
    ['10.1.2.3', '10.0.0.0/8', true],
    ['11.1.2.3', '10.0.0.0/8', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['10.1.2.3:81', '10.1.2.3:80', false],
    ['[2001:db8::1]', '2001:db8::/32', true],
    ['[2001:db9::1]', '2001:db8::/32', false],
    ['[2001:db8::1]', '2001:DB8:0::1', true],
    ['[2001:db8::1]:81', '[2001:db8::1]:81', true],
    ['[2001:db8::1]:81', '[2001:db8::1]:80', false],
    ['host', '10.0.0.0/99,,:,/', false],
  ])('%s with NO_PROXY=%s: passed by %s', (host, noProxy, isExempt) => {
    const chosen = chooseProxy(new URL(`http://${host}/`), { HTTP_PROXY: proxy, no_proxy: noProxy })
    expect(chosen === undefined).toBe(isExempt)
  })

  it.each([['ftp://me:secret@proxy'], ['socks5://me:secret@proxy'], ['http://me:secret@'], ['me:secret@ x']])(
    'refuses %s without showing it',
    (text) => {
      const choose = (): unknown => chooseProxy(new URL('https://host/'), { HTTPS_PROXY: text })
      expect(choose).toThrow(expect.objectContaining({ code: 'BAD_PROXY' }))
      expect(choose).not.toThrow(/secret/u)
    },
  )
})
