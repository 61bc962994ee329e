import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from '../base/errors.ts'
import { findExecutable } from './find-executable.ts'
import { runCommand } from './run-command.ts'
import type { CommandResult } from './run-command.ts'

/** Space on the filesystem that holds a path. */
export interface DiskSpace {
  readonly totalBytes: number
  /** What processes without special rights may still use. */
  readonly freeBytes: number
  readonly totalInodes: number
  readonly freeInodes: number
  readonly readOnly: boolean
}

/** The few ways in which podd looks at a host to judge it. Nothing here changes anything. */
export interface HostProbe {
  /** Undefined for a file that isn't there or can't be read. */
  readonly readText: (path: string) => string | undefined
  readonly readBytes: (path: string) => Buffer | undefined
  readonly exists: (path: string) => boolean
  readonly find: (program: string) => string | undefined
  /** Undefined for a program that can't be started. */
  readonly run: (path: string, args: readonly string[]) => Promise<CommandResult | undefined>
  /** Of the path, or of the directory above it that exists. */
  readonly diskSpace: (path: string) => Promise<DiskSpace | undefined>
}

/** The host that podd runs on. */
export const systemHostProbe: HostProbe = {
  readText: (path) => readBytes(path)?.toString('utf8'),
  readBytes,
  exists: existsSync,
  find: (program) => findExecutable(program),
  run: (path, args) => runCommand(path, args, { timeoutMs: 10_000 }).catch(() => undefined),
  async diskSpace(path) {
    const existing = nearestExisting(path)
    try {
      const space = await statfs(existing)
      return {
        totalBytes: space.blocks * space.bsize,
        freeBytes: space.bavail * space.bsize,
        totalInodes: space.files,
        freeInodes: space.ffree,
        readOnly: isReadOnly(existing),
      }
    } catch {
      // A file system that does not tell its size.
      return undefined
    }
  },
}

function readBytes(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    // The check that asks says what the lack of it means.
    return undefined
  }
}

/** The deepest directory on the way to a path that is there. */
export function nearestExisting(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestExisting(dirname(path))
}

function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (error) {
    return errorCode(error) === 'EROFS'
  }
}
