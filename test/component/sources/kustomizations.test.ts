import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { objectOrEmpty } from '../../../src/base/json.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { findExecutable } from '../../../src/host/run-command.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import type { DirectorySourceOptions } from '../../../src/sources/directory/directory-files.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { lookAtKustomization } from '../../../src/sources/kustomization.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

let scratch = ''
let pods = ''
let removeScratch = async (): Promise<void> => undefined
const runs: SourceRun[] = []

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
  pods = join(scratch, 'pods')
  await mkdir(pods)
})

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop()))
  await removeScratch()
})

function start(options: Partial<DirectorySourceOptions> = {}): SourceRun {
  const run = new SourceRun(
    createDirectorySource({
      name: 'file',
      path: pods,
      clock: systemClock,
      logger: silentLogger,
      lastGood: createLastGoodStore(join(scratch, 'state')),
      decode: createDecodeSource(systemClock),
      ...options,
    }),
  )
  runs.push(run)
  return run
}

async function write(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(pods, name)), { recursive: true })
  await writeFile(join(pods, name), text)
}

const is =
  (...wanted: string[]) =>
  (summary: { pods: string[] }): boolean =>
    JSON.stringify(summary.pods) === JSON.stringify(wanted)

const buildMs = 20_000
const isRoot = process.geteuid?.() === 0
const programs = ['kubectl', 'unshare', 'setpriv', 'prlimit']
const lacks = programs.filter((name) => findExecutable(name) === undefined)
const why = isRoot
  ? lacks.length === 0
    ? ''
    : ` (skipped: ${lacks.join(', ')} missing)`
  : ' (skipped: needs root)'

