/**
 * With `PODD_TRACE=1` in its environment podd prints each step on the way from a manifest to a running process on standard
 * error: milliseconds on the system's monotonic clock, the step, and what it is about. Undefined otherwise, so that a step costs
 * nothing then: `trace?.('decoded', name)`.
 */
export const trace = process.env['PODD_TRACE'] === '1' ? print : undefined

function print(step: string, about: string): void {
  process.stderr.write(`trace ${(Number(process.hrtime.bigint()) / 1e6).toFixed(2)} ${step} ${about}\n`)
}
