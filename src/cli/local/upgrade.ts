/* How `podd upgrade` replaces the program that is installed on this host: what is taken, what is run, and how it is judged. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { PodListObject } from '../../api/resource.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { isSourceUrl } from '../../base/http.ts'
import { parseSigningKey, signatureSuffix, verifySignature } from '../../base/minisign.ts'
import type { SigningKey } from '../../base/minisign.ts'
import { commandOutput } from '../../host/run-command.ts'

import { holdInstanceLock } from '../../server/http/listen.ts'
import type { VerbContext } from '../arguments/verb.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import type { ApiClient } from '../client/client.ts'
import { readUrl, saveUrl } from './read-url.ts'

/** What an upgrade keeps on the disk: what it was given, and the package of the version before. */
const cacheDir = '/var/cache/podd'
/** Where a release is while it is verified and installed. */
export const releaseDir = join(cacheDir, 'new')
const sumsName = 'SHA256SUMS'

/** How podd came to this host. */
export interface Installation {
  readonly kind: 'package' | 'archive'
  /** Where its program is. */
  readonly root: string
}

/** @param root the directory above that of the program's code. Throws PoddError UPGRADE_REFUSED where it isn't installed. */
export function findInstallation(root: string): Installation {
  if (root === '/usr/lib/podd') return { kind: 'package', root }
  if (root === '/opt/podd') return { kind: 'archive', root }
  throw refused(
    `this podd is not an installed one: it runs from ${root}`,
    'run the podd that was installed, by its package or by install.sh',
  )
}

function refused(message: string, hint?: string, cause?: unknown): PoddError {
  return new PoddError('UPGRADE_REFUSED', message, { hint, cause })
}

/** The keys whose signature on a release counts: those given, or the one that came with the installed release. */
export async function readReleaseKeys(
  { root }: Installation,
  given: readonly string[],
): Promise<readonly SigningKey[]> {
  const own = join(root, 'release.pub')
  if (given.length === 0 && !existsSync(own))
    throw refused(
      'no key came with this podd by which a release could be verified',
      "name the release's public key: --key FILE.pub",
    )
  const texts = given.length === 0 ? [own] : given
  return Promise.all(
    texts.map(async (text) => {
      const key = parseSigningKey(text) ?? parseSigningKey(await readFile(text, 'utf8'))
      if (key !== undefined) return key
      throw refused(`${text} is no public key of minisign`)
    }),
  )
}

/**
 * Takes a release to where only root can change it, and verifies it there: its checksum stands in the SHA256SUMS beside it, which
 * one of the keys has signed. Returns its path. Throws PoddError UPGRADE_REFUSED, UNREADABLE.
 * @param directory where it is taken to; what is there is removed
 */
export async function takeRelease(
  from: string,
  keys: readonly SigningKey[],
  directory: string,
  context: VerbContext,
): Promise<string> {
  const name = basename(isSourceUrl(from) ? new URL(from).pathname : from)
  const beside = (other: string): string =>
    isSourceUrl(from) ? new URL(other, from).href : join(dirname(from), other)
  const read = async (place: string): Promise<Uint8Array> =>
    isSourceUrl(place) ? readUrl(place, context) : readFile(place)
  const [sums, signature] = await Promise.all([
    read(beside(sumsName)),
    read(beside(`${sumsName}${signatureSuffix}`)),
  ]).catch((error: unknown) => {
    const message = `${from} has no ${sumsName} with a signature beside it: ${errorMessage(error)}`
    throw refused(message, undefined, error)
  })
  const signed = verifySignature(sums, signature, keys)
  if ('message' in signed)
    throw refused(
      `the signature of ${beside(sumsName)} ${signed.message}`,
      'take the release from its origin again',
    )
  const expected = Buffer.from(sums)
    .toString('utf8')
    .split('\n')
    .map((line) => line.split('  '))
    .find(([, file]) => file === name)?.[0]
  if (expected === undefined) throw refused(`${beside(sumsName)} names no ${name}`)

  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const taken = join(directory, name)
  if (isSourceUrl(from)) await saveUrl(from, createWriteStream(taken, { mode: 0o600 }), context)
  else await copyFile(from, taken)
  const hash = createHash('sha256')
  await pipeline(createReadStream(taken), hash)
  if (hash.digest('hex') === expected) return taken
  await rm(directory, { recursive: true, force: true })
  throw refused(
    `${from} is not what ${sumsName} says: it is damaged, or was changed`,
    'take it from its origin again',
  )
}

