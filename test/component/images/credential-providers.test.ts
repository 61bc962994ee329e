import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { Clock } from '../../../src/base/clock.ts'
import type { Logger } from '../../../src/base/logger.ts'
import type { BoundedCommand } from '../../../src/host/run-command.ts'
import { runBounded } from '../../../src/host/run-command.ts'
import { CredentialProviders } from '../../../src/images/credential-providers.ts'
import { NodeDockerConfig } from '../../../src/images/node-docker-config.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let directory = ''
let logged: string[] = []

const note = (fields: object, message: string): void =>
  void logged.push(`${message} ${JSON.stringify(fields)}`)
const logger: Logger = { debug: note, info: note, warn: note, error: note }

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-credentials-'))
  logged = []
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

const apiVersion = 'credentialprovider.kubelet.k8s.io/v1'

function writeConfig(change: object = {}): void {
  const provider = {
    name: 'plugin',
    matchImages: ['*.registry.io', 'plain.io:5000/team'],
    defaultCacheDuration: '10m',
    apiVersion,
    ...change,
  }
  const head = { kind: 'CredentialProviderConfig', apiVersion: 'kubelet.config.k8s.io/v1' }
  writeFileSync(join(directory, 'config.yaml'), JSON.stringify({ ...head, providers: [provider] }))
}

function providersOf(clock: Clock, run?: (command: BoundedCommand) => Promise<string>): CredentialProviders {
  return new CredentialProviders({
    configPath: join(directory, 'config.yaml'),
    binDir: directory,
    env: { PATH: process.env['PATH'], FOO: 'of podd', BAR: 'of podd' },
    clock,
    logger,
    ...(run !== undefined && { run: async (command) => ({ stdout: await run(command), stderr: '' }) }),
  })
}

function answer(cacheKeyType: string, cacheDuration?: string): string {
  const auth = { 'a.registry.io': { username: 'user', password: 'password' } }
  return JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion,
    cacheKeyType,
    cacheDuration,
    auth,
  })
}

const image = 'a.registry.io/team/app'

describe('the answers of a plugin', () => {
  // pkg/credentialprovider/plugin/plugin_test.go (Test_ProvideWithCache …), 1.36.
  it.each([
    // id: provider-cache
    ['Image', undefined, ['a.registry.io/team/app', 'a.registry.io/other', 'b.registry.io/x'], 600],
    ['Registry', undefined, ['a.registry.io/team/app', 'b.registry.io/x'], 600],
    ['Global', undefined, ['a.registry.io/team/app'], 600],
    ['Registry', '5s', ['a.registry.io/team/app', 'b.registry.io/x'], 5],
  ])('serve by %s, for %s', async (cacheKeyType, cacheDuration, asked, seconds) => {
    const clock = new ManualClock()
    const images: string[] = []
    writeConfig()
    const providers = providersOf(clock, async ({ input }) => {
      images.push((JSON.parse(input) as { image: string }).image)
      return answer(cacheKeyType, cacheDuration)
    })
    const all = [image, image, 'a.registry.io/other', 'b.registry.io/x', image]
    for (const each of all) expect((await providers.provide(each)).configs).toHaveLength(1)
    expect(images).toEqual(asked)
    await clock.advance(seconds * 1000)
    await providers.provide(image)
    expect(images).toHaveLength(asked.length)
    await clock.advance(1)
    await providers.provide(image)
    expect(images).toEqual([...asked, image])
  })

  it('are not kept where they say so, nor where neither they nor the config say how long', async () => {
    let asked = 0
    writeConfig({ defaultCacheDuration: '0s' })
    const providers = providersOf(new ManualClock(), async () => {
      asked += 1
      return answer('Global', asked > 2 ? '0s' : undefined)
    })
    for (let count = 0; count < 4; count += 1) await providers.provide(image)
    expect(asked).toBe(4)
  })

  // id: provider-single-flight
  it('are those of one run where an image is asked for twice at a time', async () => {
    let asked = 0
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    writeConfig()
    const providers = providersOf(new ManualClock(), async () => {
      asked += 1
      await released
      return answer('Image', '0s')
    })
    await providers.refresh()
    const both = Promise.all([providers.provide(image), providers.provide(image)])
    // Both read the config first; these reads come after theirs.
    for (let count = 0; count < 50; count += 1) await providers.refresh()
    release()
    expect((await both).map(({ configs }) => configs.length)).toEqual([1, 1])
    expect(asked).toBe(1)
  })

  // id: provider-match
  it('are asked for images that match alone', async () => {
    const images: string[] = []
    writeConfig()
    const providers = providersOf(new ManualClock(), async ({ input }) => {
      images.push((JSON.parse(input) as { image: string }).image)
      return answer('Image')
    })
    const all = ['registry.io/app', 'plain.io:5000/team/app', 'plain.io:5000/other', 'x.y.registry.io/app']
    for (const each of all) await providers.provide(each)
    expect(images).toEqual(['plain.io:5000/team/app'])
  })
})

