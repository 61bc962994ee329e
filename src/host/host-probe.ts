/* Reading operations by which podd examines a host, and the space on its disks. */
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DiskFacts } from '../decide/doctor/host-facts.ts'
import { errorCode } from '../base/errors.ts'
import { readTextIfThere } from '../base/read-bounded.ts'
import { findExecutable, runCommand } from './run-command.ts'
import type { CommandResult } from './run-command.ts'

/** Space on the filesystem that holds a path. */
export type DiskSpace = Omit<DiskFacts, 'purpose' | 'path'>

/** The read-only operations by which podd examines a host. */
export interface HostProbe {
  /** Undefined for a file that doesn't exist or can't be read. */
  readonly readText: (path: string) => string | undefined
  readonly readBytes: (path: string) => Buffer | undefined
  readonly exists: (path: string) => boolean
  readonly find: (program: string) => string | undefined
  /** Undefined for a program that can't be started. */
  readonly run: (path: string, args: readonly string[]) => Promise<CommandResult | undefined>
  /** Of the path, or of its nearest existing parent. */
  readonly diskSpace: (path: string) => Promise<DiskSpace | undefined>
}

/** The host that podd runs on. */
export const systemHostProbe: HostProbe = {
  readText: readTextIfThere,
  readBytes,
  exists: existsSync,
  find: (program) => findExecutable(program),
  // A program that can't be run gives no fact; doctor looks for missing programs by name.
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
    // The calling check reports what its absence means.
    return undefined
  }
}

/** The deepest existing parent of a path. */
function nearestExisting(path: string): string {
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

/** The capacity of a path's file system, and the bytes still available to processes other than root's. */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly capacityBytes: number; readonly availableBytes: number }> {
  const { blocks, bavail, bsize } = await statfs(path)
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize }
}

/** The capacity of the file system of a path, which may not exist yet; undefined where unknown. */
export function diskBytes(path: string): number | undefined {
  try {
    const { blocks, bsize } = statfsSync(nearestExisting(path))
    return blocks * bsize
  } catch {
    // A file system that does not tell its size.
    return undefined
  }
}
