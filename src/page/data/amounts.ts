/** CPU as people read it: `250m`, `1.5` CPUs. */
export function formatCpu(millis: number): string {
  if (millis < 10) return `${Math.round(millis * 10) / 10}m`
  return millis < 1000 ? `${Math.round(millis)}m` : (millis / 1000).toFixed(2)
}

const suffixes: Readonly<Record<string, number>> = {
  m: 0.001,
  k: 1000,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
}

/** The value of a quantity; undefined for text that isn't one. */
export function readAmount(quantity: string | undefined): number | undefined {
  const { digits = '', suffix = '' } =
    /^(?<digits>\d+(?:\.\d+)?)(?<suffix>[A-Za-z]{0,2})$/u.exec(quantity ?? '')?.groups ?? {}
  const factor = suffix === '' ? 1 : suffixes[suffix]
  return digits === '' || factor === undefined ? undefined : Number(digits) * factor
}
