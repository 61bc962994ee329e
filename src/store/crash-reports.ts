import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A crash of this daemon or an earlier one. */
export interface CrashReport {
  /** Wall milliseconds. */
  readonly atMs: number
  readonly path: string
}

export function crashDirectory(rootDir: string): string {
  return join(rootDir, 'crash')
}

/** The kept reports, oldest first. Never throws. */
export function listCrashReports(rootDir: string): readonly CrashReport[] {
  const directory = crashDirectory(rootDir)
  try {
    return readdirSync(directory)
      .flatMap((name) => {
        const atMs = /^(\d+)\.json$/u.exec(name)?.[1]
        return atMs === undefined ? [] : [{ atMs: Number(atMs), path: join(directory, name) }]
      })
      .toSorted((a, b) => a.atMs - b.atMs)
  } catch {
    // There was no crash, or this user may not read them.
    return []
  }
}
