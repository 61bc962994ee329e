import { realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { mountPointOf, readMounts } from '../../host/mounts.ts'
import type { MountEntry } from '../../host/mounts.ts'
import type { Problem } from '../../pod/objects/document.ts'
import {
  directoryWritersProblem,
  networkProblem,
  passedOverProblem,
  unreadableNameProblem,
} from './directory-problems.ts'
import { listManifests } from './list-manifests.ts'
import type { DirectoryIdentity } from '../identify-directory.ts'
import { findNetworkFileSystem } from '../network-file-system.ts'
import { describeOtherWriters } from '../other-writers.ts'

/** A directory that others than root can write. */
export interface WritableDirectory {
  readonly path: string
  readonly writers: string
}

export interface DirectoryListing {
  /** See listManifests; an empty name where the path is a single file. */
  readonly names: readonly string[]
  /** Files that aren't read because of their names. */
  readonly passedOver: readonly string[]
  /** The same, with names that aren't UTF-8. */
  readonly unreadableNames: readonly string[]
  /** The first one, of the directory and the subdirectories that are read. */
  readonly writable: WritableDirectory | undefined
}

/** Lists a directory. Throws what the system throws. */
export async function listDirectory(
  directory: string,
  { isFile, otherWriters }: DirectoryIdentity,
  recursive: boolean,
): Promise<DirectoryListing> {
  if (isFile) return { names: [''], passedOver: [], unreadableNames: [], writable: undefined }
  const subdirectories: string[] = []
  const passedOver: string[] = []
  const unreadableNames: string[] = []
  const names = await listManifests(directory, recursive, {
    onDirectory: (name) => void subdirectories.push(name),
    onPassedOver: (name) => void passedOver.push(name),
    onUnreadableName: (name) => void unreadableNames.push(name),
  })
  const listed = { names, passedOver, unreadableNames }
  if (otherWriters !== undefined) return { ...listed, writable: { path: directory, writers: otherWriters } }
  return {
    ...listed,
    writable: await findWritable(subdirectories.toSorted().map((name) => join(directory, name))),
  }
}

async function findWritable(paths: readonly string[]): Promise<WritableDirectory | undefined> {
  for (const path of paths) {
    // One that is gone holds nothing.
    const stats = await stat(path, { bigint: true }).catch(() => undefined)
    const writers = stats === undefined ? undefined : describeOtherWriters(stats)
    if (writers !== undefined) return { path, writers }
  }
  return undefined
}

export interface DirectoryFactsOptions {
  readonly directory: string
  /** Which network file system a path is on. */
  readonly findNetwork?: ((path: string) => Promise<string | undefined>) | undefined
  /** The interval of reads where changes aren't reported. */
  readonly pollMs: number
}

/** The facts about the manifest directory that are worth a warning. */
export class DirectoryFacts {
  readonly #options: DirectoryFactsOptions
  #seen: string | undefined
  #network: Problem | undefined
  #writers: Problem | undefined
  #names: readonly Problem[] = []

  constructor(options: DirectoryFactsOptions) {
    this.#options = options
  }

  /** Its file system reports no changes by other hosts. */
  get isOnNetwork(): boolean {
    return this.#network !== undefined
  }

  problems(): readonly Problem[] {
    return [this.#network, this.#writers, ...this.#names].filter((problem) => problem !== undefined)
  }

  async note(
    { id }: DirectoryIdentity,
    { writable, passedOver, unreadableNames }: Omit<DirectoryListing, 'names'>,
  ): Promise<void> {
    const { directory, findNetwork = findNetworkFileSystem, pollMs } = this.#options
    this.#writers =
      writable === undefined ? undefined : directoryWritersProblem(writable.path, writable.writers)
    this.#names = [
      ...unreadableNames.toSorted().map((name) => unreadableNameProblem(join(directory, name))),
      ...(passedOver.length === 0 ? [] : [passedOverProblem(directory, passedOver)]),
    ]
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
