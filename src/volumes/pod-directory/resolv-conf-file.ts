import { mkdir, open, readFile, unlink, writeFile } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { readIfExists } from '../../base/atomic-file.ts'
import { Semaphore } from '../../base/waits.ts'
import { overwriteFile } from './overwrite-file.ts'
import { podDirectory } from './pod-directory.ts'

/**
 * The resolv.conf files of all pods, changed one at a time. One that is known to be right isn't read again until its
 * wanted text changes.
 */
export class ResolvConfFiles {
  readonly #rootDir: string
  readonly #turn = new Semaphore(1)
  /** The last known text of each. */
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

  /** Forgets the file: the pod's directory is removed. */
  forget(uid: PodUid): void {
    this.#contents.delete(uid)
  }
}

/** The resolv.conf that the pod's containers share. */
function resolvConfPath(rootDir: string, uid: PodUid): string {
  return `${podDirectory(rootDir, uid)}/resolv.conf`
}

/** The record of what podd last wrote there; absent while it writes. */
function writtenPath(rootDir: string, uid: PodUid): string {
  return `${podDirectory(rootDir, uid)}/resolv.conf.written`
}

/**
 * Writes a pod's resolv.conf and returns its path. It is written in place, never replaced, because containers have this
 * file mounted. A container's own changes (a VPN's, say) stay.
 */
export async function writeResolvConf(rootDir: string, uid: PodUid, content: string): Promise<string> {
  const path = resolvConfPath(rootDir, uid)
  if (await refreshResolvConf(rootDir, uid, content)) return path
  await mkdir(podDirectory(rootDir, uid), { recursive: true, mode: 0o750 })
  await writeFile(path, content, { mode: 0o644 })
  await writeFile(writtenPath(rootDir, uid), content, { mode: 0o640 })
  return path
}

/** Removes the file, so that containers of a new sandbox get one without earlier containers' changes. */
export async function removeResolvConf(rootDir: string, uid: PodUid): Promise<void> {
  for (const path of [writtenPath(rootDir, uid), resolvConfPath(rootDir, uid)]) await removeIfExists(path)
}

/** `rm` of Node's looks for the file twice before. */
async function removeIfExists(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/**
 * Updates the file of a pod that has one, unless a container has changed it; returns whether it has one. The file is
 * never empty in between.
 */
export async function refreshResolvConf(rootDir: string, uid: PodUid, content: string): Promise<boolean> {
  return (await bringUpToDate(rootDir, uid, content)) !== 'missing'
}

/** `changed`: a container has changed it. */
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
    // An empty file was left by a power cut.
    const isKnown = written !== undefined && written !== '' && shown !== ''
    if (isKnown && shown !== written && shown !== content) return 'changed'
    const file = await open(resolvConfPath(rootDir, uid), 'r+')
    try {
      await removeIfExists(path)
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
