import { spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { slowness } from '../../support/slowness.ts'

/**
 * A process that swaps a directory's `spot` for its `trap` and back as fast as it can, as a container would that
 * wants podd to follow a link; ends with the returned function.
 */
export function swapForLink(directory: string): () => Promise<void> {
  const child = spawn(process.execPath, ['-e', script, directory], { stdio: 'inherit' })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const stop = (): Promise<void> => {
    child.kill('SIGKILL')
    return ended
  }
  onTestFinished(stop)
  return stop
}

/** How often a test tries, for all that a slow machine has the time for. */
export const tries = (count: number): number => Math.max(50, Math.ceil(count / slowness))

const script = `
const { renameSync, rmSync } = require('node:fs')
process.chdir(process.argv[1])
const parent = process.ppid
while (process.ppid === parent) {
  renameSync('spot', 'kept')
  // podd may make a directory in the gap.
  attempt(() => renameSync('trap', 'spot')) && renameSync('spot', 'trap')
  while (!attempt(() => renameSync('kept', 'spot'))) rmSync('spot', { recursive: true, force: true })
}
function attempt(act) {
  try { act(); return true } catch { return false }
}`
