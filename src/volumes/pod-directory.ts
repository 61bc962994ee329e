/*
 * A pod's own files below podd's root directory, laid out as the kubelet's (`pkg/kubelet/kubelet_getters.go`, 1.36): its
 * hosts file and resolv.conf, termination messages, its range of user ids, and marks of work that is done once.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { access, chmod, mkdir, open, readdir, rm, unlink, writeFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readIfExists, writeFileAtomicSync, writeInto } from '../base/atomic-file.ts'
import { errorCode, ifThere, PoddError } from '../base/errors.ts'
import { readAtOnce } from '../base/read-bounded.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { UserRange } from '../translate/security-context.ts'

/** `<root>/pods/<uid>`: removed with the pod. */
export function podDirectory(rootDir: string, uid: PodUid): string {
  return `${rootDir}/pods/${uid}`
}

/** `<root>/pods/<uid>/volumes/kubernetes.io~<kind>/<name>` */
export function volumeDirectory(
  rootDir: string,
  uid: PodUid,
  kind: 'empty-dir' | 'configmap' | 'secret' | 'downward-api' | 'projected',
  name: string,
): string {
  return `${podDirectory(rootDir, uid)}/volumes/kubernetes.io~${kind}/${name}`
}

/** The hosts file that the pod's containers share. */
function etcHostsPath(rootDir: string, uid: PodUid): string {
  return `${podDirectory(rootDir, uid)}/etc-hosts`
}

/** The UIDs with a pod directory, including those of pods that no longer exist. */
export async function listPodDirectories(rootDir: string): Promise<readonly PodUid[]> {
  const entries = (await ifThere(readdir(`${rootDir}/pods`, { withFileTypes: true }))) ?? []
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}

/**
 * Does work that a volume needs once in a pod's life: containers may change owners and modes afterwards, and a restart
 * must not undo that. If podd is killed on the way, the next one repeats it.
 */
export async function onceForPod(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
  act: () => Promise<void>,
): Promise<void> {
  const mark = markPath(rootDir, uid, volume)
  if (await isThere(mark)) return
  await act()
  await mkdir(dirname(mark), { recursive: true, mode: 0o750 })
  await writeFile(mark, '', { mode: 0o600 })
}

/** Removes the mark, so that the work is repeated: its volume is gone. */
export async function forgetReady(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
): Promise<void> {
  await rm(markPath(rootDir, uid, volume), { force: true })
}

/** Whether the work was done. */
export function isReady(
  { rootDir, uid }: { readonly rootDir: string; readonly uid: PodUid },
  volume: string,
): Promise<boolean> {
  return isThere(markPath(rootDir, uid, volume))
}

function markPath(rootDir: string, uid: PodUid, volume: string): string {
  return `${podDirectory(rootDir, uid)}/ready/${volume}`
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    // Without a readable mark the volume is prepared again.
    return false
  }
}

/**
 * Writes a pod's hosts file and returns its path. It is written in place, never replaced, because containers have this
 * file mounted.
 */
export async function writeEtcHosts(rootDir: string, uid: PodUid, content: string): Promise<string> {
  const path = etcHostsPath(rootDir, uid)
  const before = await readIfExists(path)
  if (before === undefined)
    await writeInto(podDirectory(rootDir, uid), 0o750, () => writeFile(path, content, { mode: 0o644 }), true)
  else if (before !== content) await rewrite(path, content)
  return path
}

/** The most that is read of a hosts file: containers may write into it. */
const maxHostsBytes = 4 * 1024 * 1024

/** The text of a pod's hosts file; undefined where it has none, or none that podd wrote. */
export async function readEtcHosts(rootDir: string, uid: PodUid): Promise<string | undefined> {
  try {
    const text = await readAtOnce(etcHostsPath(rootDir, uid), maxHostsBytes)
    return text.byteLength > maxHostsBytes ? undefined : text.toString('utf8')
  } catch {
    // A container starts without its names then, and they come once the sources have told them.
    return undefined
  }
}

