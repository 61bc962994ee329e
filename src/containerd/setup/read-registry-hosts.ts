import { access, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { readBounded } from '../../base/read-bounded.ts'
import type { RegistryHostsFacts } from '../../decide/doctor/host-facts.ts'
import { readHostsFile } from '../../decide/doctor/registry-hosts.ts'

const maxBytes = 1024 * 1024

/** Looks at the `hosts.toml` of each registry in the directory. Never throws. */
export async function readRegistryHosts(directory: string, clock: Clock): Promise<RegistryHostsFacts> {
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    const names = entries.filter((entry) => !entry.isFile()).map(({ name }) => name)
    const found = await Promise.all(names.map((name) => readRegistry(join(directory, name), clock)))
    return { directory, registries: names.length, problems: found.flat() }
  } catch (error) {
    const problems = errorCode(error) === 'ENOENT' ? [] : [`${directory}: ${errorMessage(error)}`]
    return { directory, registries: 0, problems }
  }
}

async function readRegistry(directory: string, clock: Clock): Promise<readonly string[]> {
  const path = join(directory, 'hosts.toml')
  try {
    const bytes = await readBounded(path, { maxBytes, clock })
    const { problems, files } = readHostsFile(bytes.subarray(0, maxBytes).toString('utf8'))
    const missing = await Promise.all(files.map((file) => whyMissing(resolve(directory, file))))
    return [...problems, ...missing.flat()].map((problem) => `${path}: ${problem}`)
  } catch (error) {
    // Without one, the certificates beside it count.
    return errorCode(error) === 'ENOENT' ? [] : [`${path}: ${errorMessage(error)}`]
  }
}

async function whyMissing(path: string): Promise<readonly string[]> {
  try {
    await access(path)
    return []
  } catch (error) {
    return [errorMessage(error)]
  }
}
