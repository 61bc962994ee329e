import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { slowness } from '../../support/slowness.ts'

/**
 * A process that swaps a directory's `spot` for its `trap` and back as fast as it can, as a container would that
 * wants podd to follow a link; ends with the returned function. Resolves once it has begun.
 */
export async function swapForLink(directory: string): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, ['-e', script, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const stop = (): Promise<void> => {
    child.kill('SIGKILL')
    return ended
  }
  onTestFinished(stop)
  await once(child.stdout, 'data')
  return stop
}

/** How many times more rounds than usual: `npm run soak` takes 20. */
const moreRounds = Number(process.env['PODD_SWAP_ROUNDS'] ?? 1)

/** How often a test tries, for all that a slow machine has the time for. */
export const tries = (count: number): number => Math.max(50, Math.ceil((count * moreRounds) / slowness))

/** More tries where those before didn't meet all that they are for, as on a machine that runs one of the two at a time. */
export async function tryUntil(
  count: number,
  hasMetAll: () => boolean,
  attempt: () => Promise<void>,
): Promise<void> {
  const least = tries(count)
  for (let round = 0; round < least || (!hasMetAll() && round < 20 * least); round += 1) await attempt()
}

const script = `
const { renameSync, rmSync } = require('node:fs')
process.chdir(process.argv[1])
process.stdout.write('begun')
const parent = process.ppid
const still = new Int32Array(new SharedArrayBuffer(4))
for (let round = 0; process.ppid === parent; round += 1) {
  // Also somebody who takes long has to find the directory in its place now and then.
  if (round % 20 === 0) Atomics.wait(still, 0, 0, 1 << (round / 20) % 8)
  renameSync('spot', 'kept')
  // podd may make a directory in the gap.
  attempt(() => renameSync('trap', 'spot')) && renameSync('spot', 'trap')
  while (!attempt(() => renameSync('kept', 'spot'))) rmSync('spot', { recursive: true, force: true })
}
function attempt(act) {
  try { act(); return true } catch { return false }
}`
