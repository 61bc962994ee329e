import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { readIfExists } from '../../base/atomic-file.ts'
import { Semaphore } from '../../base/semaphore.ts'
import { overwriteFile } from './overwrite-file.ts'
import { podDirectory } from './pod-directory.ts'

/**
 * The resolv.conf files of all pods, changed one at a time. One that is known to be as it should be isn't looked at
 * again until it is to be another.
 */
export class ResolvConfFiles {
  readonly #rootDir: string
  readonly #turn = new Semaphore(1)
  /** What each was seen to be last. */
  readonly #contents = new Map<PodUid, string>()

  constructor(rootDir: string) {
    this.#rootDir = rootDir
  }

  /** As `writeResolvConf`. */
  write(uid: PodUid, content: string): Promise<string> {
    return this.#turn.run(async () => {
      this.forget(uid)
      return writeResolvConf(this.#rootDir, uid, content)
    })
  }

  /** As `refreshResolvConf`. */
  async refresh(uid: PodUid, content: string): Promise<boolean> {
    if (this.#contents.get(uid) === content) return true
    return this.#turn.run(async () => {
      this.forget(uid)
      const state = await bringUpToDate(this.#rootDir, uid, content)
      if (state === 'current') this.#contents.set(uid, content)
      return state !== 'missing'
    })
  }

  /** As `removeResolvConf`. */
  remove(uid: PodUid): Promise<void> {
    return this.#turn.run(async () => {
      this.forget(uid)
      await removeResolvConf(this.#rootDir, uid)
    })
  }

  /** The pod's directory goes. */
  forget(uid: PodUid): void {
    this.#contents.delete(uid)
  }
}

/** The resolv.conf that the pod's containers share. */
function resolvConfPath(rootDir: string, uid: PodUid): string {
  return `${podDirectory(rootDir, uid)}/resolv.conf`
}

/** What podd wrote there last; gone while it writes. */
function writtenPath(rootDir: string, uid: PodUid): string {
  return `${podDirectory(rootDir, uid)}/resolv.conf.written`
}

/**
 * Writes a pod's resolv.conf and gives its path. It is written in place, never swapped: containers have
 * this very file mounted, and see the change. What a container made of it itself (a VPN's, say) stays.
 */
export async function writeResolvConf(rootDir: string, uid: PodUid, content: string): Promise<string> {
  const path = resolvConfPath(rootDir, uid)
  if (await refreshResolvConf(rootDir, uid, content)) return path
  await mkdir(podDirectory(rootDir, uid), { recursive: true, mode: 0o750 })
  await writeFile(path, content, { mode: 0o644 })
  await writeFile(writtenPath(rootDir, uid), content, { mode: 0o640 })
  return path
}

/** Forgets the file: containers of a new sandbox get one without what those before made of it. */
export async function removeResolvConf(rootDir: string, uid: PodUid): Promise<void> {
  for (const path of [writtenPath(rootDir, uid), resolvConfPath(rootDir, uid)])
    await rm(path, { force: true })
}

/**
 * Brings the file of a pod that has one up to date, unless it isn't as podd left it; gives whether it has one. The
 * file is never empty in between.
 */
export async function refreshResolvConf(rootDir: string, uid: PodUid, content: string): Promise<boolean> {
  return (await bringUpToDate(rootDir, uid, content)) !== 'missing'
}

/** `changed`: a container made something else of it. */
async function bringUpToDate(
  rootDir: string,
  uid: PodUid,
  content: string,
): Promise<'missing' | 'current' | 'changed'> {
  try {
    const shown = await readFile(resolvConfPath(rootDir, uid), 'utf8')
    const path = writtenPath(rootDir, uid)
    const written = await readIfExists(path)
    if (shown === content && written === content) return 'current'
    // What is empty is what a power cut left.
    const isKnown = written !== undefined && written !== '' && shown !== ''
    if (isKnown && shown !== written && shown !== content) return 'changed'
    const file = await open(resolvConfPath(rootDir, uid), 'r+')
    try {
      await rm(path, { force: true })
      await overwriteFile(file, content)
      await writeFile(path, content, { mode: 0o640 })
      return 'current'
    } finally {
      await file.close()
    }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 'missing'
    throw error
  }
}
