import { readlinkSync } from 'node:fs'
import { expect, it } from 'vitest'
import { inhabitedNamespaces } from '../../../src/runtime/network/leaks.ts'

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
