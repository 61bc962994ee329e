import { readFileSync } from 'node:fs'

/** What of vitest's JSON report these programs go by. */
export interface VitestReport {
  readonly testResults: readonly TestFile[]
}

export interface TestFile {
  readonly name: string
  readonly status: string
  readonly message: string
  /** Milliseconds since the epoch. */
  readonly startTime: number
  readonly endTime: number
  readonly assertionResults: readonly TestOfReport[]
}

export interface TestOfReport {
  readonly fullName: string
  readonly status: string
  readonly tags?: readonly string[]
}

/** Undefined where there is none, or none that can be read: its run crashed. */
export function readReport(path: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as VitestReport
  } catch {
    return undefined
  }
}
