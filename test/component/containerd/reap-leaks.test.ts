import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { containerdPlaces } from '../../../src/containerd/process/containerd-places.ts'
import { reapLeaks } from '../../../src/containerd/leaks/reap-leaks.ts'

/**
 * A ctr whose containerd is two files, a line for each container and task; it can't delete `hung`. Containers of pods
 * are called `pod-…`, all others are sandboxes.
 */
const ctrScript = `#!/bin/sh
cd "$(dirname "$0")"
shift 4
echo "$*" >>calls
case "$*" in
  'containers list'*==container) grep '^pod-' containers || true ;;
  'containers list'*==sandbox) grep -v '^pod-' containers || true ;;
  'containers list'*) cat containers ;;
  'tasks list'*) echo 'TASK PID STATUS'; cat tasks ;;
  'containers delete hung') exit 1 ;;
  'containers delete '*) sed -i "/^$3\\$/d" containers ;;
  'tasks delete --force '*) sed -i "/^$4 /d" tasks ;;
esac
`

describe('reapLeaks', () => {
  let directory = ''
  let known: Set<string>
  let makingUntilLook = -1
  /** What happens before a look, by its number. */
  let events: Record<number, () => void>
  let looks = 0

  const books = (): readonly string[] =>
    readFileSync(join(directory, 'containers'), 'utf8').split('\n').filter(Boolean)

  function keep(containers: readonly string[], tasks: readonly string[] = []): void {
    writeFileSync(join(directory, 'containers'), containers.map((id) => `${id}\n`).join(''))
    writeFileSync(join(directory, 'tasks'), tasks.map((task) => `${task}\n`).join(''))
  }

  async function reap(): Promise<void> {
    const places = containerdPlaces(join(directory, 'root'), join(directory, 'run'))
    let nowMs = 0
    await reapLeaks({
      places,
      ctrPath: join(directory, 'ctr'),
      known: {
        list: () => Promise.resolve(known),
        isAnyInTheMaking: () => looks <= makingUntilLook,
      },
      clock: {
        ...systemClock,
        monotonicMs: () => nowMs,
        sleep: (delayMs) => {
          nowMs += delayMs
          if (delayMs !== 10_000) {
            looks += 1
            events[looks]?.()
          }
          return Promise.resolve()
        },
      },
      logger: silentLogger,
      signal: new AbortController().signal,
    })
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'podd-reap-'))
    writeFileSync(join(directory, 'ctr'), ctrScript, { mode: 0o755 })
    known = new Set(['mine'])
    events = {}
    looks = 0
    makingUntilLook = -1
  })

  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('looks three times where there is nothing to remove', async () => {
    keep(['mine'], ['mine 7 RUNNING'])
    await reap()
    expect(looks).toBe(3)
    expect(readFileSync(join(directory, 'calls'), 'utf8')).not.toContain('delete')
  })

  it('removes a sandbox that two looks have found, its task, and then its address', async () => {
    const places = containerdPlaces(join(directory, 'root'), join(directory, 'run'))
    const addresses = join(places.cniDataDir, places.networkName)
    mkdirSync(addresses, { recursive: true })
    writeFileSync(join(addresses, '10.86.0.2'), 'leaked\neth0')
    writeFileSync(join(addresses, '10.86.0.3'), 'mine\neth0')
    keep(['mine', 'leaked'], ['mine 7 RUNNING', 'leaked 8 RUNNING'])
    await reap()
    expect(books()).toEqual(['mine'])
    expect(readFileSync(join(directory, 'tasks'), 'utf8')).toBe('mine 7 RUNNING\n')
    expect(existsSync(join(addresses, '10.86.0.2'))).toBe(false)
    expect(existsSync(join(addresses, '10.86.0.3'))).toBe(true)
    expect(looks).toBe(4)
  })

  it('removes a container that never ran, and leaves one that runs to others', async () => {
    keep(['mine', 'pod-known', 'pod-failed', 'pod-runs'], ['mine 7 RUNNING', 'pod-runs 8 RUNNING'])
    known.add('pod-known')
    await reap()
    expect(books()).toEqual(['mine', 'pod-known', 'pod-runs'])
    expect(readFileSync(join(directory, 'tasks'), 'utf8')).toContain('pod-runs')
  })

  it('leaves alone what may be in the making, for as long as it is', async () => {
    keep(['mine', 'slow', 'leaked'])
    makingUntilLook = 5
    events = { 6: () => known.add('slow') }
    await reap()
    expect(books()).toEqual(['mine', 'slow'])
    expect(looks).toBeGreaterThan(6)
  })

  it('removes no task of a start that is under way', async () => {
    keep(['mine'], ['mine 7 CREATED'])
    makingUntilLook = 1
    await reap()
    expect(readFileSync(join(directory, 'tasks'), 'utf8')).toBe('mine 7 CREATED\n')
    looks = 0
    makingUntilLook = -1
    await reap()
    expect(readFileSync(join(directory, 'tasks'), 'utf8')).toBe('')
  })

  it('leaves a sandbox alone that CRI knows in the end', async () => {
    keep(['mine', 'late'])
    events = { 2: () => known.add('late') }
    await reap()
    expect(books()).toEqual(['mine', 'late'])
  })

  it('goes on where one cannot be removed, or a look fails', async () => {
    keep(['mine', 'hung', 'leaked'])
    events = {
      1: () => rmSync(join(directory, 'ctr')),
      2: () => writeFileSync(join(directory, 'ctr'), ctrScript, { mode: 0o755 }),
    }
    await reap()
    expect(books()).toEqual(['mine', 'hung'])
    expect(looks).toBeLessThan(21)
  })
})
