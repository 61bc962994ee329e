import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { shell } from './podd-program.ts'
import type { PoddRig } from './podd-rig.ts'

const program = '/usr/bin/docker-registry'

export const hasRegistry = existsSync(program)

/** Whom a private registry knows: names with passwords, and what htpasswd makes of them. */
const users = {
  ada: ['smash', '$2b$04$Zsf6psZeFxA10ELcgYO.Leuqm7kxEBhDWCvPTjJYZMa2QrNE23NVy'],
  grace: ['squash', '$2b$04$lIPA7ITLurI/mw8acqARh.k9N80gamJQsxtyRy4GzFDE.OK7Y6Rpa'],
} as const

export type RegistryUser = keyof typeof users

/** `ada:smash` */
export function userAndPassword(user: RegistryUser): string {
  return `${user}:${users[user][0]}`
}

export interface RegistryOptions {
  /** Unique in its rig. */
  readonly name: string
  /** Whom it lets pull and push; everybody where it says nobody. */
  readonly allowed?: readonly RegistryUser[]
  /** Files of a certificate and its key; plain HTTP without. */
  readonly tls?: { readonly certificate: string; readonly key: string }
  /** It serves what was pushed to that one. */
  readonly like?: string
}

/** A registry on loopback. */
export class TestRegistry {
  readonly address: string
  readonly #child: ChildProcess
  readonly #options: RegistryOptions

  private constructor(address: string, child: ChildProcess, options: RegistryOptions) {
    this.address = address
    this.#child = child
    this.#options = options
  }

  static async start(rig: PoddRig, options: RegistryOptions): Promise<TestRegistry> {
    const { name, allowed, tls } = options
    const directory = join(rig.directory, `registry-${options.like ?? name}`)
    mkdirSync(directory, { recursive: true })
    const address = `127.0.0.1:${await freePort()}`
    const htpasswd = join(rig.directory, `${name}.htpasswd`)
    writeFileSync(htpasswd, (allowed ?? []).map((user) => `${user}:${users[user][1]}\n`).join(''))
    const config = {
      version: 0.1,
      storage: { filesystem: { rootdirectory: directory } },
      http: { addr: address, ...(tls !== undefined && { tls }) },
      ...(allowed !== undefined && { auth: { htpasswd: { realm: 'tests', path: htpasswd } } }),
      log: { level: 'error' },
    }
    const configPath = join(rig.directory, `registry-${name}.yml`)
    writeFileSync(configPath, JSON.stringify(config))
    const child = spawn(program, ['serve', configPath], { stdio: 'ignore' })
    await rig.until(`registry ${name}`, () =>
      tls === undefined ? fetch(`http://${address}/v2/`).then(() => true) : answersTls(address),
    )
    return new TestRegistry(address, child, options)
  }

  /** Puts the rig's shell image there, and gives its name there. The host forgets it. */
  async push(rig: PoddRig, repository: string): Promise<string> {
    const target = `${this.address}/${repository}:1`
    const [user] = this.#options.allowed ?? []
    const access = user === undefined ? [] : ['--user', userAndPassword(user)]
    rig.ctr('images', 'tag', shell, target)
    rig.ctr('images', 'push', '--plain-http', ...access, target)
    rig.ctr('images', 'rm', target)
    // CRI hears of it a moment later.
    await rig.until('it gone', async () => !(await hasImage(rig, `${this.address}/${repository}`)))
    return target
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Whether podd has an image of this repository. */
export async function hasImage(rig: PoddRig, repository: string): Promise<boolean> {
  return (await rig.cliOk('images')).includes(`${repository} `)
}

function answersTls(address: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const call = request(`https://${address}/v2/`, { rejectUnauthorized: false }, (response) => {
      response.resume()
      resolve(true)
    })
    call.on('error', reject)
    call.end()
  })
}

/** The text of a docker config.json with one user for a registry; `password` instead of the right one. */
export function dockerConfigJson(location: string, user: RegistryUser, password?: string): string {
  const pair = password === undefined ? userAndPassword(user) : `${user}:${password}`
  return JSON.stringify({ auths: { [location]: { auth: Buffer.from(pair).toString('base64') } } })
}

/** A Secret for image pulls. */
export function pullSecret(name: string, config: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  }
}

/** A certificate authority, and a certificate of its for 127.0.0.1; gives their files. */
export function makeCertificates(directory: string): {
  readonly ca: string
  readonly certificate: string
  readonly key: string
} {
  const path = (name: string): string => join(directory, name)
  const openssl = (...args: readonly string[]): unknown =>
    execFileSync('openssl', [...args], { stdio: 'ignore', cwd: directory })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const days = ['-days', '30']
  openssl('req', '-x509', ...key, ...days, '-subj', '/CN=test CA', '-keyout', 'ca.key', '-out', 'ca.crt')
  openssl('req', ...key, '-subj', '/CN=registry', '-keyout', 'tls.key', '-out', 'tls.csr')
  writeFileSync(path('tls.ext'), 'subjectAltName=IP:127.0.0.1\n')
  const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'tls.ext']
  openssl('x509', '-req', '-in', 'tls.csr', ...signing, ...days, '-out', 'tls.crt')
  return { ca: path('ca.crt'), certificate: path('tls.crt'), key: path('tls.key') }
}
