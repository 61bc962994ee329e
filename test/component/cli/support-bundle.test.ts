import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PoddConfig } from '../../../src/config/options.ts'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { ApiRig } from '../../support/api-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import { eventObject } from '../../support/pod-objects.ts'

const word = 'hunter2-word'
const encoded = Buffer.from(word).toString('base64')
const secret = {
  apiVersion: 'v1' as const,
  kind: 'Secret' as const,
  metadata: {
    name: 'word',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  data: { word: encoded },
}

let rig: ApiRig
let rootDir: string
let runDir: string
let doctored: PoddConfig[]
beforeEach(async () => {
  rig = await ApiRig.start()
  rootDir = join(rig.directory, 'root')
  runDir = rig.directory
  doctored = []
  const places = { podLogsDir: '/data/logs', containerLogsDir: '/data/links', cgroupDriver: 'auto' } as const
  rig.status = {
    ...rig.status,
    places: { rootDir, runDir, containerRuntimeEndpoint: 'embedded', ...places },
  }
  state('records/web.json', { version: 1, namespace: 'default', name: 'web-on-record' })
  plant(
    containerdPlaces(rootDir, runDir).logPath,
    `mount of ${word} failed; ${encoded}\nthe end of the log\n`,
  )
  rig.events.put(eventObject('told', { type: 'Warning', message: `the command said ${word}: event` }))
})
afterEach(() => rig[Symbol.asyncDispose]())

function plant(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function state(path: string, content: object): void {
  plant(join(rootDir, path), JSON.stringify(content))
}

interface Packed extends CliOutcome {
  readonly bundle: string
}

async function pack(...flags: readonly string[]): Promise<Packed> {
  const path = join(rig.directory, 'bundle.tar.gz')
  const doctor = async (config: PoddConfig): Promise<[]> => {
    doctored.push(config)
    return []
  }
  const outcome = await callCli(['support-bundle', path, ...flags], { daemon: { doctor } })
  const bytes = outcome.exitCode === 0 ? gunzipSync(await readFile(path)) : Buffer.alloc(0)
  return { ...outcome, bundle: bytes.toString('utf8') }
}

const ofDirectories = (): readonly string[] => ['--root-dir', rootDir, '--run-dir', runDir]

/** What is wrong with a bundle that is to have everything but values. */
function faultsOfWhole({ exitCode, stderr, bundle }: Packed): readonly string[] {
  const parts = ['web-on-record', 'mount of <redacted> failed; <redacted>', 'the end of the log']
  return [
    ...(exitCode === 0 && stderr === '' ? [] : [`exit code ${exitCode}: ${stderr}`]),
    ...faultsOf(bundle, parts, [word, encoded]),
  ]
}

/** What is wrong with a bundle that is to lack what may hold values, and to say why. */
function faultsOfReduced({ exitCode, stderr, bundle }: Packed, why: string): readonly string[] {
  const lacking = [word, encoded, 'web-on-record', 'the end of the log', ': event']
  return [
    ...(exitCode === 0 && stderr.includes(why) ? [] : [`exit code ${exitCode}: ${stderr}`]),
    ...faultsOf(bundle, ['secrets-unknown.txt', 'doctor.json', 'host/meminfo', why], lacking),
  ]
}

function faultsOf(bundle: string, having: readonly string[], lacking: readonly string[]): readonly string[] {
  return [
    ...having.filter((part) => !bundle.includes(part)).map((part) => `lacks ${part}`),
    ...lacking.filter((part) => bundle.includes(part)).map((part) => `has ${part}`),
  ]
}

describe('a support bundle of a podd that answers', () => {
  it('is of its places, though only its socket is given, without the values of Secrets that are in no file', async () => {
    rig.secrets.put(secret)
    const packed = await pack('--socket', rig.socketPath)
    expect(faultsOfWhole(packed)).toEqual([])
    expect(packed.bundle).toContain('the command said <redacted>: event')
    expect(doctored).toMatchObject([{ rootDir, runDir, podLogsDir: '/data/logs' }])
    expect(packed.bundle).toContain(`"rootDir": "${rootDir}"`)
  })

  it('is of its places where flags name its run directory alone', async () => {
    rig.secrets.put(secret)
    expect(faultsOfWhole(await pack('--run-dir', runDir))).toEqual([])
    expect(doctored).toMatchObject([{ rootDir, runDir }])
  })

  it('lacks what may hold values where the Secrets are refused', async () => {
    const list = (): never => {
      throw new Error('no Secrets for you')
    }
    Object.assign(rig.secrets.reader, { list })
    expect(
      faultsOfReduced(
        await pack('--socket', rig.socketPath),
        'left out, as the values of Secrets are not known',
      ),
    ).toEqual([])
  })

  it('is not made where flags name the directories of another', async () => {
    const { exitCode, stderr } = await pack('--socket', rig.socketPath, '--root-dir', '/other')
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`podd at ${rig.socketPath} has rootDir "${rootDir}", not "/other"`)
  })

  it('needs its directories where it is too old to report them', async () => {
    const { places, ...older } = rig.status
    rig.status = older
    rig.secrets.put(secret)
    const { exitCode, stderr } = await pack('--socket', rig.socketPath)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('--root-dir DIR --run-dir DIR')
    expect(faultsOfWhole(await pack('--socket', rig.socketPath, ...ofDirectories()))).toEqual([])
    expect(places).toBeDefined()
  })
})

describe('a support bundle of a podd that is dead', () => {
  beforeEach(() => rig.close(0))

  it.each<[string, string, string]>([
    ['was written over the API', 'api/secret.default.word.json', JSON.stringify(secret)],
    [
      'a change of a large source brought',
      'sources/file.json',
      `{"version":1,"documents":[]}\n${JSON.stringify({ documents: [{ manifest: secret }] })}\n`,
    ],
    [
      'is in the copy of a large source',
      'sources/file.json',
      JSON.stringify({ documents: [{ manifest: secret }], filling: 'x'.repeat(2 ** 20) }),
    ],
    [
      'an earlier revision has',
      'revisions/0.json',
      JSON.stringify({ version: 1, contents: { a: { documents: [{ manifest: secret }] } } }),
    ],
  ])('has no value of a Secret that %s', async (_title, path, text) => {
    plant(join(rootDir, path), text)
    expect(faultsOfWhole(await pack(...ofDirectories()))).toEqual([])
  })

  it('has why a revision failed, and no line of its containers’ logs', async () => {
    const failure = { message: 'it has crashed', containers: [{ lines: ['a line of a log'] }] }
    state('api/secret.default.word.json', secret)
    state('revisions/0.json', { version: 1, revisions: [{ failure }] })
    const { bundle } = await pack(...ofDirectories())
    expect([bundle.includes('it has crashed'), bundle.includes('a line of a log')]).toEqual([true, false])
  })

  it('lacks what may hold values where no Secret is on disk', async () => {
    expect(
      faultsOfReduced(await pack(...ofDirectories(), '--persist-secrets=false'), 'persistSecrets is false'),
    ).toEqual([])
  })

  it('lacks what may hold values where a file of Secrets cannot be read', async () => {
    plant(join(rootDir, 'api/secret.default.word.json'), '{"kind": "Secr')
    const why = `cannot be read: ${join(rootDir, 'api/secret.default.word.json')}`
    expect(faultsOfReduced(await pack(...ofDirectories()), why)).toEqual([])
  })

  it('needs its directories where only its socket is given', async () => {
    const { exitCode, stderr } = await pack('--socket', rig.socketPath)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('--root-dir DIR --run-dir DIR')
    expect(doctored).toEqual([])
  })
})
