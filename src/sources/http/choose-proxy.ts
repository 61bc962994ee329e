import { BlockList, isIP } from 'node:net'
import { PoddError } from '../../base/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy through which a URL is asked for; undefined for none. As the kubelet chooses
 * (golang.org/x/net/http/httpproxy): HTTP_PROXY for http, HTTPS_PROXY for https, in capitals or small letters, with or
 * without a scheme; none for the loopback and for what NO_PROXY names. Throws PoddError BAD_PROXY.
 */
export function chooseProxy(url: URL, env: Environment): URL | undefined {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const text = readVariable(env, name)
  if (text === '' || isExempt(url, readVariable(env, 'NO_PROXY'))) return undefined
  const address = text.includes('://') ? text : `http://${text}`
  const proxy = URL.canParse(address) ? new URL(address) : undefined
  if (proxy !== undefined && ['http:', 'https:'].includes(proxy.protocol)) return proxy
  // What it holds may have a password in it.
  throw new PoddError('BAD_PROXY', `${name} in podd's environment names no http or https proxy`, {
    hint: 'write it as http://HOST:PORT',
  })
}

function readVariable(env: Environment, name: string): string {
  return [env[name], env[name.toLowerCase()]].find((text) => text !== undefined && text !== '') ?? ''
}

function isExempt(url: URL, list: string): boolean {
  const host = unbracket(url.hostname)
  if (host === 'localhost' || isInside(host, '127.0.0.0', 8) || isInside(host, '::1', 128)) return true
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && matches(entry, host, port))
}

/** One entry of NO_PROXY: `*`, a network, or an address, a name or the end of one (`.example.com`), with or without a port. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true
  const [, network = '', prefix] = /^(.+)\/(\d+)$/u.exec(entry) ?? []
  if (prefix !== undefined) return isInside(host, network, Number(prefix))
  const [, named = entry, ownPort] = /^(\[.+\]|[^:]*):(\d+)$/u.exec(entry) ?? []
  if (ownPort !== undefined && ownPort !== port) return false
  const name = unbracket(named).replace(/^\*\./u, '.')
  if (isIP(name) !== 0) return isInside(host, name, isIP(name) === 4 ? 32 : 128)
  if (name === '') return false
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`)
}

function isInside(host: string, network: string, prefixBits: number): boolean {
  const family = isIP(network)
  if (family === 0 || isIP(host) !== family || prefixBits > (family === 4 ? 32 : 128)) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(network, prefixBits, type)
  return list.check(host, type)
}

function unbracket(host: string): string {
  return host.replace(/^\[(.+)\]$/u, '$1')
}