describe.skipIf(why !== '')(`a kustomization in a manifest directory${why}`, () => {
  it('gives what it makes, in the place of the files that it refers to', async () => {
    await write('kustomization.yaml', 'resources: [web.yaml]\nnamePrefix: a-\n')
    await write('web.yaml', podYaml('web'))
    await write('own.yaml', podYaml('own'))
    const run = start()
    await run.until(is('a-web=busybox:1.36', 'own=busybox:1.36'), buildMs)
    expect(
      run.snapshots.flatMap(({ snapshot }) => snapshot.pods.map(({ pod }) => pod.metadata.name)),
    ).not.toContain('web')
    expect(run.last()?.problems).toEqual([])
    expect(run.last()?.pods[0]?.place).toEqual({ path: join(pods, 'kustomization.yaml') })
    await write('web.yaml', podYaml('web', 'busybox:2'))
    await run.until(is('a-web=busybox:2', 'own=busybox:1.36'), buildMs)
  })

  it('follows the files in directories below, which the source does not read by itself', async () => {
    await write('kustomization.yaml', 'resources: [base]\nimages: [{name: busybox, newTag: "3"}]\n')
    await write('base/kustomization.yaml', 'resources: [web.yaml]\n')
    await write('base/web.yaml', podYaml('web'))
    const run = start()
    await run.until(is('web=busybox:3'), buildMs)
    await write('base/web.yaml', podYaml('other'))
    await run.until(is('other=busybox:3'), buildMs)
    await write('base/more.yaml', podYaml('more'))
    await write('base/kustomization.yaml', 'resources: [web.yaml, more.yaml]\n')
    await run.until(is('more=busybox:3', 'other=busybox:3'), buildMs)
    expect(run.last()?.problems).toEqual([])
  })

  it('builds the outermost ones of a source that reads its subdirectories', async () => {
    await write('base/kustomization.yaml', 'resources: [web.yaml]\n')
    await write('base/web.yaml', podYaml('web'))
    await write('plant/kustomization.yaml', 'resources: [../base]\nnamePrefix: plant-\n')
    await write('office/kustomization.yaml', 'resources: [../base]\nnamePrefix: office-\n')
    const run = start({ recursive: true })
    await run.until(is('office-web=busybox:1.36', 'plant-web=busybox:1.36'), buildMs)
    expect(run.last()?.problems).toEqual([])
  })

  it('takes over what a file gave once it is good, keeps its last good form, and gives the file back', async () => {
    await write('web.yaml', podYaml('web'))
    const run = start()
    await run.until(is('web=busybox:1.36'))
    await write('kustomization.yaml', 'resources: [missing.yaml, web.yaml]\nnamePrefix: a-\n')
    await run.until(({ problems }) => problems.some((text) => text.includes('missing.yaml')), buildMs)
    expect(run.last()?.pods.map(({ pod }) => pod.metadata.name)).toEqual(['web'])
    await write('missing.yaml', podYaml('missing'))
    await run.until(is('a-missing=busybox:1.36', 'a-web=busybox:1.36'), buildMs)
    await write('kustomization.yaml', 'resources: [web.yaml, missing.yaml]\nnamePrefix: [\n')
    await run.until(({ problems }) => problems.length > 0, buildMs)
    await rm(join(pods, 'missing.yaml'))
    await write(
      'kustomization.yaml',
      'resources: [web.yaml]\nnamePrefix: b-\npatches: [{path: web.yaml}, {patch: "{"}]\n',
    )
    await run.until(({ problems }) => problems.some((text) => text.startsWith('is not built')), buildMs)
    expect(run.last()?.pods.map(({ pod }) => pod.metadata.name)).toEqual(['a-missing', 'a-web'])
    await rm(join(pods, 'kustomization.yaml'))
    await run.until(is('web=busybox:1.36'), buildMs)
  })

  it.each([
    ['names what podd does not build', 'resources: [web.yaml]\nhelmCharts: [{name: a}]\n'],
    ['is no YAML', 'resources: [web.yaml]\nnamePrefix: [\n'],
  ])('that was never built leaves the files beside it to themselves where it %s', async (_, text) => {
    await write('kustomization.yaml', text)
    await write('web.yaml', podYaml('web'))
    const run = start()
    await run.until(is('web=busybox:1.36'), buildMs)
    expect(run.last()?.problems).not.toEqual([])
    await write('web.yaml', podYaml('web', 'busybox:2'))
    await run.until(is('web=busybox:2'), buildMs)
  })

  it('makes ConfigMaps of files', async () => {
    await write('kustomization.yaml', 'configMapGenerator: [{name: conf, files: [site=conf.d/a.conf]}]\n')
    await write('conf.d/a.conf', 'port 1883\n')
    const run = start()
    await run.until(() => run.last()?.objects.length === 1, buildMs)
    expect(run.last()?.objects[0]?.manifest).toMatchObject({
      kind: 'ConfigMap',
      data: { site: 'port 1883\n' },
    })
  })

  it('is built by a user of its own, who sees no other process of that user', async () => {
    const programs = await mkdtemp('/run/podd-test-programs-')
    const path = process.env['PATH']
    try {
      const script = [
        '#!/bin/sh',
        'kill -9 -1 2>/dev/null && killed=some || killed=none',
        'echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: seen}, data: {uid: \\"$(id -u)\\", pid: \\"$$\\", killed: $killed}}"',
      ]
      await writeFile(join(programs, 'kubectl'), `${script.join('\n')}\n`, { mode: 0o755 })
      await chmod(programs, 0o755)
      process.env['PATH'] = `${programs}:${path ?? ''}`
      await write('kustomization.yaml', 'resources: [web.yaml]\n')
      await write('web.yaml', podYaml('web'))
      const run = start()
      await run.until(() => run.last()?.objects.length === 1, buildMs)
      const seen = objectOrEmpty(run.last()?.objects[0]?.manifest['data'])
      expect(seen).toMatchObject({ pid: '1', killed: 'none' })
      // The last one of the last range of user namespaces.
      expect(Number(seen['uid'])).toBeGreaterThan(65_534 * 65_536 + 65_535)
      expect(Number(seen['uid'])).toBeLessThan(2 ** 32 - 2)
    } finally {
      process.env['PATH'] = path
      await rm(programs, { recursive: true })
    }
  })

  it('is not built where manifests need signatures', async () => {
    await write('kustomization.yaml', 'resources: [web.yaml]\n')
    const verifier = { verify: async () => ({ message: 'has no signature' }), flush: async () => undefined }
    const run = start({ verifier: verifier as never })
    await run.until(
      ({ problems }) => problems.some((text) => text.includes('would need signatures')),
      buildMs,
    )
    expect(run.last()?.pods).toEqual([])
  })
})

