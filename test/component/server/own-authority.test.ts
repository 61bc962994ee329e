import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { OwnAuthority } from '../../../src/server/access/own-authority.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const dayMs = 24 * 60 * 60 * 1000

let directory: string
let clock: ManualClock

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-authority-'))
  clock = new ManualClock()
})

afterEach(() => {
  rmSync(directory, { recursive: true })
})

const open = (names: readonly string[] = ['localhost', '127.0.0.1']) =>
  new OwnAuthority(directory, names, () => {}, clock)

const certificatesOf = (pem: string): readonly X509Certificate[] =>
  pem
    .split(/(?<=-----END CERTIFICATE-----\n)/u)
    .filter((text) => text !== '')
    .map((text) => new X509Certificate(text))

it('keeps what it made, and makes a new one for a server with another name', () => {
  const first = open()
  const { certificate } = first.server()
  expect(open().trusted()).toBe(first.trusted())
  expect(open().server().certificate).toBe(certificate)
  const other = open(['localhost', '127.0.0.1', 'box']).server().certificate
  expect(new X509Certificate(other).checkHost('box')).toBe('box')
})

it("renews the server's certificate before it ends", async () => {
  const authority = open()
  const { certificate } = authority.server()
  await clock.advance(300 * dayMs)
  expect(authority.mustRenew).toBe(false)
  await clock.advance(10 * dayMs)
  expect(authority.mustRenew).toBe(true)
  expect(authority.server().certificate).not.toBe(certificate)
  expect(authority.mustRenew).toBe(false)
})

it('is followed by another authority before it ends, and trusted until then', async () => {
  const old = open()
  const client = { commonName: 'ann', organizations: ['podd:view'] }
  const [oldRoot] = certificatesOf(old.trusted())
  await clock.advance(9 * 365 * dayMs)
  const authority = open()
  const roots = certificatesOf(authority.trusted())
  expect(roots.map(({ subject }) => subject === oldRoot?.subject)).toEqual([true, false])
  const [, newRoot] = roots
  const server = new X509Certificate(authority.server().certificate)
  const issued = new X509Certificate(authority.issueClient(client, 30).certificate)
  // Clients of before know the old one alone.
  expect(oldRoot !== undefined && server.verify(oldRoot.publicKey)).toBe(true)
  expect(newRoot !== undefined && issued.verify(newRoot.publicKey)).toBe(true)
  expect(readdirSync(join(directory, 'tls')).sort()).toEqual(['ca-old.pem', 'ca.pem', 'server.pem'])
  await clock.advance(2 * 365 * dayMs)
  const later = open()
  expect(certificatesOf(later.trusted()).map(({ subject }) => subject)).toEqual([newRoot?.subject])
  expect(
    newRoot !== undefined && new X509Certificate(later.server().certificate).verify(newRoot.publicKey),
  ).toBe(true)
})

it('is valid, with what it issued to clients, after the wrong clock of its first boot was set back', () => {
  const now = clock.wallMs()
  clock.setWall(now + 4 * 365 * dayMs)
  const early = open()
  early.server()
  const client = early.issueClient({ commonName: 'ann', organizations: ['podd:view'] }, 30)
  clock.setWall(now)
  const authority = open()
  expect(authority.trusted()).toBe(early.trusted())
  const begins = [authority.trusted(), authority.server().certificate, client.certificate]
    .flatMap((pem) => certificatesOf(pem))
    .map(({ validFromDate }) => validFromDate.getTime())
  expect(begins.filter((beginMs) => beginMs > now)).toEqual([])
})
