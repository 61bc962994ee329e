import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { listProcesses } from '../../../src/host/processes.ts'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { gatherEmbeddedFacts } from '../../../src/runtime/embedded-facts.ts'
import type { DaemonAnswer } from '../../../src/runtime/embedded-facts.ts'

let directory: string

const gather = (daemonSays: DaemonAnswer, isRoot = true) =>
  gatherEmbeddedFacts(
    {
      rootDir: join(directory, 'root'),
      runDir: join(directory, 'run'),
      podCidrs: ['10.99.0.0/24'],
      registryConfigDir: join(directory, 'certs.d'),
    },
    async () => daemonSays,
    isRoot,
    undefined,
    systemClock,
  )

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-facts-'))
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('tells why containerd does not run only while podd does', async () => {
  const { logPath, rootDir } = containerdPlaces(join(directory, 'root'), join(directory, 'run'))
  expect(await gather({ kind: 'none' })).toMatchObject({ pid: undefined, failure: undefined })
  const { failure } = await gather({ kind: 'runs', message: 'invalid database' })
  expect(failure).toEqual({ message: 'invalid database', logPath, dataPath: rootDir })
})

it('looks at the settings of registries', async () => {
  const certs = join(directory, 'certs.d')
  const registryHosts = async () => (await gather({ kind: 'none' })).registryHosts
  expect(await registryHosts()).toEqual({ directory: certs, registries: 0, problems: [] })
  for (const name of ['good.io', 'bare.io', 'bad.io']) mkdirSync(join(certs, name), { recursive: true })
  writeFileSync(join(certs, 'good.io/ca.crt'), '')
  const host = '[host."https://mirror.example"]\n'
  writeFileSync(join(certs, 'good.io/hosts.toml'), `${host}ca = "ca.crt"`)
  writeFileSync(join(certs, 'bad.io/hosts.toml'), `${host}ca = "gone.crt"`)
  const { registries, problems } = await registryHosts()
  expect(registries).toBe(3)
  expect(problems).toEqual([expect.stringMatching(/bad\.io\/hosts\.toml: .*ENOENT.*gone\.crt/u)])
})

it('does not judge what only root may ask', async () => {
  expect(await gather({ kind: 'unknown' }, false)).toMatchObject({
    pid: undefined,
    answers: undefined,
    failure: undefined,
  })
  const { configPath } = containerdPlaces(join(directory, 'root'), join(directory, 'run'))
  // A process that looks like a containerd, without a listener at its socket; it ends with its input.
  const child = spawn('sh', ['-c', 'read end', 'containerd', '--config', configPath])
  try {
    await expect.poll(() => listProcesses().some(({ argv }) => argv.includes(configPath))).toBe(true)
    expect(await gather({ kind: 'none' })).toMatchObject({ pid: child.pid, answers: false })
    expect(await gather({ kind: 'none' }, false)).toMatchObject({ pid: child.pid, answers: undefined })
  } finally {
    child.stdin.end()
    await once(child, 'exit')
  }
})
