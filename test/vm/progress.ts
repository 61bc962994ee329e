import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** What a power cut falls into. */
export type Moment = 'quiet' | 'change' | 'restart' | 'pull' | 'import'

/** How far a run has come; the machine keeps it, so that the next run goes on there. */
export interface Progress {
  /** The program that it is about: another one begins again. */
  readonly build: string
  readonly seed: number
  /** How long an image takes to be there again, which tells how slow the machine is. */
  fetchMs: number
  readonly passed: string[]
  readonly cuts: { readonly moment: Moment; readonly waitMs: number; readonly allPodsSeconds: number }[]
}

/** The same for the same built program. */
export function digestOfBuild(dist: string): string {
  const hash = createHash('sha256')
  for (const path of readdirSync(dist, { recursive: true, encoding: 'utf8' }).toSorted())
    if (/\.(js|proto)$/u.test(path)) hash.update(path).update(readFileSync(join(dist, path)))
  return hash.digest('hex').slice(0, 16)
}
