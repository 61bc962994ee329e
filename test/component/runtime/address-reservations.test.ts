import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findUnreserved, reserveAgain } from '../../../src/runtime/network/cni-results.ts'
import type { CniResult } from '../../../src/runtime/network/cni-results.ts'

let cniDataDir: string
const networkName = 'podd'

const result = (sandboxId: string, addresses: readonly string[], network = networkName): CniResult => ({
  path: `/results/${sandboxId}`,
  sandboxId,
  networkName: network,
  hostInterfaces: [],
  namespaces: [],
  macs: new Map(),
  gateways: [],
  addresses,
  portMappings: [],
})

beforeEach(() => {
  cniDataDir = mkdtempSync(join(tmpdir(), 'podd-cni-'))
})

afterEach(() => rmSync(cniDataDir, { recursive: true }))

describe('the addresses of running sandboxes', () => {
  const results = [
    result('a', ['10.86.0.2/24', 'fd00::2/64']),
    result('b', ['10.86.0.3/24']),
    result('lo', ['127.0.0.1/8'], 'cni-loopback'),
  ]

  it('are reserved again where host-local’s directory is gone, as it would have written them', async () => {
    const places = { cniDataDir, networkName }
    const reserved = await reserveAgain(places, findUnreserved(places, results))
    expect(reserved).toEqual(['10.86.0.2', 'fd00::2', '10.86.0.3'])
    expect(readdirSync(join(cniDataDir, networkName)).toSorted()).toEqual(reserved.toSorted())
    expect(readFileSync(join(cniDataDir, networkName, '10.86.0.3'), 'utf8')).toBe('b\r\neth0')
    expect(findUnreserved(places, results)).toEqual([])
  })

  it('stay with whoever has them meanwhile', async () => {
    const places = { cniDataDir, networkName }
    const lost = findUnreserved(places, results)
    mkdirSync(join(cniDataDir, networkName))
    writeFileSync(join(cniDataDir, networkName, '10.86.0.3'), 'c\r\neth0')
    expect(await reserveAgain(places, lost)).toEqual(['10.86.0.2', 'fd00::2'])
    expect(readFileSync(join(cniDataDir, networkName, '10.86.0.3'), 'utf8')).toBe('c\r\neth0')
  })
})
