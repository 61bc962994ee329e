import { mkdirSync } from 'node:fs'
import { crashDirectory } from '../store/reports.ts'

/**
 * Has Node itself write a crash report for failures after which no code of podd's runs: V8 is out of memory, or fails.
 * Without the environment, which may hold secrets, and without host names, for which it would ask DNS. Throws the
 * system's error.
 */
export function keepFatalReports(rootDir: string, startedAtMs: number): void {
  const directory = crashDirectory(rootDir)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  Object.assign(process.report, {
    directory,
    filename: `${startedAtMs}.json`,
    reportOnFatalError: true,
    compact: true,
    excludeEnv: true,
    excludeNetwork: true,
  })
}
