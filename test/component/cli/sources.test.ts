import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SourceObject, UnitObject } from '../../../src/api/sources.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podd = (...words: readonly string[]): Promise<CliOutcome> =>
  callCli(words, { env: { PODD_SOCKET: rig.socketPath } })

function sourceObject(name: string, status: Partial<SourceObject['status']> = {}): SourceObject {
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Source',
    metadata: { name },
    spec: { type: 'Directory', place: '/etc/pods' },
    status: {
      state: 'Following',
      mode: 'watch',
      ready: true,
      pods: 2,
      objects: 1,
      errors: 0,
      warnings: 0,
      lastGood: false,
      ...status,
    },
  }
}

function unitObject(source: string, name: string, [active, offered]: readonly [number, number]): UnitObject {
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Unit',
    metadata: { name },
    spec: { source },
    status: {
      state: active === offered ? 'Healthy' : 'RolledBack',
      active,
      offered,
      message: active === offered ? undefined : `revision ${offered} failed`,
      progressing: [],
      revisions: [],
    },
  }
}

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()

describe('podd get sources', () => {
  it('has a line for each manifest that is not followed, and for each unit that is not at its newest', async () => {
    rig.sources = [sourceObject('file', { errors: 2 })]
    const long = `revision 2 failed: ${'failed to create the task: '.repeat(20)}no such file`
    const unit = unitObject('file', '/etc/pods/a.yaml', [1, 2])
    rig.units = [{ ...unit, status: { ...unit.status, message: long } }]
    rig.status = {
      ...rig.status,
      problems: [
        { severity: 'error', place: { path: '/etc/pods/a.yaml' }, message: long },
        { severity: 'error', place: { path: '/etc/pods/b.yaml', line: 3 }, message: 'unknown field' },
        { severity: 'error', place: { path: '/elsewhere/c.yaml' }, message: 'of another source' },
        {
          severity: 'error',
          place: { path: '/etc/pods2/d.yaml' },
          message: 'of one whose path begins alike',
        },
      ],
    }
    const { stderr } = await podd('get', 'sources')
    const lines = stderr.trimEnd().split('\n')
    expect(lines).toEqual([
      '/etc/pods/b.yaml:3: unknown field',
      expect.stringMatching(/^\/etc\/pods\/a.yaml: revision 2 failed:.* no such file$/u),
    ])
    expect(lines[1]?.length).toBeLessThanOrEqual(160)
  })

  it('shows what is followed, held and failing, and since when', async () => {
    rig.sources = [
      sourceObject('file', { hash: '0123456789abcdef', lastAnswerTime: ago(7201) }),
      sourceObject('http:fleet', {
        state: 'Failing',
        failingSince: ago(7201),
        errors: 1,
        errorsSince: ago(10_801),
        lastGood: true,
      }),
      sourceObject('file:edge', {
        state: 'Held',
        heldSince: ago(7201),
        pending: { added: ['Pod default/a'], changed: ['Pod default/b', 'Pod default/c'], removed: [] },
      }),
    ]
    rig.units = [
      unitObject('file', '/etc/pods/a.yaml', [1, 1]),
      unitObject('file', '/etc/pods/b.yaml', [2, 2]),
      unitObject('http:fleet', 'http:fleet', [3, 4]),
    ]
    const { stdout, stderr, exitCode } = await podd('get', 'sources')
    expect([exitCode, stderr]).toEqual([0, 'http:fleet: revision 4 failed\n'])
    expect(stdout.split('\n').map((line) => line.replaceAll(/ {2,}/gu, ' | '))).toEqual([
      'NAME | STATE | PODS | ERRORS | PENDING | ANSWERED | ACTIVE | OFFERED | PLACE',
      'file | Following | 2 | 0 | <none> | 120m | newest | newest | /etc/pods',
      'http:fleet | Failing (120m) | 2 | 1 (3h) | <none> | <none> | 3 | 4 | /etc/pods',
      'file:edge | Held (120m) | 2 | 0 | +1 ~2 | <none> | <none> | <none> | /etc/pods',
      '',
    ])
  })

  it('gives one by its name, and fails where there is none of it', async () => {
    rig.sources = [sourceObject('file:edge'), sourceObject('http:fleet')]
    const { stdout } = await podd('get', 'source', 'edge', '-o', 'json')
    expect(JSON.parse(stdout)).toEqual(rig.sources[0])
    expect(await podd('get', 'sources', 'other')).toMatchObject({
      exitCode: 1,
      stderr: 'podd: source "other" not found\n',
    })
  })
})

describe('podd hold and resume', () => {
  beforeEach(() => {
    rig.sources = [sourceObject('file'), sourceObject('http:fleet')]
  })

  it('hold all sources, or those that are named, and say what changed', async () => {
    expect((await podd('hold', 'fleet')).stdout).toBe('source http:fleet is held\n')
    expect((await podd('hold')).stdout).toBe('source file is held\n')
    expect([...rig.held]).toEqual(['http:fleet', 'file'])
    expect((await podd('hold', 'file')).stdout).toBe('nothing changed: held before\n')
    expect((await podd('resume')).stdout).toBe(
      'source file is followed again\nsource http:fleet is followed again\n',
    )
    expect((await podd('resume')).stdout).toBe('nothing changed: no such source was held\n')
  })

  it('change nothing where one of the names is unknown', async () => {
    expect(await podd('hold', 'file', 'flet')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'podd: Error from server (NotFound): there is no source "flet"\nThere are file, http:fleet.\n',
    })
    expect(rig.held.size).toBe(0)
  })

  it('keep podd delete from waiting for what will not end', async () => {
    const manifestDirectory = join(rig.directory, 'pods')
    const path = join(manifestDirectory, 'web.yaml')
    const manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'main', image: 'web:1' }] },
    }
    await mkdir(manifestDirectory)
    await writeFile(path, JSON.stringify(manifest))
    const pod = { key: 'default/web', path, manifest, isPastChange: false, isUpToDate: true }
    rig.applied = { ...rig.applied, manifestDirectory, pods: [pod] }
    const source = { source: 'file', path: manifestDirectory, ready: true, pods: 1, heldSince: ago(5) }
    rig.status = { ...rig.status, sources: [source] }
    expect(await podd('delete', 'pod', 'web')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `removed ${path}\npodd: the source file is held: nothing of ${manifestDirectory} is applied\nThe manifests are removed; \`podd resume file\` applies that.\n`,
    })
  })

  it('show in podd status', async () => {
    const heldSince = ago(7201)
    rig.status = { ...rig.status, sources: [{ source: 'file', path: '/p', ready: true, pods: 1, heldSince }] }
    expect((await podd('status')).stdout).toMatch(/^file +yes, held \(120m\) +1 +\/p$/mu)
  })
})