/** The version that a release has by its name. Throws PoddError UPGRADE_REFUSED where it is of another kind or processor. */
export function versionOfRelease(path: string, { kind }: Installation, arch: string): string {
  const processor = { x64: 'amd64', arm64: 'arm64' }[arch] ?? arch
  const pattern =
    kind === 'package' ? /^podd_([^_]+)_([a-z0-9]+)\.deb$/u : /^podd_([^_]+)_linux_([a-z0-9]+)\.tar\.gz$/u
  const [, version, itsProcessor] = pattern.exec(basename(path)) ?? []
  if (version !== undefined && itsProcessor === processor) return version
  const wanted =
    kind === 'package' ? `podd_VERSION_${processor}.deb` : `podd_VERSION_linux_${processor}.tar.gz`
  throw refused(
    `${basename(path)} is no release for this podd`,
    `this one was installed as ${kind === 'package' ? 'a package' : 'an archive'}, and takes ${wanted}`,
  )
}

const previousPackage = join(cacheDir, 'previous.deb')
/** The version that took the place of the previous package. */
const replacingVersion = `${previousPackage}.replaced-by`

/**
 * Makes a package of the installed files again, with its own maintainer scripts: dpkg keeps none. $1: where. Settings
 * aren't among its files: dpkg would take the user's for those of the package, and replace them at the next upgrade. Those of
 * a package that no longer has them stay (`dpkg`, obsolete conffiles), and dpkg goes on listing them as its files.
 */
export const repack = `
work=$(mktemp -d /var/tmp/podd-repack.XXXXXX)
trap 'rm -rf "$work"' EXIT
dpkg -L podd | sed 's#^/##; s#^\\.*$#.#' | tar -C / --no-recursion --ignore-failed-read -cf - -T - | tar -C "$work" -xpf -
mkdir "$work/DEBIAN"
dpkg-query -s podd | awk '/^[^ ]/ { skip = /^(Status|Conffiles):/ } !skip' >"$work/DEBIAN/control"
dpkg-query -W -f '\${Conffiles}\\n' podd | while read -r settings _; do [ -z "$settings" ] || rm -f "$work$settings"; done
for name in postinst prerm postrm; do
  [ ! -e "/var/lib/dpkg/info/podd.$name" ] || cp -p "/var/lib/dpkg/info/podd.$name" "$work/DEBIAN/$name"
done
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work" "$1.new" >/dev/null
mv "$1.new" "$1"
`

const shell = async (script: string, ...args: readonly string[]): Promise<string> =>
  commandOutput('/bin/bash', ['-euo', 'pipefail', '-c', script, 'bash', ...args], {
    // dpkg must not be killed: a package that is half installed is worse than a slow one.
    timeoutMs: Infinity,
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      LC_ALL: 'C',
      DEBIAN_FRONTEND: 'noninteractive',
      NEEDRESTART_SUSPEND: '1',
    },
  })

const installPackage =
  'apt-get -qq -y --no-install-recommends --allow-downgrades --reinstall -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold install "$1"'
const installArchive = `
tar -C "$2" --no-same-owner -xzf "$1"
"$2"/podd-*/install.sh --no-hello
`

/** What install.sh left that was killed between its two renames had not yet anything else changed. */
const rollBackArchive = `
if [ -e "$1" ]; then "$1/install.sh" --rollback && rm -rf "$1.previous"; else mv "$1.previous" "$1"; fi
`

/** The version that an upgrade replaces, until it is known whether the new one works. */
const replacedPackage = join(cacheDir, 'replaced.deb')

/** Lets no other upgrade begin until the returned function is called. Throws PoddError UPGRADE_REFUSED. */
export async function lockUpgrades(): Promise<() => void> {
  await mkdir(cacheDir, { recursive: true, mode: 0o755 })
  try {
    return holdInstanceLock(cacheDir)
  } catch (error) {
    if (errorCode(error) !== 'ALREADY_RUNNING') throw error
    throw refused('another `podd upgrade` is running', undefined, error)
  }
}

/**
 * In the program of an archive while another one is to take its place: install.sh may put it back by itself, or fail after
 * the new one is in its place, and the two may have the same version.
 */
const replacedMark = '.replaced'

/** Keeps the installed version, to which `undoChange` goes back. Throws where it can't be kept; nothing is changed. */
export async function keepInstalled({ kind, root }: Installation): Promise<void> {
  if (kind === 'archive') return writeFile(join(root, replacedMark), '')
  await rm(replacedPackage, { force: true })
  await repackInstalled(replacedPackage)
}

async function repackInstalled(to: string): Promise<void> {
  await shell(repack, to).catch((error: unknown) => {
    const message = `the installed podd could not be kept, so nothing was changed: ${errorMessage(error)}`
    throw refused(message, '/var/tmp and /var/cache need room for podd twice', error)
  })
}

async function installedVersion(): Promise<string> {
  return (await shell("dpkg-query -W -f '${Version}' podd")).trim()
}

/** Installs a release, whose daemon takes over from the running one. `keepChange` or `undoChange` has to follow. */
export async function switchTo(release: string, { kind }: Installation): Promise<void> {
  if (kind === 'archive') await shell(installArchive, release, dirname(release))
  else await shell(installPackage, release)
}

