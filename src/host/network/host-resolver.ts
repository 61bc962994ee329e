import { readFile } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import { parseResolvConf, selectHostResolver } from '../../translate/network.ts'
import type { ResolvConf } from '../../translate/network.ts'

export const systemdResolvPath = '/run/systemd/resolve/resolv.conf'

/** How the host resolves names now, in a form that pods can use. A host without a resolv.conf has no servers. */
export async function readHostResolver(
  etcPath = '/etc/resolv.conf',
  systemdPath = systemdResolvPath,
): Promise<ResolvConf> {
  const [etc, systemd] = await Promise.all([readIfThere(etcPath), readIfThere(systemdPath)])
  return selectHostResolver(
    parseResolvConf(etc ?? ''),
    systemd === undefined ? undefined : parseResolvConf(systemd),
  )
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
