import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The processes that hold connections of this podd, too (src/host/keep-connection.ts). */
export function keepersOf(poddPid: number): readonly number[] {
  const sockets = new Set(readdirSync(`/proc/${poddPid}/fd`).map((fd) => linkOf(`/proc/${poddPid}/fd/${fd}`)))
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && isKeeper(pid) && sockets.has(linkOf(`/proc/${pid}/fd/3`)))
}

function isKeeper(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('podd-keeps-connection')
  } catch {
    return false
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
