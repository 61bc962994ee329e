/** Formats a size as the kubelet does (`12.3 GiB`). */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  return at === 0 ? `${bytes} B` : `${(bytes / 1024 ** at).toFixed(1)} ${units[at]}`
}
