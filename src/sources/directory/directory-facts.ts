import { realpath, stat } from 'node:fs/promises'
import { mountPointOf, readMounts } from '../../host/mounts.ts'
import type { MountEntry } from '../../host/mounts.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { directoryWritersProblem, networkProblem } from './directory-problems.ts'
import { findNetworkFileSystem } from '../network-file-system.ts'
import { describeOtherWriters } from './other-writers.ts'

export interface DirectoryIdentity {
  readonly isFile: boolean
  readonly device: bigint
  /** Differs when another directory stands in this one's place. */
  readonly id: string
  /** Who beside root can write it, in words; a single file is judged as a file. */
  readonly otherWriters: string | undefined
}

/** Throws what the system throws. */
export async function identify(directory: string): Promise<DirectoryIdentity> {
  const stats = await stat(directory, { bigint: true })
  const { dev, ino, birthtimeNs } = stats
  const isFile = stats.isFile()
  // A single file is often replaced; its directory stays the same.
  const id = isFile ? 'file' : `${dev}:${ino}:${birthtimeNs}`
  return { isFile, device: dev, id, otherWriters: isFile ? undefined : describeOtherWriters(stats) }
}

export interface DirectoryFactsOptions {
  readonly directory: string
  /** Which network file system a path is on. */
  readonly findNetwork?: ((path: string) => Promise<string | undefined>) | undefined
  /** How often it is read where changes aren't reported. */
  readonly pollMs: number
}

/** What is worth a warning about the place that manifests are read from. */
export class DirectoryFacts {
  readonly #options: DirectoryFactsOptions
  #seen: string | undefined
  #network: Problem | undefined
  #writers: Problem | undefined

  constructor(options: DirectoryFactsOptions) {
    this.#options = options
  }

  /** Its file system reports no changes by other hosts. */
  get isOnNetwork(): boolean {
    return this.#network !== undefined
  }

  problems(): readonly Problem[] {
    return [this.#network, this.#writers].filter((problem) => problem !== undefined)
  }

  async note({ id, otherWriters }: DirectoryIdentity): Promise<void> {
    const { directory, findNetwork = findNetworkFileSystem, pollMs } = this.#options
    this.#writers = otherWriters === undefined ? undefined : directoryWritersProblem(directory, otherWriters)
    if (this.#seen === id) return
    this.#seen = id
    const fileSystem = await findNetwork(directory)
    this.#network = fileSystem === undefined ? undefined : networkProblem(directory, fileSystem, pollMs)
  }
}

/** Where the file system of a directory is mounted; undefined for the root's. Its device number may change with each boot. */
export async function findMountPoint(
  directory: string,
  listMounts: () => readonly MountEntry[] = readMounts,
): Promise<string | undefined> {
  const mountPoint = mountPointOf(await realpath(directory), listMounts())
  return mountPoint === '/' ? undefined : mountPoint
}
