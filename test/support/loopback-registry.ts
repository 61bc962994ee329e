import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { shell } from './podd-program.ts'
import type { PoddRig } from './podd-rig.ts'

/** Debian's; what needs a registry is skipped without it. */
export const registryProgram = '/usr/bin/docker-registry'

/** A registry on loopback; the caller ends it. */
export async function startRegistry(
  podd: PoddRig,
): Promise<{ readonly child: ChildProcess; readonly address: string }> {
  const directory = join(podd.directory, 'registry')
  mkdirSync(directory)
  const address = `127.0.0.1:${await freePort()}`
  const config = {
    version: 0.1,
    storage: { filesystem: { rootdirectory: directory } },
    http: { addr: address },
    log: { level: 'error' },
  }
  const configPath = join(podd.directory, 'registry.yml')
  writeFileSync(configPath, JSON.stringify(config))
  const child = spawn(registryProgram, ['serve', configPath], { stdio: 'ignore' })
  await podd.until('the registry', async () => (await fetch(`http://${address}/v2/`)).ok)
  return { child, address }
}

/** Pushes the shell image under another name, with the tag 1, and removes that name here. */
export async function push(podd: PoddRig, address: string, name: string): Promise<void> {
  const target = `${address}/${name}`
  podd.ctr('images', 'tag', shell, target)
  podd.ctr('images', 'push', '--plain-http', target)
  podd.ctr('images', 'rm', target)
  // CRI hears of it a moment later.
  const repository = target.replace(/:1$/u, '')
  await podd.until('it gone', async () => {
    const { code, stdout } = await podd.ask('images')
    return code === 0 && !stdout.includes(`${repository} `)
  })
}
