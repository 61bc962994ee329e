import { execFileSync } from 'node:child_process'
import { pairFigures } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const count = 50
const mostMs = 45

/** `podd get pods` with fifty pods, in turn with a Node that does nothing. */
export async function benchCommandLine(podd: PoddUnderTest, pairs: number): Promise<readonly Figure[]> {
  for (let index = 0; index < count; index += 1)
    podd.drop(`get-${index}`, podManifest(`get-${index}`, { command: ['sleep', '36000'] }))
  await podd.untilRunning(count)
  const got: number[] = []
  const bare: number[] = []
  for (let index = -2; index < pairs; index += 1) {
    const bareMs = timeOf(process.execPath, ['-e', '0'])
    const poddMs = timeOf(podd.launcher(), ['--socket', podd.socketPath, 'get', 'pods'])
    if (index < 0) continue
    bare.push(bareMs)
    got.push(poddMs)
  }
  for (let index = 0; index < count; index += 1) podd.remove(`get-${index}`)
  await podd.untilGone()
  return pairFigures('podd get pods, beside node -e 0', { podd: got, bare }, { p50: () => mostMs })
}

function timeOf(program: string, args: readonly string[]): number {
  const beganMs = performance.now()
  execFileSync(program, args, { stdio: 'ignore' })
  return performance.now() - beganMs
}
