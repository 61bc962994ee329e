/** In powers of 1000 with three digits, as crictl shows sizes. */
export function formatImageSize(sizeBytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let size = sizeBytes
  let unit = 0
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit += 1
  }
  return `${Number(size.toPrecision(3))}${units[unit] ?? 'B'}`
}