describe('the config of plugins', () => {
  it('is followed, and its last good form stays in use', async () => {
    writeConfig()
    const providers = providersOf(new ManualClock(), async () => answer('Global'))
    expect((await providers.provide(image)).configs).toHaveLength(1)
    writeFileSync(join(directory, 'config.yaml'), 'kind: Wrong')
    const after = await providers.provide(image)
    expect(after.configs).toHaveLength(1)
    expect(after.failures.join()).toMatch(/credential provider config is not used/u)
    await providers.provide(image)
    expect(
      logged.filter((line) => line.startsWith('cannot use the credential provider config')),
    ).toHaveLength(1)
    writeConfig({ matchImages: ['elsewhere.io'] })
    expect(await providers.provide(image)).toEqual({ configs: [], failures: [] })
  })

  it('that is not there is told, and nothing else fails', async () => {
    const { configs, failures } = await providersOf(new ManualClock()).provide(image)
    expect(configs).toEqual([])
    expect(failures.join()).toMatch(/ENOENT/u)
  })
})

describe('a plugin', () => {
  function writePlugin(script: string): void {
    const path = join(directory, 'plugin')
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
  }

  it("gets the request, its arguments and podd's environment with its own variables", async () => {
    writeConfig({ args: ['--one', 'two'], env: [{ name: 'FOO', value: 'of the config' }] })
    writePlugin(`cat >${directory}/request
printf '%s|' "$FOO" "$BAR" "$@" >${directory}/seen
cat <<'END'
${answer('Image')}
END`)
    const { configs, failures } = await providersOf(systemClock).provide(image)
    expect(failures).toEqual([])
    expect(configs[0]?.get('a.registry.io')).toMatchObject({ username: 'user', password: 'password' })
    expect(readFileSync(join(directory, 'seen'), 'utf8')).toBe('of the config|of podd|--one|two|')
    expect(JSON.parse(readFileSync(join(directory, 'request'), 'utf8'))).toMatchObject({ image })
  })

  it.each([
    ['fails', 'echo "token expired" >&2; exit 3', /exited with 3/u],
    ['writes no answer', 'echo password', /not a JSON object/u],
    ['writes without end', 'yes password', /wrote more than 1048576 bytes/u],
  ])('that %s is told, and what it wrote is in no event', async (_, script, expected) => {
    writeConfig()
    writePlugin(script)
    const { configs, failures } = await providersOf(systemClock).provide(image)
    expect(configs).toEqual([])
    expect(failures.join()).toMatch(expected)
    expect(failures.join()).not.toMatch(/password|token expired/u)
    expect(logged.join()).not.toContain('password')
  })

  it("that fails has its standard error in podd's log", async () => {
    writeConfig()
    writePlugin('echo "token expired" >&2; exit 3')
    await providersOf(systemClock).provide(image)
    expect(logged.join()).toContain('token expired')
  })

  it('that is missing is told, and the others are asked', async () => {
    writeConfig()
    const { failures } = await providersOf(systemClock).provide(image)
    expect(failures.join()).toMatch(/ENOENT/u)
  })

  it('that hangs is ended with all that it started', async () => {
    writePlugin(`(sleep 600; touch ${directory}/late) & echo $! >${directory}/child; sleep 600`)
    const clock = new ManualClock()
    const command = {
      path: join(directory, 'plugin'),
      args: [],
      env: process.env,
      input: '',
      timeoutMs: 60_000,
      maxOutputBytes: 1000,
    }
    const failure = runBounded(command, clock).catch((error: Error) => error.message)
    const childPath = join(directory, 'child')
    await expect
      .poll(() => existsSync(childPath) && readFileSync(childPath, 'utf8').trim(), { interval: 5 })
      .toMatch(/^\d+$/u)
    await clock.advance(60_000)
    expect(await failure).toMatch(/did not end within 60 s/u)
    const child = Number(readFileSync(childPath, 'utf8'))
    await expect.poll(() => isAlive(child), { interval: 5 }).toBe(false)
  })

  /** A zombie is not. */
  function isAlive(pid: number): boolean {
    try {
      return !/^State:\s+Z/mu.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return false
    }
  }
})

describe("the node's docker config", () => {
  const auth = Buffer.from('user:password').toString('base64')
  const read = () =>
    new NodeDockerConfig({ rootDir: directory, homeDir: undefined, clock: systemClock, logger })

  it('is the first file that can be read, as it is now', async () => {
    const node = read()
    writeFileSync(join(directory, '.dockercfg'), JSON.stringify({ 'old.io': { auth } }))
    expect([...(await node.read()).keys()]).toEqual(['old.io'])
    writeFileSync(join(directory, 'config.json'), JSON.stringify({ auths: { 'new.io': { auth } } }))
    expect([...(await node.read()).keys()]).toEqual(['new.io'])
    writeFileSync(join(directory, 'config.json'), '{')
    expect([...(await node.read()).keys()]).toEqual(['old.io'])
    await node.read()
    expect(logged).toHaveLength(1)
    expect(logged[0]).toContain('it is not a JSON object')
  })

  it('that is too large is left out', async () => {
    writeFileSync(join(directory, 'config.json'), ' '.repeat(1024 * 1024 + 1))
    await read().read()
    expect(logged.join()).toContain('larger than')
  })
})
