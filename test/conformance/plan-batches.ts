import type { SpecResult } from './ginkgo-report.ts'
import type { Batch } from './node-suite.ts'

/** Each batch is a program that has to start, and which the others wait for at the end. */
const batchSize = 5

/**
 * Specs in batches of one file each, in the order to run them in: those first that take longest.
 * @param kind what their ids begin with
 */
export function planBatches(kind: string, specs: readonly SpecResult[]): Batch[] {
  const slow = specs.filter(({ name }) => name.includes('[Slow]')).map((spec) => [spec])
  const quick = specs.filter(({ name }) => !name.includes('[Slow]'))
  const files = [...Map.groupBy(quick, ({ file }) => file).values()].toSorted((a, b) => b.length - a.length)
  const batches = files.flatMap((group) => {
    const count = Math.ceil(group.length / batchSize)
    return Array.from({ length: count }, (_, at) => group.filter((_spec, index) => index % count === at))
  })
  return [...slow, ...batches].map((batch, at) => ({ id: `${kind}-${at}`, specs: batch }))
}
