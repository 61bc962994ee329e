import { pino } from 'pino'

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
  readonly count?: number
  readonly durationMs?: number
  readonly exitCode?: number
  readonly err?: unknown
}

/** Messages are static text; what varies goes into the fields. */
export interface Logger {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** JSON lines on standard error, written at once so that a crash loses none. */
export function createLogger(level: LogLevel): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination({ fd: 2, sync: true }),
  )
}

/** Drops everything; for tests and for commands that print for themselves. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
