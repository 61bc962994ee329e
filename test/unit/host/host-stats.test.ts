import { expect, it } from 'vitest'
import { parseStat } from '../../../src/host/facts/host-stats.ts'

it('reads how long the CPUs were busy, how many there are, and when the host booted', () => {
  const text = [
    // user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice
    'cpu  1000 10 200 90000 500 3 7 30 400 0',
    'cpu0 500 5 100 45000 250 1 3 15 200 0',
    'cpu1 500 5 100 45000 250 2 4 15 200 0',
    'intr 12345 0',
    'btime 1767225600',
    '',
  ].join('\n')
  expect(parseStat(text)).toEqual({ cpuNanoSeconds: 12.5e9, cpus: 2, bootedAtMs: 1_767_225_600_000 })
})
