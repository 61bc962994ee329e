import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { PoddRig } from './podd-rig.ts'

const filling = 'x'.repeat(100)

/** A script that prints numbered lines of some 108 bytes, with a pause after each lot. */
export function numberedLines(count: number, lot: number, pauseSeconds: number): string {
  return `i=0
while [ $i -lt ${count} ]; do
  echo "$i ${filling}"; i=$((i + 1))
  [ $((i % ${lot})) != 0 ] || sleep ${pauseSeconds}
done
say done`
}

/** The same until there is a shared file of this name; then it says how many there were. */
export function endlessLines(enough: string, lot: number, pauseSeconds: number): string {
  return `i=0
until [ $((i % ${lot})) = 0 ] && [ -e /shared/${enough} ]; do
  echo "$i ${filling}"; i=$((i + 1))
  [ $((i % ${lot})) != 0 ] || sleep ${pauseSeconds}
done
say $i done`
}

/** The directory of the log of the pod's only container, `main`. */
export function logDirectory(podd: PoddRig, pod: string): string {
  const directory = readdirSync(podd.logsDir).find((name) => name.startsWith(`default_${pod}_`)) ?? ''
  return join(podd.logsDir, directory, 'main')
}

/** The files of that log. */
export function logFiles(podd: PoddRig, pod: string): string[] {
  return readdirSync(logDirectory(podd, pod)).toSorted()
}

/** Fails with the first number that is out of its place. */
export function expectAllLines(text: string, count: number): void {
  const numbers = text
    .trimEnd()
    .split('\n')
    .map((line) => Number(line.split(' ')[0]))
  const at = numbers.findIndex((number, index) => number !== index)
  expect(at === -1 ? 'in order' : `${numbers.slice(Math.max(0, at - 2), at + 3).join()} at ${at}`).toBe(
    'in order',
  )
  expect(numbers).toHaveLength(count)
}