/** The new version works: the one that it replaced is the version before. */
export async function keepChange({ kind, root }: Installation): Promise<void> {
  await rm(releaseDir, { recursive: true, force: true })
  if (kind === 'archive') return rm(join(`${root}.previous`, replacedMark), { force: true })
  await rm(replacingVersion, { force: true })
  await rename(replacedPackage, previousPackage)
  await writeFile(replacingVersion, `${await installedVersion()}\n`)
}

/** Installs the replaced version again, unless it is back; nothing is kept of the one that did not work. */
export async function undoChange({ kind, root }: Installation): Promise<void> {
  await rm(releaseDir, { recursive: true, force: true })
  if (kind === 'archive') await putBack(root)
  else await shell(`dpkg --configure -a || true\n${installPackage} && rm "$1"`, replacedPackage)
}

export async function putBack(root: string): Promise<void> {
  if (!existsSync(join(root, replacedMark))) await shell(rollBackArchive, root)
  await rm(join(root, replacedMark), { force: true })
}

/** Goes back to the version before, and keeps the present one in its place. */
export async function goBack({ kind, root }: Installation): Promise<void> {
  if (kind === 'archive') {
    await shell('exec "$1/install.sh" --rollback', root)
    return
  }
  if (!existsSync(previousPackage))
    throw refused('there is no version before: this podd was not installed by `podd upgrade`')
  const present = await installedVersion()
  await refuseOtherVersion(replacingVersion, present)
  await rm(replacedPackage, { force: true })
  await repackInstalled(replacedPackage)
  await shell(`dpkg --configure -a || true\n${installPackage}`, previousPackage)
  await keepChange({ kind, root })
}

/** Throws PoddError UPGRADE_REFUSED where the kept package was replaced by another version than the present one. */
export async function refuseOtherVersion(record: string, present: string): Promise<void> {
  if (!existsSync(record)) return
  const replacing = (await readFile(record, 'utf8')).trim()
  if (replacing === present) return
  throw refused(
    `the version that is kept is the one before podd ${replacing}, and podd ${present} was installed since`,
    'install the package of the version that you want: apt-get install ./podd_VERSION_ARCH.deb',
  )
}

/** Of each pod, by its uid, the containers that have to be the same after a change of podd, or that podd knows after it. */
export type RunningPods = ReadonlyMap<
  string,
  { readonly name: string; readonly containerIds: readonly string[] }
>

/** The containers that are ready: pods that have completed have none. */
export function runningPods(list: PodListObject): RunningPods {
  return containersOf(list, ({ ready, containerID }) => (ready ? [containerID] : []))
}

/** The containers that podd knows, ready or not, and those which ended before them. */
function knownPods(list: PodListObject): RunningPods {
  return containersOf(list, ({ containerID, lastState }) => [containerID, lastState.terminated?.containerID])
}

function containersOf(
  { items }: PodListObject,
  idsOf: (status: ContainerStatus) => readonly (string | undefined)[],
): RunningPods {
  return new Map(
    items.map(({ metadata, status }) => [
      metadata.uid,
      {
        name: `${metadata.namespace}/${metadata.name}`,
        containerIds: (status.containerStatuses ?? []).flatMap(idsOf).filter((id) => id !== undefined),
      },
    ]),
  )
}

/** Why podd after a change isn't as it was before; undefined where all is well. */
export function judgeChange(
  before: RunningPods,
  after: { readonly version: string; readonly isHealthy: boolean; readonly pods: RunningPods },
  version: string | undefined,
): string | undefined {
  if (version !== undefined && after.version !== version)
    return `podd ${after.version} answers, not ${version}`
  if (!after.isHealthy) return 'its runtime is not healthy'
  const lost = [...before].filter(
    ([uid, { containerIds }]) =>
      !containerIds.every((id) => after.pods.get(uid)?.containerIds.includes(id) === true),
  )
  const [first] = lost
  return first === undefined
    ? undefined
    : `${lost.length} of ${before.size} pods are not adopted, such as ${first[1].name}`
}

/** Asks until all is well, for a while; returns what is wrong at its end. */
export async function watchChange(
  before: RunningPods,
  version: string | undefined,
  {
    client,
    clock,
    signal,
    patienceMs,
  }: {
    readonly client: ApiClient
    readonly clock: Clock
    readonly signal: AbortSignal
    readonly patienceMs: number
  },
): Promise<string | undefined> {
  const giveUpAtMs = clock.monotonicMs() + patienceMs
  for (;;) {
    const wrong = await look(client, signal)
      .then((after) => judgeChange(before, after, version))
      .catch((error: unknown) => `podd does not answer: ${errorMessage(error)}`)
    signal.throwIfAborted()
    if (wrong === undefined || clock.monotonicMs() >= giveUpAtMs) return wrong
    await clock.sleep(1000, signal)
  }
}

async function look(client: ApiClient, signal: AbortSignal): Promise<Parameters<typeof judgeChange>[1]> {
  const { version, runtime } = await client.status(signal)
  const pods = knownPods(await client.getList<PodListObject>('/api/v1/pods', signal))
  return { version, isHealthy: runtime.healthy, pods }
}
