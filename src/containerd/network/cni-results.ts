import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Where libcni remembers what each network gave to each sandbox; containerd can't be told another place. */
const defaultDirectory = '/var/lib/cni/results'

/** The sandboxes to which a network of podd's own gave something, as far as is remembered. */
export async function listCniResults(
  networkName: string,
  directory = defaultDirectory,
): Promise<readonly string[]> {
  const ours = ownResults(networkName)
  return (await list(directory)).flatMap((name) => ours.exec(name)?.[1] ?? [])
}

/** Forgets what a network of podd's own gave: for when its sandboxes are gone, all of them or those with these ids. */
export async function removeCniResults(
  networkName: string,
  {
    ids,
    directory = defaultDirectory,
  }: { readonly ids?: ReadonlySet<string>; readonly directory?: string } = {},
): Promise<void> {
  const ours = ownResults(networkName)
  for (const name of await list(directory)) {
    const sandboxId = ours.exec(name)?.[1]
    if (sandboxId === undefined || ids?.has(sandboxId) === false) continue
    await rm(join(directory, name), { force: true })
    await rm(join(directory, `cni-loopback-${sandboxId}-lo`), { force: true })
  }
}

/**
 * Removes results that a power cut left empty or torn: libcni doesn't fsync them, and with such a file
 * a sandbox can never be stopped again (`cached result: unexpected end of JSON input`). Without one it can.
 */
export async function removeTornCniResults(networkName: string, directory = defaultDirectory): Promise<void> {
  const ours = ownResults(networkName)
  for (const name of await list(directory)) {
    if (!ours.test(name) && !name.startsWith('cni-loopback-')) continue
    const path = join(directory, name)
    if (!isJson(await readFile(path, 'utf8').catch(() => '{}'))) await rm(path, { force: true })
  }
}

function ownResults(networkName: string): RegExp {
  return new RegExp(`^${networkName}-([0-9a-f]{64})-`)
}

async function list(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => [])
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // Cut short by a crash: that is what is asked.
    return false
  }
}
