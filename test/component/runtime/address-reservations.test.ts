import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { restoreReservations } from '../../../src/runtime/network/cni-results.ts'
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

  const allReady = async () => new Set(['a', 'b'])

  it('are reserved again where host-local’s directory is gone, as it would have written them', async () => {
    const places = { cniDataDir, networkName }
    const reserved = await restoreReservations(places, results, allReady)
    expect(reserved).toEqual(['10.86.0.2', 'fd00::2', '10.86.0.3'])
    expect(readdirSync(join(cniDataDir, networkName)).toSorted()).toEqual(reserved.toSorted())
    expect(readFileSync(join(cniDataDir, networkName, '10.86.0.3'), 'utf8')).toBe('b\r\neth0')
    expect(await restoreReservations(places, results, allReady)).toEqual([])
  })

  it('are not reserved again for one that is ready no more when its addresses are found missing', async () => {
    const places = { cniDataDir, networkName }
    const ready = new Set(['a', 'b'])
    await restoreReservations(places, results, allReady)
    const listed: string[][] = []
    const list = async () => {
      listed.push(readdirSync(join(cniDataDir, networkName)))
      return ready
    }
    expect(await restoreReservations(places, results, list)).toEqual([])
    // It is stopped: CRI knows before its network is torn down.
    ready.delete('b')
    rmSync(join(cniDataDir, networkName, '10.86.0.3'))
    expect(await restoreReservations(places, results, list)).toEqual([])
    expect(listed.map((names) => names.includes('10.86.0.3'))).toEqual([false])
    expect(readdirSync(join(cniDataDir, networkName))).not.toContain('10.86.0.3')
  })

  it('stay with whoever has them meanwhile', async () => {
    const places = { cniDataDir, networkName }
    mkdirSync(join(cniDataDir, networkName))
    writeFileSync(join(cniDataDir, networkName, '10.86.0.3'), 'c\r\neth0')
    expect(await restoreReservations(places, results, allReady)).toEqual(['10.86.0.2', 'fd00::2'])
    expect(readFileSync(join(cniDataDir, networkName, '10.86.0.3'), 'utf8')).toBe('c\r\neth0')
  })
})
