import {
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { followResolver } from '../../../src/host/resolver.ts'
import { refreshResolvConf, removeResolvConf, writeResolvConf } from '../../../src/volumes/pod-directory.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-resolv-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('a pod’s resolv.conf', () => {
  it('is rewritten in the file that containers have mounted', async () => {
    const path = await writeResolvConf(directory, 'u', 'nameserver 192.0.2.100\n')
    const { ino, mode } = statSync(path)
    expect(mode & 0o777).toBe(0o644)
    expect(await writeResolvConf(directory, 'u', 'nameserver 192.0.2.1\n')).toBe(path)
    expect(await refreshResolvConf(directory, 'u', 'search lan\n')).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe('search lan\n')
    expect(statSync(path).ino).toBe(ino)
  })

  it('stays as a container made it, until that is undone', async () => {
    const path = await writeResolvConf(directory, 'u', 'nameserver 192.0.2.1\n')
    writeFileSync(path, 'nameserver 198.51.100.1 # of a VPN\n')
    await writeResolvConf(directory, 'u', 'nameserver 192.0.2.1\n')
    await refreshResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')
    expect(readFileSync(path, 'utf8')).toBe('nameserver 198.51.100.1 # of a VPN\n')
    writeFileSync(path, 'nameserver 192.0.2.1\n')
    await refreshResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')
    expect(readFileSync(path, 'utf8')).toBe('nameserver 192.0.2.2\n')
  })

  it('is not read whole where a container made it larger than any memory', async () => {
    const path = await writeResolvConf(directory, 'u', 'nameserver 192.0.2.1\n')
    truncateSync(path, 2 ** 36)
    expect(await refreshResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')).toBe(true)
    expect(statSync(path).size).toBe(2 ** 36)
  })

  it('is podd’s where it says nothing of it, or was killed while it wrote', async () => {
    const path = await writeResolvConf(directory, 'u', 'nameserver 192.0.2.1\n')
    rmSync(`${directory}/pods/u/resolv.conf.written`)
    writeFileSync(path, 'nameserver 192.0.2.2\n.0.2.1\n')
    await refreshResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')
    expect(readFileSync(path, 'utf8')).toBe('nameserver 192.0.2.2\n')
  })

  it('is podd’s where a power cut left one of them empty, and in a new sandbox', async () => {
    const path = await writeResolvConf(directory, 'u', 'nameserver 192.0.2.1\n')
    writeFileSync(`${path}.written`, '')
    await refreshResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')
    expect(readFileSync(path, 'utf8')).toBe('nameserver 192.0.2.2\n')
    writeFileSync(path, '')
    await refreshResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')
    expect(readFileSync(path, 'utf8')).toBe('nameserver 192.0.2.2\n')
    writeFileSync(path, 'nameserver 198.51.100.1 # of a VPN\n')
    await removeResolvConf(directory, 'u')
    await writeResolvConf(directory, 'u', 'nameserver 192.0.2.2\n')
    expect(readFileSync(path, 'utf8')).toBe('nameserver 192.0.2.2\n')
  })

  it('is not made for a pod that has none', async () => {
    expect(await refreshResolvConf(directory, 'none', 'search lan\n')).toBe(false)
  })
})

describe('followResolver', () => {
  /** Follows a path; `next` resolves with the next hint. */
  function follow(path: string) {
    const stop = new AbortController()
    let hints = 0
    const waiting: (() => void)[] = []
    const onHint = (): void => {
      hints += 1
      for (const wake of waiting.splice(0)) wake()
    }
    const done = followResolver(path, systemClock, onHint, stop.signal)
    const until = async (count: number): Promise<void> => {
      for (;;) {
        if (hints >= count) return
        await new Promise<void>((wake) => waiting.push(wake))
      }
    }
    return { until, count: () => hints, end: () => (stop.abort(), done) }
  }

  it('tells of a file that comes, is written, replaced, and becomes a link', async () => {
    const path = join(directory, 'etc.conf')
    const { until, count, end } = follow(path)
    await until(1)
    writeFileSync(path, 'a')
    await until(2)
    writeFileSync(path, 'b')
    await until(3)
    writeFileSync(join(directory, 'next'), 'c')
    renameSync(join(directory, 'next'), path)
    await until(4)
    const elsewhere = mkdtempSync(join(tmpdir(), 'podd-resolv-run-'))
    writeFileSync(join(elsewhere, 'stub'), 'd')
    symlinkSync(join(elsewhere, 'stub'), join(directory, 'next'))
    renameSync(join(directory, 'next'), path)
    await until(5)
    writeFileSync(join(elsewhere, 'stub'), 'e')
    await until(6)
    rmSync(elsewhere, { recursive: true })
    await until(7)
    expect(count()).toBeGreaterThanOrEqual(7)
    await end()
  })

  it('is silent about other files', async () => {
    const { until, count, end } = follow(join(directory, 'etc.conf'))
    await until(1)
    writeFileSync(join(directory, 'other.conf'), 'a')
    await systemClock.sleep(120)
    expect(count()).toBe(1)
    await end()
  })
})
