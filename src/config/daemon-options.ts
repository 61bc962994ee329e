import { size } from './log-options.ts'
import { option } from './option.ts'

/** What bounds podd itself; a part of the table in options.ts. */
export const daemonOptions = {
  daemonMemoryLimitBytes: option({
    field: 'daemonMemoryLimit',
    flag: 'daemon-memory-limit',
    type: size,
    default: 256 * 1024 * 1024,
    owner: 'podd',
    secret: false,
    doc: 'The resident memory of podd itself above which it restarts itself; the pods keep running. A negative number for no limit.',
  }),
} as const
