import { createHash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  inhabitedNamespaces,
  planSandboxRemoval,
  readRuleOwners,
} from '../../../src/runtime/network/leaks.ts'

function failing(code: string): () => string {
  return () => {
    throw Object.assign(new Error(code), { code })
  }
}

it('finds the namespace of a process', () => {
  const own = /\d+/u.exec(readlinkSync('/proc/self/ns/net'))?.[0] ?? ''
  expect(inhabitedNamespaces()).toContain(own)
})

it.each(['ENOENT', 'ESRCH'])('takes %s for the end of a process', (code) => {
  expect([...inhabitedNamespaces(failing(code))].join('')).toBe('')
})

it.each(['EMFILE', 'ENOMEM', 'EACCES'])('does not take %s for a host without processes', (code) => {
  expect(() => inhabitedNamespaces(failing(code))).toThrow(code)
})

const gone = 'ab12'
const hash = createHash('sha512').update(`podd${gone}`).digest('hex')
const own = `CNI-${hash}`.slice(0, 28)
const port = `CNI-DN-${hash}`.slice(0, 28)
const other = 'CNI-aaaaaaaaaaaaaaaaaaaaaaaa'

const comment = (id: string, network = 'podd'): string =>
  `-m comment --comment "name: \\"${network}\\" id: \\"${id}\\""`
const inMasquerade = [
  `${own} -d 10.88.0.0/16 ${comment(gone)} -j ACCEPT`,
  `${own} ! -d 224.0.0.0/4 ${comment(gone)} -j MASQUERADE`,
]
const toMasquerade = `POSTROUTING -s 10.88.0.5/32 ${comment(gone)} -j ${own}`
const inPort = `${port} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.88.0.5:8080`
const toPort = `CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"podd\\" id: \\"${gone}\\"" -m multiport --dports 80 -j ${port}`
const others = [
  `POSTROUTING -s 10.88.0.6/32 ${comment('cd34')} -j ${other}`,
  `POSTROUTING -s 10.88.0.5/32 ${comment(gone, 'podd-2')} -j ${other}`,
  'POSTROUTING -s 172.17.0.0/16 -j MASQUERADE',
]

function saved(chains: readonly string[], rules: readonly string[]): string {
  const lines = [
    ...['POSTROUTING', 'CNI-HOSTPORT-DNAT', other, ...chains].map((chain) => `:${chain} - [0:0]`),
    ...rules.map((rule) => `-A ${rule}`),
  ]
  return `*nat\n${lines.join('\n')}\nCOMMIT\n`
}

function script(rules: readonly string[], chains: readonly string[]): string {
  const lines = [
    ...rules.map((rule) => `-D ${rule}`),
    ...chains.map((chain) => `-F ${chain}`),
    ...chains.map((chain) => `-X ${chain}`),
  ]
  return `*nat\n${lines.join('\n')}\nCOMMIT\n`
}

describe('planSandboxRemoval', () => {
  it.each<[string, readonly string[], readonly string[], string]>([
    [
      'all that a sandbox had',
      [own, port],
      [...inMasquerade, toMasquerade, inPort, toPort],
      script([toMasquerade, toPort], [own, port]),
    ],
    ['a chain that no rule leads to any more', [own], inMasquerade, script([], [own])],
    ['chains that are empty and that no rule leads to', [own, port], [], script([], [own, port])],
    ['nothing of others', [], [], ''],
  ])('removes %s', (_, chains, rules, expected) => {
    expect(planSandboxRemoval(saved(chains, [...others, ...rules]), 'podd', new Set([gone]))).toBe(expected)
  })

  it('has nothing to do where there is no such table', () => {
    expect(planSandboxRemoval('', 'podd', new Set([gone]))).toBe('')
  })
})

it('tells whose the rules of one network are', () => {
  const rules = [...others, ...inMasquerade, toMasquerade, toPort]
  expect(readRuleOwners(saved([own], rules), 'podd')).toEqual(new Set(['cd34', gone]))
  expect(readRuleOwners(saved([own], rules), 'podd-2')).toEqual(new Set([gone]))
})
