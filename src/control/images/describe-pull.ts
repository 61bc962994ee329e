import { formatBytes } from '../../base/text.ts'
import type { PullProgress } from './image-request.ts'

/** What a pull is doing: `pulling image "app:1": 12.0 MiB of 40.0 MiB`. */
export function describePull(image: string, { phase, doneBytes, totalBytes }: PullProgress): string {
  const pulling = `pulling image "${image}"`
  switch (phase) {
    case 'queued':
      return `waiting to pull image "${image}": other images are pulled before it`
    case 'resolving':
      return `${pulling}: looking for its manifest`
    case 'fetching':
      return `${pulling}: ${formatBytes(doneBytes)}${totalBytes === undefined ? '' : ` of ${formatBytes(totalBytes)}`}`
    case 'unpacking':
      return `${pulling}: unpacking ${formatBytes(totalBytes ?? doneBytes)}`
  }
}
