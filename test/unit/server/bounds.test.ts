import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { BodyBudget } from '../../../src/server/http/http-listener.ts'
import { UnknownConnections } from '../../../src/server/http/tls-listener.ts'
import { statusResponse } from '../../../src/server/requests/request.ts'

const mebibyte = 1024 * 1024

class Connection extends EventEmitter {
  readonly remoteAddress: string
  readonly remotePort: number

  constructor(remoteAddress: string, remotePort: number) {
    super()
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
  }
}

it('gives one address only so many connections of unknown clients', () => {
  const unknown = new UnknownConnections()
  const sockets = Array.from({ length: 256 }, (_, port) => new Connection('10.0.0.1', port))
  expect(sockets.every((socket) => unknown.admit(socket))).toBe(true)
  expect(unknown.admit(new Connection('10.0.0.1', 300))).toBe(false)
  expect(unknown.admit(new Connection('10.0.0.2', 300))).toBe(true)
  const [first, second] = sockets
  // One is known from now on, another one has gone: there is room for two.
  if (first !== undefined) unknown.know(first)
  second?.emit('close')
  expect(unknown.admit(new Connection('10.0.0.1', 301))).toBe(true)
  expect(unknown.admit(new Connection('10.0.0.1', 302))).toBe(true)
  expect(unknown.admit(new Connection('10.0.0.1', 303))).toBe(false)
})

it('holds the bodies of requests up to a bound, and takes more once some are done', () => {
  const budget = new BodyBudget()
  for (let count = 0; count < 21; count += 1) budget.take(3 * mebibyte)
  let refusal: unknown
  try {
    budget.take(3 * mebibyte)
  } catch (error) {
    refusal = error
  }
  expect(statusResponse(refusal)).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  budget.give(3 * mebibyte)
  budget.take(3 * mebibyte)
  expect(budget.heldBytes).toBe(63 * mebibyte)
})