describe('a kustomization', () => {
  it.each([
    ['files', (each: number) => `f${each}.yaml`, async () => undefined],
    ['directories', (each: number) => `d${each}`, (each: number) => mkdir(join(pods, `d${each}`))],
  ])('is followed no further than 1,000 references to missing %s', async (_what, nameOf, make) => {
    const all = Array.from({ length: 1500 }, (_, each) => each)
    for (const each of all) await make(each)
    await write('kustomization.yaml', JSON.stringify({ resources: all.map((each) => nameOf(each)) }))
    const { files } = await lookAtKustomization(pods, 'kustomization.yaml')
    expect(files.size).toBe(999)
  })

  it.each<[string, Readonly<Record<string, string>>, string]>([
    [
      'a base elsewhere',
      { 'kustomization.yaml': 'resources: [https://git.example/base?ref=main]\n' },
      'podd fetches nothing',
    ],
    [
      'a base of a forge',
      { 'kustomization.yaml': 'bases: ["github.com/owner/repo//base"]\n' },
      'podd fetches nothing',
    ],
    [
      'a patch elsewhere',
      { 'kustomization.yaml': 'patches: [{path: "https://x.example/p.yaml"}]\n' },
      'podd fetches nothing',
    ],
    [
      'a file outside',
      { 'kustomization.yaml': 'resources: [../other/web.yaml]\n' },
      'outside of the manifest directory',
    ],
    [
      'a path of the host',
      { 'kustomization.yaml': 'secretGenerator: [{name: a, files: [/etc/shadow]}]\n' },
      'outside of the manifest directory',
    ],
    ['what is missing', { 'kustomization.yaml': 'resources: [web.yaml]\n' }, 'which is missing'],
    [
      'a directory without one',
      { 'kustomization.yaml': 'resources: [base]\n', 'base/web.yaml': '' },
      'a directory without a kustomization.yaml',
    ],
    [
      'itself',
      { 'kustomization.yaml': 'resources: [base]\n', 'base/kustomization.yaml': 'resources: [../]\n' },
      'refers to itself',
    ],
    ['charts', { 'kustomization.yaml': 'helmCharts: [{name: a}]\n' }, 'podd renders no charts'],
    [
      'two documents',
      { 'kustomization.yaml': 'resources: []\n---\nresources: []\n' },
      'must have one document',
    ],
  ])('that refers to %s is not built, and says why', async (_what, files, message) => {
    for (const [name, text] of Object.entries(files)) await write(name, text)
    const { look } = await lookAtKustomization(pods, 'kustomization.yaml')
    expect(look).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining(message) })
  })

  it('is not built from a link that leads out of its directory, nor without end', async () => {
    await writeFile(join(scratch, 'secret'), 'hush')
    await symlink(join(scratch, 'secret'), join(pods, 'a.conf'))
    await write('kustomization.yaml', 'configMapGenerator: [{name: a, files: [a.conf]}]\n')
    const { look } = await lookAtKustomization(pods, 'kustomization.yaml')
    expect(look).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('leads out of') })
    for (let level = 0; level < 20; level += 1)
      for (const side of ['a', 'b'])
        await write(`${side}${level}/kustomization.yaml`, `resources: [../a${level + 1}, ../b${level + 1}]\n`)
    for (const side of ['a', 'b']) await write(`${side}20/kustomization.yaml`, 'resources: []\n')
    await write('kustomization.yaml', 'resources: [a0, b0]\n')
    const wide = await lookAtKustomization(pods, 'kustomization.yaml')
    expect([wide.look.kind, wide.files.size]).toEqual(['file', 42])
  })
})