/** Updates the hosts file of a pod that has one, in place; returns whether it has one. Throws the system's error. */
export async function refreshEtcHosts(rootDir: string, uid: PodUid, content: string): Promise<boolean> {
  try {
    await rewrite(etcHostsPath(rootDir, uid), content)
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}

async function rewrite(path: string, content: string): Promise<void> {
  await using file = await open(path, 'r+')
  await overwriteFile(file, content)
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
  // `rm` of Node's looks for the file twice before.
  for (const path of [writtenPath(rootDir, uid), resolvConfPath(rootDir, uid)]) await ifThere(unlink(path))
}

/** The most that is read of a resolver's file: containers may write into it. */
const maxResolvConfBytes = 256 * 1024

/**
 * Updates the file of a pod that has one, unless a container has changed it; returns whether it has one. The file is
 * never empty in between.
 */
export async function refreshResolvConf(rootDir: string, uid: PodUid, content: string): Promise<boolean> {
  try {
    const bytes = await readAtOnce(resolvConfPath(rootDir, uid), maxResolvConfBytes)
    // A container has written it: podd writes none of that size.
    if (bytes.byteLength > maxResolvConfBytes) return true
    const shown = bytes.toString('utf8')
    const path = writtenPath(rootDir, uid)
    const written = await readIfExists(path)
    if (shown === content && written === content) return true
    // An empty file was left by a power cut.
    const isKnown = written !== undefined && written !== '' && shown !== ''
    if (isKnown && shown !== written && shown !== content) return true
    await using file = await open(resolvConfPath(rootDir, uid), 'r+')
    await ifThere(unlink(path))
    await overwriteFile(file, content)
    await writeFile(path, content, { mode: 0o640 })
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}

/**
 * Overwrites a file that containers have mounted, in place. It is never empty in between, and needs no additional room
 * where the text is not longer: on a full disk it has the old text or the new one. Throws the system's error.
 */
async function overwriteFile(file: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at, bytes.length - at, at)).bytesWritten
  await file.truncate(bytes.length)
}

/**
 * The longest termination message that Kubernetes keeps (`pkg/kubelet/container`, MaxContainerTerminationMessageLength,
 * 1.36).
 */
const maxMessageBytes = 4096

/** The container and attempt of a message. */
export interface TerminationLog {
  readonly rootDir: string
  readonly uid: PodUid
  readonly container: string
  readonly restartCount: number
}

/** Creates an empty file that any user of the container may write to, and returns its path. */
export async function prepareTerminationLog(log: TerminationLog): Promise<string> {
  const path = pathOf(log)
  await mkdir(dirname(path), { recursive: true, mode: 0o750 })
  await writeFile(path, '', { mode: 0o666 })
  await chmod(path, 0o666)
  return path
}

/** The message as the container left it, its last 4096 bytes; empty where it left none. */
export async function readTerminationLog(log: TerminationLog): Promise<string> {
  await using file = await ifThere(open(pathOf(log)))
  if (file === undefined) return ''
  const { size } = await file.stat()
  const length = Math.min(size, maxMessageBytes)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
  return buffer.toString('utf8', 0, bytesRead)
}

/** Removes the file of a container that is gone, if it exists. */
export async function removeTerminationLog(log: TerminationLog): Promise<void> {
  await rm(pathOf(log), { force: true })
}

function pathOf({ rootDir, uid, container, restartCount }: TerminationLog): string {
  return `${podDirectory(rootDir, uid)}/containers/${container}/${restartCount}`
}

/** The number of user ids of a pod, and the host's own ids below the first range (the kubelet's defaults, 1.36). */
const rangeLength = 65_536
/** The kernel's highest id. */
const lastRange = 65_534

/**
 * The pod's range of user ids: the one recorded in its directory, or else the lowest free one. It is removed with the
 * directory. Synchronous, so that no two pods get the same one.
 * @throws PoddError USER_RANGE
 */
export function claimUserRange(rootDir: string, uid: PodUid): UserRange {
  const own = readRange(rootDir, uid)
  if (own !== undefined) return { firstId: own * rangeLength, length: rangeLength }
  const taken = new Set(podsIn(rootDir).map((other) => readRange(rootDir, other)))
  let index = 1
  while (taken.has(index)) index += 1
  if (index > lastRange) throw new PoddError('USER_RANGE', 'every range of user ids is in use by a pod')
  const directory = podDirectory(rootDir, uid)
  mkdirSync(directory, { recursive: true, mode: 0o750 })
  writeFileAtomicSync(`${directory}/user-range`, `${index}\n`)
  return { firstId: index * rangeLength, length: rangeLength }
}

function podsIn(rootDir: string): readonly PodUid[] {
  const directory = `${rootDir}/pods`
  return existsSync(directory) ? readdirSync(directory) : []
}

/** @throws PoddError USER_RANGE where the file can't be read: another range would not match running containers */
function readRange(rootDir: string, uid: PodUid): number | undefined {
  try {
    const text = readFileSync(`${podDirectory(rootDir, uid)}/user-range`, 'utf8')
    if (/^[1-9]\d{0,4}\n$/.test(text)) return Number(text)
    throw new PoddError('USER_RANGE', `cannot read the range of user ids of pod ${uid}`)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
