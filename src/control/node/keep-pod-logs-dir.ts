import { existsSync, readFileSync, readdirSync, renameSync } from 'node:fs'
import { unreadableSuffix, writeFileAtomicSync } from '../../base/atomic-file.ts'
import { errorCode } from '../../base/errors.ts'
import { readState } from '../../base/state-file.ts'
import type { StateReading } from '../../base/state-file.ts'
import type { PoddConfig } from '../../config/options.ts'
import type { StateReport } from '../../store/state-report.ts'

/** The effective config, and a warning about it. */
export interface KeptPodLogsDir {
  readonly config: PoddConfig
  readonly warning: string | undefined
}

/**
 * Keeps the directory of logs while it has logs of pods that exist: their containers write there for as long as they
 * run. A changed setting takes effect when no such pod is left. Throws the system's error.
 */
export function keepPodLogsDir(config: PoddConfig): KeptPodLogsDir {
  const kept = readPodLogsDir(config.rootDir)
  if (kept === undefined || kept === config.podLogsDir || !hasPodsIn(kept, config.rootDir))
    return { config, warning: undefined }
  return {
    config: { ...config, podLogsDir: kept },
    warning: `pods log to the directory of before; this takes effect when they are gone: podLogsDir ${config.podLogsDir}, not ${kept}`,
  }
}

/** The directory that the last podd had its pods log to; undefined where that is unknown. Throws the system's error. */
export function readPodLogsDir(rootDir: string): string | undefined {
  const reading = read(rootDir)
  const path = reading?.kind === 'current' ? reading.content['podLogsDir'] : undefined
  return typeof path === 'string' ? path : undefined
}

/** Saves it durably. A file that can't be read is put aside and reported. Throws the system's error. */
export function savePodLogsDir(rootDir: string, podLogsDir: string, report: StateReport): void {
  if (readPodLogsDir(rootDir) === podLogsDir) return
  const path = statePath(rootDir)
  const reading = read(rootDir)
  if (reading !== undefined && reading.kind !== 'current') {
    renameSync(path, `${path}${unreadableSuffix}`)
    report({ path: `${path}${unreadableSuffix}`, message: reading.message })
  }
  writeFileAtomicSync(path, `${JSON.stringify({ version: 1, podLogsDir })}\n`)
}

function read(rootDir: string): StateReading | undefined {
  try {
    return readState(readFileSync(statePath(rootDir), 'utf8'), [])
  } catch (error) {
    // One that exists but can't be read must not be replaced: the logs of running pods follow it.
    if (errorCode(error) !== 'ENOENT') throw error
    return undefined
  }
}

function statePath(rootDir: string): string {
  return `${rootDir}/pod-logs.json`
}

/** Whether a pod has logs there: one that runs has a directory, one that is over has a record alone. */
function hasPodsIn(podLogsDir: string, rootDir: string): boolean {
  return listIfThere(podLogsDir).some((name) => {
    const uid = name.slice(name.lastIndexOf('_') + 1)
    return existsSync(`${rootDir}/pods/${uid}`) || existsSync(`${rootDir}/records/${uid}.json`)
  })
}

function listIfThere(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    return []
  }
}
