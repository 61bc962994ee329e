import { pino } from 'pino'
import { isoTime, systemClock } from './clock.ts'
import { escapeJson } from './text.ts'

/** The keys a log line may carry; a closed set, so that logs can be searched. */
export interface LogFields {
  readonly pod?: string
  readonly uid?: string
  readonly container?: string
  readonly reason?: string
  readonly source?: string
  readonly path?: string
  readonly image?: string
  readonly id?: string
  readonly job?: string
  /** Of a unit that sources give. */
  readonly revision?: number
  readonly count?: number
  readonly durationMs?: number
  readonly exitCode?: number
  readonly err?: unknown
  /** The facts and the plan of a pod's pass; only with `debug`. */
  readonly facts?: Loggable
  readonly plan?: Loggable
}

/** A value that is serialized only when a line of its level is written. */
export interface Loggable {
  toJSON(): unknown
}

/** Messages are static text; what varies goes into the fields. */
export interface Logger {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** The most characters that wait while nothing can be written; more is dropped. */
const mostWaitingBytes = 256 * 1024

/**
 * JSON lines on standard error, written at once so that a crash loses none. Never throws: lines that can't be written
 * (a full disk, a closed pipe) wait for the next successful write.
 */
export function createLogger(level: LogLevel): Logger {
  const destination = pino.destination({ fd: 2, sync: true, maxLength: mostWaitingBytes })
  destination.on('error', () => {})
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${isoTime(systemClock.wallMs())}"`,
      formatters: { level: (label) => ({ level: label }) },
      // Lines contain names from manifests and images, and may be read on a terminal.
      hooks: { streamWrite: escapeJson },
    },
    destination,
  )
}

/** Drops everything; for tests and for commands that print for themselves. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
