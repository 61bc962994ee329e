import { copyFile, lstat, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AppliedObjectEntry, UnitObject } from '../../../src/api/sources.ts'
import { canonicalJson, jsonAt } from '../../../src/base/json.ts'
import { hashContent, hashDocument, writtenOf } from '../../../src/decide/updates/unit-content.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { digestText } from '../../../src/pod/values/hash.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli, startCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { makeSigner } from '../../support/minisign.ts'
import { podObject } from '../../support/pod-objects.ts'
import { startWritingRig } from '../../support/writing-rig.ts'
import type { WritingRig } from '../../support/writing-rig.ts'

let rig: ApiRig
/** The daemon's directory of manifests, and one of the user's. */
let manifests: string
let own: string
beforeEach(async () => {
  rig = await ApiRig.start()
  manifests = join(rig.directory, 'pods')
  own = join(rig.directory, 'own')
  await mkdir(manifests)
  await mkdir(own)
  rig.applied = { ...rig.applied, manifestDirectory: manifests }
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const manifest = (name: string, image = 'web:1', spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image }], ...spec },
})

const podd = (...argv: readonly string[]): Promise<CliOutcome> =>
  callCli(argv, { env: { PODD_SOCKET: rig.socketPath } })

/** Has the daemon run a pod from a file of its directory. */
function run(name: string, file: string, isPastChange = false, image = 'web:1'): void {
  const pod = {
    key: `default/${name}`,
    path: join(manifests, file),
    manifest: manifest(name, image),
    isPastChange,
    isUpToDate: true,
  }
  rig.applied = { ...rig.applied, pods: [...rig.applied.pods, pod] }
}

/** Puts a file into the daemon's directory. */
async function hold(file: string, ...documents: readonly object[]): Promise<void> {
  await writeFile(
    join(manifests, file),
    documents.map((document) => JSON.stringify(document)).join('\n---\n'),
  )
}

async function put(file: string, ...documents: readonly object[]): Promise<string> {
  const path = join(own, file)
  await writeFile(path, documents.map((document) => JSON.stringify(document)).join('\n---\n'))
  return path
}

describe('podd diff', () => {
  it('says what starts, changes, is replaced and stays, and exits with 1', async () => {
    for (const name of ['same', 'image', 'net']) run(name, 'all.yaml')
    const path = await put(
      'all.yaml',
      manifest('new'),
      manifest('same'),
      manifest('image', 'web:2'),
      manifest('net', 'web:1', { hostNetwork: true }),
    )
    const { exitCode, stdout, stderr } = await podd('diff', '-f', path)
    expect(stdout).toBe(
      [
        'create   pod default/new',
        'update   pod default/image: container main restarts: image web:1 -> web:2',
        'replace  pod default/net: spec.hostNetwork false -> true',
        '',
      ].join('\n'),
    )
    expect(stderr).toBe('1 to create, 1 to update, 1 to replace, 1 unchanged\n')
    expect(exitCode).toBe(1)
  })

  it('says which keys of ConfigMaps and Secrets change, with the values of ConfigMaps alone', async () => {
    const conf = (data: Record<string, string>) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'conf' },
      data,
    })
    const secret = (stringData: Record<string, string>) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'login' },
      stringData,
    })
    const meta = (name: string) => ({ name, namespace: 'default', uid: name })
    const given = { ...conf({ PORT: '80', GONE: 'x', text: 'a\nb\nc' }), metadata: meta('conf') }
    rig.configmaps.put({ ...given, kind: 'ConfigMap', apiVersion: 'v1' })
    const data = { password: Buffer.from('old').toString('base64') }
    rig.secrets.put({ apiVersion: 'v1', kind: 'Secret', metadata: meta('login'), data })
    const path = join(manifests, 'conf.yaml')
    rig.applied = {
      ...rig.applied,
      objects: [
        { key: 'ConfigMap/default/conf', path, hash: 'other' },
        { key: 'Secret/default/login', path, hash: 'other' },
      ],
    }
    const own = await put(
      'conf.yaml',
      conf({ PORT: '81', NEW: 'y', text: 'a\nB\nc' }),
      secret({ password: 'new', user: 'me' }),
    )
    expect((await podd('diff', '-f', own)).stdout).toBe(
      [
        'update   ConfigMap/default/conf: PORT 80 -> 81; GONE x -> unset; text line 2 b -> B; NEW unset -> y',
        'update   Secret/default/login: password changes; user is new',
        '',
      ].join('\n'),
    )
  })

  it('says what podd has and does not run yet, and why', async () => {
    run('web', 'web.yaml')
    const [pod] = rig.applied.pods
    if (pod === undefined) throw new Error('no pod')
    rig.applied = {
      ...rig.applied,
      pods: [{ ...pod, isUpToDate: false, problem: 'Back-off pulling image "web:1": not found' }],
    }
    const { exitCode, stdout, stderr } = await podd('diff', '-f', await put('web.yaml', manifest('web')))
    expect(stdout).toBe('waits    pod default/web: Back-off pulling image "web:1": not found\n')
    expect([exitCode, stderr]).toEqual([1, '1 not in effect yet\n'])
  })

  it('exits with 0 where nothing would change', async () => {
    run('same', 'same.yaml')
    const { exitCode, stdout } = await podd('diff', '-f', await put('same.yaml', manifest('same')))
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' })
  })

  it('says what ends: what stands in the directory now, and no longer would', async () => {
    run('old', 'old.yaml')
    await writeFile(join(manifests, 'new.yaml'), JSON.stringify(manifest('new')))
    expect((await podd('diff', '-f', manifests)).stdout).toBe(
      'create   pod default/new\nend      pod default/old\n',
    )
  })

  it('leaves what stands in subdirectories alone, unless it reads them', async () => {
    run('deep', 'sub/deep.yaml')
    run('gone', 'sub/gone.yaml')
    await mkdir(join(manifests, 'sub'))
    await hold('sub/deep.yaml', manifest('deep'))
    await hold('top.yaml', manifest('top'))
    expect((await podd('diff', '-f', manifests)).stdout).toBe('create   pod default/top\n')
    expect((await podd('diff', '-R', '-f', manifests)).stdout).toBe(
      'create   pod default/top\nend      pod default/gone\n',
    )
    expect((await podd('validate', '-R', manifests)).stderr).toContain('2 valid pods, 0 errors')
    expect((await podd('validate', manifests)).stderr).toContain('1 valid pod, 0 errors')
  })

  it('says what another revision counts for, where the file gives that already, and how to have it tried again', async () => {
    run('web', 'web.yaml')
    const written = join(manifests, 'web.yaml')
    const failed = manifest('web', 'web:2')
    const { documents } = await decodeDocuments(Buffer.from(JSON.stringify(failed)), {
      path: written,
      fieldValidation: 'Strict',
    })
    const hash = hashContent(documents.map((document) => hashDocument(document)))
    const { status, ...unit } = unitObject(written, 'RolledBack', 2)
    const message = 'revision 2 failed, and revision 1 counts again'
    /** What the daemon tells of the unit, and of one beside whose file has the same name. */
    const tell = (known: object): void => {
      const revisions = status.revisions.map((revision) => ({ ...revision, ...known }))
      const other = unitObject(join(manifests, 'sub', 'web.yaml'), 'RolledBack', 2)
      rig.units = [
        { ...other, status: { ...other.status, active: 1 } },
        { ...unit, status: { ...status, active: 1, message, revisions } },
      ]
    }
    tell({ hash })
    await hold('web.yaml', failed)
    const why = `refuse   pod default/web: ${message}; try it again: podd resume ${written}\n`
    expect(await podd('diff', '-f', manifests)).toMatchObject({ exitCode: 1, stdout: why })
    expect((await podd('diff', '-f', await put('web.yaml', failed))).stdout).toBe(why)
    expect(await podd('apply', '-f', await put('web.yaml', failed))).toMatchObject({
      exitCode: 1,
      stdout: why,
    })
    // A podd before understood less of it.
    tell({ hash: 'other', written: writtenOf(documents) })
    expect((await podd('diff', '-f', await put('web.yaml', failed))).stdout).toBe(why)
    expect((await podd('diff', '-f', await put('web.yaml', manifest('web', 'web:3')))).stdout).toBe(
      'update   pod default/web: container main restarts: image web:1 -> web:3\n',
    )
    expect((await podd('diff', '-f', await put('web.yaml', manifest('web')))).stdout).toBe('')
  })

  it('says that a content is not tried any more which has failed twice since the last healthy revision', async () => {
    run('web', 'web.yaml')
    const written = join(manifests, 'web.yaml')
    const failed = manifest('web', 'web:2')
    const { documents } = await decodeDocuments(Buffer.from(JSON.stringify(failed)), {
      path: written,
      fieldValidation: 'Strict',
    })
    const hash = hashContent(documents.map((document) => hashDocument(document)))
    const { status, ...unit } = unitObject(written, 'RolledBack', 5)
    const tell = (lastHealthy: number): void => {
      const revisions = [1, 2, 3, 4, 5].map((number) => ({
        number,
        hash: number % 2 === 0 ? hash : `${number}`,
        time: '2026-01-01T00:00:00Z',
        verdict: number === 1 ? ('Healthy' as const) : ('Failed' as const),
        pods: 1,
      }))
      rig.units = [{ ...unit, status: { ...status, active: lastHealthy, lastHealthy, revisions } }]
    }
    const path = await put('web.yaml', failed)
    tell(1)
    expect((await podd('diff', '-f', path)).stdout).toBe(
      `refuse   pod default/web: revision 4 failed with it, as one before did, and it is not tried any more; to have it tried, write it, then podd resume ${written}\n`,
    )
    // A resume goes by what is there.
    expect(await podd('apply', '-f', path)).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/^refuse /u),
    })
    expect(await readFile(written, 'utf8')).toContain('web:2')
    tell(3)
    expect((await podd('diff', '-f', path)).stdout).toMatch(/^update /u)
  })

  it('compares objects without showing what they hold', async () => {
    const path = await put('secret.yaml', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'key' },
      stringData: { password: 'hidden' },
    })
    rig.applied = { ...rig.applied, objects: [{ key: 'Secret/default/key', path, hash: 'another' }] }
    const { stdout } = await podd('diff', '-f', path)
    expect(stdout).toBe('update   Secret/default/key\n')
  })

  it('says what podd refuses, since another file, a URL or the API has the name', async () => {
    run('web', 'other.yaml')
    run('moved', 'all.yaml')
    rig.status = {
      ...rig.status,
      sources: [{ source: 'file', path: manifests, ready: true, pods: 4 }],
    }
    const [web, moved] = rig.applied.pods
    if (web === undefined || moved === undefined) throw new Error('not run')
    rig.applied = {
      ...rig.applied,
      pods: [
        web,
        moved,
        { ...web, key: 'default/fleet', path: 'https://fleet.example/pods.yaml', source: 'http' },
        { ...web, key: 'default/written', path: '/var/lib/podd/api/x.json', source: 'api' },
      ],
      objects: [{ key: 'ConfigMap/default/conf', path: join(manifests, 'other.yaml'), hash: 'another' }],
    }
    const documents = [
      ...['web', 'moved', 'fleet', 'written'].map((name) => manifest(name, 'web:1', { hostNetwork: true })),
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf' } },
    ]
    const refused = [
      `refuse   pod default/web: it stands in ${manifests}/other.yaml, and stays`,
      'replace  pod default/moved: spec.hostNetwork false -> true',
      'refuse   pod default/fleet: it stands in https://fleet.example/pods.yaml, and stays',
      'refuse   pod default/written: it was written over the API, and stays',
      `refuse   ConfigMap/default/conf: it stands in ${manifests}/other.yaml, and stays`,
      '',
    ].join('\n')
    expect(await podd('diff', '-f', await put('all.yaml', ...documents))).toEqual({
      exitCode: 1,
      stdout: refused,
      stderr: '1 to replace, 4 refused\n',
    })
    // As a file of the directory it is read from there, and so is one of the same name that it has.
    await hold('all.yaml', ...documents)
    expect((await podd('diff', '-f', join(manifests, 'all.yaml'))).stdout).toBe(refused)
    await hold('moved.yaml', manifest('moved'))
    expect((await podd('diff', '-f', join(manifests, 'moved.yaml'))).stdout).toBe(
      `refuse   pod default/moved: it stands in ${manifests}/all.yaml, and stays\n`,
    )
    expect(await podd('apply', '-f', await put('written.yaml', manifest('written')))).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('default/written was written over the API\nChange it with kubectl'),
    })
  })

  it('takes what moves between the files of a directory for the same', async () => {
    run('web', 'old.yaml')
    await hold('new.yaml', manifest('web', 'web:2'))
    expect((await podd('diff', '-f', manifests)).stdout).toBe(
      'update   pod default/web: container main restarts: image web:1 -> web:2\n',
    )
  })

  it('gives programs a report', async () => {
    const { stdout } = await podd('diff', '-o', 'json', '-f', await put('new.yaml', manifest('new')))
    expect(JSON.parse(stdout)).toEqual({
      apiVersion: 'podd.dev/v1',
      kind: 'ManifestDiff',
      changes: [{ object: 'pod default/new', verdict: 'create', details: [] }],
    })
  })

  it('exits with 2 after an error, for 1 means differences', async () => {
    const bad = await put('bad.yaml', { ...manifest('bad'), spec: {} })
    expect(await podd('diff', '-f', bad)).toMatchObject({ exitCode: 2, stdout: '' })
    expect(await podd('diff', '-f', join(own, 'none.yaml'))).toMatchObject({ exitCode: 2 })
    expect(await podd('diff', 'web.yaml')).toMatchObject({ exitCode: 2 })
  })

  it('adds the suffix of the daemon’s pod names', async () => {
    run('web-box', 'web.yaml')
    rig.applied = { ...rig.applied, podNameSuffix: '-box' }
    expect((await podd('diff', '-f', await put('web.yaml', manifest('web')))).exitCode).toBe(0)
  })
})

describe('podd apply', () => {
  it('writes a file under its own name, for root alone, and shows the change', async () => {
    const path = await put('web.yaml', manifest('web'))
    const { exitCode, stdout, stderr } = await podd('apply', '-f', path)
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: 'create   pod default/web\n',
      stderr: '1 to create\n',
    })
    expect(await readFile(join(manifests, 'web.yaml'), 'utf8')).toBe(await readFile(path, 'utf8'))
    expect((await stat(join(manifests, 'web.yaml'))).mode & 0o777).toBe(0o600)
  })

  it('names standard input after its first object', async () => {
    await callCli(['apply', '-f', '-'], {
      env: { PODD_SOCKET: rig.socketPath },
      stdin: JSON.stringify(manifest('web')),
    })
    expect(await readdir(manifests)).toEqual(['web.yaml'])
  })

  it('keeps the mode of a file that is there, and leaves one alone that has the same text', async () => {
    const target = join(manifests, 'web.yaml')
    await writeFile(target, JSON.stringify(manifest('web')), { mode: 0o640 })
    run('web', 'web.yaml')
    const before = await stat(target)
    await podd('apply', '-f', await put('web.yaml', manifest('web')))
    expect((await stat(target)).ino).toBe(before.ino)
    await podd('apply', '-f', await put('web.yaml', manifest('web', 'web:2')))
    expect((await stat(target)).mode & 0o777).toBe(0o640)
    expect(await readFile(target, 'utf8')).toContain('web:2')
  })

  it('writes nothing where one of the manifests has an error, or with --dry-run', async () => {
    await put('a.yaml', manifest('a'))
    await put('b.yaml', { ...manifest('b'), spec: {} })
    const { exitCode, stderr } = await podd('apply', '-f', own)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('b.yaml')
    expect(stderr).toContain('nothing was written')
    expect(await podd('apply', '--dry-run', '-f', join(own, 'a.yaml'))).toMatchObject({
      exitCode: 0,
      stdout: 'create   pod default/a\n',
    })
    expect(await readdir(manifests)).toEqual([])
  })

  it('names the file that has the pod already', async () => {
    run('web', 'all.yaml')
    const { exitCode, stderr } = await podd('apply', '-f', await put('web.yaml', manifest('web')))
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`default/web stands in ${join(manifests, 'all.yaml')}`)
    expect(await readdir(manifests)).toEqual([])
  })

  it('asks before it ends what else is in the file', async () => {
    run('db', 'web.yaml')
    await hold('web.yaml', manifest('db'))
    const path = await put('web.yaml', manifest('web'))
    const { exitCode, stderr } = await podd('apply', '-f', path)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('also has default/db, which would end')
    expect(await podd('apply', '--overwrite', '-f', path)).toMatchObject({
      exitCode: 0,
      stdout: 'create   pod default/web\nend      pod default/db\n',
    })
  })

  it('takes the pods and claims that a workload of the file makes for none that would end', async () => {
    const spec = { selector: { matchLabels: { app: 'web' } } }
    const template = { metadata: { labels: { app: 'web' } }, spec: manifest('web').spec }
    const web = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { ...spec, template },
    }
    await hold('web.yaml', web)
    const path = join(manifests, 'web.yaml')
    const pod = {
      key: 'default/web-0',
      path,
      manifest: manifest('web-0'),
      isPastChange: false,
      isUpToDate: true,
    }
    const owner = { kind: 'Deployment', name: 'web' }
    const objects = [
      { key: 'Deployment/default/web', path, hash: 'before' },
      { key: 'PersistentVolumeClaim/default/data-web-0', path, hash: 'claim', owner },
    ]
    rig.applied = { ...rig.applied, pods: [{ ...pod, owner }], objects }
    const update = 'update   Deployment/default/web\n'
    expect(await podd('diff', '-f', path)).toMatchObject({ exitCode: 1, stdout: update })
    const changed = await put('web.yaml', { ...web, spec: { ...web.spec, replicas: 2 } })
    expect(await podd('apply', '-f', changed)).toMatchObject({ exitCode: 0, stdout: update })
    expect(await podd('delete', '--wait=false', '-f', changed)).toMatchObject({ exitCode: 0 })
    expect(await readdir(manifests)).toEqual([])
  })

  it('takes a ConfigMap that kustomize generated for the next one of its name', async () => {
    const conf = (name: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: { a: name },
    })
    const [before, after] = [conf('web-h29d89cmmt'), conf('web-82b7dhgm6t')]
    const path = join(manifests, 'web.yaml')
    await hold('web.yaml', before)
    rig.applied = {
      ...rig.applied,
      objects: [{ key: 'ConfigMap/default/web-h29d89cmmt', path, hash: 'before' }],
    }
    expect(await podd('apply', '-f', await put('web.yaml', after))).toMatchObject({
      exitCode: 0,
      stdout: 'create   ConfigMap/default/web-82b7dhgm6t\nend      ConfigMap/default/web-h29d89cmmt\n',
    })
    await hold('web.yaml', before)
    expect((await podd('apply', '-f', await put('web.yaml', conf('db-82b7dhgm6t')))).stderr).toContain(
      'also has ConfigMap/default/web-h29d89cmmt, which would end',
    )
  })

  it('refuses another content of an immutable ConfigMap, as podd would, and writes nothing', async () => {
    const conf = (data: Record<string, string>, more: object = {}) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'conf' },
      data,
      ...more,
    })
    const metadata = { name: 'conf', namespace: 'default', uid: 'conf' }
    rig.configmaps.put({
      ...conf({ a: 'b' }),
      apiVersion: 'v1',
      kind: 'ConfigMap',
      immutable: true,
      metadata,
    })
    const written = join(manifests, 'conf.yaml')
    rig.applied = {
      ...rig.applied,
      objects: [{ key: 'ConfigMap/default/conf', path: written, hash: 'before' }],
    }
    const refusal = 'ConfigMap/default/conf: it is immutable, and stays: give the changed one another name'
    for (const changed of [conf({ a: 'c' }, { immutable: true }), conf({ a: 'b' })]) {
      const path = await put('conf.yaml', changed)
      expect((await podd('diff', '-f', path)).stdout).toContain(`refuse   ${refusal}`)
      const { exitCode, stderr } = await podd('apply', '-f', path)
      expect(stderr).toContain(refusal)
      expect(exitCode).toBe(1)
    }
    expect(await readdir(manifests)).toEqual([])
  })

  it('writes all manifests of a call as one file of a name, and ends what that no longer has where told to', async () => {
    await put('a.yaml', manifest('web'))
    await put('b.yaml', manifest('db'), manifest('cache'))
    expect(await podd('apply', '--name', 'shop', '-f', own)).toMatchObject({
      exitCode: 0,
      stdout: 'create   pod default/web\ncreate   pod default/db\ncreate   pod default/cache\n',
    })
    expect(await readdir(manifests)).toEqual(['shop.yaml'])
    expect((await podd('validate', join(manifests, 'shop.yaml'))).stderr).toContain('3 valid pods, 0 errors')
    for (const name of ['web', 'db', 'cache']) run(name, 'shop.yaml')
    const only = join(own, 'a.yaml')
    const refused = await podd('apply', '--name', 'shop', '-f', only)
    expect(refused.exitCode).toBe(1)
    expect(refused.stderr).toContain('also has default/db, default/cache, which would end')
    expect(await podd('apply', '--name', 'shop', '--prune', '-f', only)).toMatchObject({
      exitCode: 0,
      stdout: 'end      pod default/db\nend      pod default/cache\n',
    })
    expect(await readFile(join(manifests, 'shop.yaml'), 'utf8')).toBe(await readFile(only, 'utf8'))
  })

  it.each([
    [['--prune'], '--prune needs --name'],
    [['--name', '../shop'], 'RFC 1123 subdomain'],
    [['--name', 'kustomization'], 'a file of that name is built'],
  ])('takes no %j', async (flags, message) => {
    const { exitCode, stderr } = await podd('apply', ...flags, '-f', await put('web.yaml', manifest('web')))
    expect(exitCode).toBe(2)
    expect(stderr).toContain(message)
    expect(await readdir(manifests)).toEqual([])
  })

  it('loses nothing that the daemon has not taken: refused documents, and what can not be read', async () => {
    const path = await put('web.yaml', manifest('web'))
    await hold('web.yaml', { ...manifest('precious'), spec: { containers: [] } })
    expect((await podd('apply', '-f', path)).stderr).toContain('also has default/precious, which would end')
    await writeFile(join(manifests, 'web.yaml'), '{ broken')
    expect((await podd('apply', '-f', path)).stderr).toContain('its other objects are unknown')
    expect(await podd('apply', '--overwrite', '-f', path)).toMatchObject({ exitCode: 0 })
    // A manifest with an error is mended by its own next version.
    await hold('web.yaml', { ...manifest('web'), spec: { containers: [] } })
    expect(await podd('apply', '-f', path)).toMatchObject({ exitCode: 0 })
  })

  it('writes through a link, which stays one', async () => {
    await hold('real.txt', manifest('web'))
    await symlink('real.txt', join(manifests, 'web.yaml'))
    await podd('apply', '-f', await put('web.yaml', manifest('web', 'web:2')))
    expect((await lstat(join(manifests, 'web.yaml'))).isSymbolicLink()).toBe(true)
    expect(await readFile(join(manifests, 'real.txt'), 'utf8')).toContain('web:2')
  })

  it('does not take an error from before for one of the new file', async () => {
    await hold('web.yaml', { ...manifest('web'), spec: { containers: [] } })
    const problem = {
      severity: 'error',
      place: { path: join(manifests, 'web.yaml') },
      message: 'is refused',
    } as const
    rig.status = { ...rig.status, problems: [problem] }
    const path = await put('web.yaml', manifest('web'))
    using call = startCli(['apply', '--wait', '-f', path], { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => readFile(join(manifests, 'web.yaml'), 'utf8')).toContain('web:1')
    rig.status = { ...rig.status, problems: [] }
    run('web', 'web.yaml')
    rig.pods.put(
      podObject({ name: 'web', status: { phase: 'Running', conditions: [readyCondition('True')] } }),
    )
    expect(await call.outcome).toMatchObject({ exitCode: 0 })
  })

  it('says that there is no directory to write to', async () => {
    rig.applied = { pods: [], objects: [], podNameSuffix: '' }
    const { exitCode, stderr } = await podd('apply', '-f', await put('web.yaml', manifest('web')))
    expect(exitCode).toBe(1)
    expect(stderr).toContain('podd reads no directory of manifests')
  })

  it('waits until the pod is ready, and not for the version before', async () => {
    const path = await put('web.yaml', manifest('web', 'web:2'))
    run('web', 'web.yaml')
    const ready = podObject({
      name: 'web',
      status: { phase: 'Running', conditions: [readyCondition('True')] },
    })
    rig.pods.put(ready)
    using call = startCli(['apply', '--wait', '-f', path], { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => readdir(manifests)).toEqual(['web.yaml'])
    const late = new Promise((resolve) => setTimeout(() => resolve('late'), 50))
    expect(await Promise.race([call.outcome, late])).toBe('late')
    rig.applied = { ...rig.applied, pods: [] }
    run('web', 'web.yaml', false, 'web:2')
    expect(await call.outcome).toMatchObject({ exitCode: 0 })
  })

  describe('with a Job', () => {
    const template = { spec: { ...manifest('copy').spec, restartPolicy: 'Never' } }
    const copy = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'copy' },
      spec: { template, ttlSecondsAfterFinished: 0 },
    }

    async function has(job: object, end?: AppliedObjectEntry['end']): Promise<void> {
      const { documents } = await decodeDocuments(JSON.stringify(job), { path: 'copy.yaml' })
      const hash = digestText(canonicalJson(documents[0]?.manifest ?? null))
      const path = join(manifests, 'copy.yaml')
      rig.units = [unitObject(path, 'Healthy', 1)]
      rig.applied = { ...rig.applied, objects: [{ key: 'Job/default/copy', path, hash, end }] }
    }

    it.each([
      ['Complete', 'CompletionsReached', 0, ''],
      ['Failed', 'BackoffLimitExceeded', 1, 'podd: job copy has failed: BackoffLimitExceeded: all said\n'],
    ] as const)(
      'waits until it is %s, though it is not shown any more then',
      async (type, reason, exitCode, told) => {
        await has(copy)
        const clock = new ManualClock()
        using call = startCli(['apply', '--wait', '-f', await put('copy.yaml', copy)], {
          env: { PODD_SOCKET: rig.socketPath },
          clock,
        })
        await waitOn(clock, () => call.stderr().includes('Job/default/copy: not complete'))
        await has(copy, { type, reason, message: 'all said' })
        let isOver = false
        void call.outcome.then(() => (isOver = true))
        await waitOn(clock, () => isOver)
        const outcome = await call.outcome
        expect(outcome).toMatchObject({ exitCode })
        expect(outcome.stderr).toContain(told)
      },
    )

    it('does not fail by one that failed before and stays as it is', async () => {
      await has(copy, { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'all said' })
      const path = await put('copy.yaml', copy)
      expect(await podd('apply', '--wait', '-f', path)).toMatchObject({
        exitCode: 0,
        stderr: expect.stringContaining('job copy failed before this apply, and is not run again'),
      })
    })

    it('fails by one that failed before where nothing is changed', async () => {
      await has(copy, { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'all said' })
      const path = await put('copy.yaml', copy)
      await copyFile(path, join(manifests, 'copy.yaml'))
      expect(await podd('apply', '--wait', '-f', path)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('job copy has failed: BackoffLimitExceeded: all said'),
      })
    })
  })

  it('gives up when the time is over, or when the daemon refuses the manifest', async () => {
    const path = await put('web.yaml', manifest('web'))
    const late = await podd('apply', '--wait', '--timeout=0', '-f', path)
    expect(late).toMatchObject({ exitCode: 1 })
    expect(late.stderr).toContain('timed out: default/web: not applied yet')
    using call = startCli(['apply', '--wait', '-f', path], { env: { PODD_SOCKET: rig.socketPath } })
    await new Promise((resolve) => setTimeout(resolve, 100))
    rig.status = {
      ...rig.status,
      problems: [{ severity: 'error', place: { path: join(manifests, 'web.yaml') }, message: 'is refused' }],
    }
    const refused = await call.outcome
    expect(refused).toMatchObject({ exitCode: 1 })
    expect(refused.stderr).toContain('is refused')
  })

  it('gives up when what it wrote is rolled back, with the last lines of the containers’ logs', async () => {
    const written = join(manifests, 'web.yaml')
    using call = startCli(['apply', '--wait', '-f', await put('web.yaml', manifest('web'))], {
      env: { PODD_SOCKET: rig.socketPath },
    })
    await expect.poll(() => readdir(manifests)).toEqual(['web.yaml'])
    const time = '2026-01-01T00:00:00Z'
    const ended = { pod: 'default/web', container: 'main', exitCode: 127, reason: 'Error' }
    const revision = { number: 2, hash: 'b', time, verdict: 'Failed', pods: 1 } as const
    rig.units = [
      {
        apiVersion: 'podd.dev/v1',
        kind: 'Unit',
        metadata: { name: written },
        spec: { source: 'file' },
        status: {
          state: 'RolledBack',
          active: 1,
          offered: 2,
          progressing: [],
          revisions: [
            {
              ...revision,
              failure: {
                reason: 'CrashLoopBackOff',
                message: 'pod default/web has crashed 3 times',
                time,
                containers: [{ ...ended, lines: ['sh: httpdd: not found'] }],
              },
            },
          ],
        },
      },
    ]
    rig.status = {
      ...rig.status,
      problems: [{ severity: 'error', place: { path: written }, message: 'revision 2 failed' }],
    }
    const { exitCode, stderr } = await call.outcome
    expect(exitCode).toBe(1)
    expect(stderr).toContain(
      'revision 2 failed: pod default/web has crashed 3 times\n' +
        '  default/web, container main: exit code 127 (Error)\n' +
        '    | sh: httpdd: not found\n',
    )
  })

  it('shows first what changes, and waits until what it wrote is healthy', async () => {
    const written = join(manifests, 'web.yaml')
    rig.units = [unitObject(written, 'Healthy', 1)]
    const clock = new ManualClock()
    using call = startCli(['apply', '--wait', '-f', await put('web.yaml', manifest('web'))], {
      env: { PODD_SOCKET: rig.socketPath },
      clock,
    })
    await expect.poll(() => call.stdout()).toBe('create   pod default/web\n')
    run('web', 'web.yaml')
    rig.pods.put(
      podObject({ name: 'web', status: { phase: 'Running', conditions: [readyCondition('True')] } }),
    )
    rig.units = [unitObject(written, 'Progressing', 2)]
    // In a pipe, it tells of what it waits for each ten seconds.
    await waitOn(clock, () => call.stderr().includes('it is not known yet whether revision 2 is healthy'))
    rig.units = [unitObject(written, 'Healthy', 2)]
    let isOver = false
    void call.outcome.then(() => (isOver = true))
    await waitOn(clock, () => isOver)
    expect(await call.outcome).toMatchObject({ exitCode: 0, stdout: 'create   pod default/web\n' })
  })

  it('gives up as soon as what it wrote has failed, also where nothing is gone back to', async () => {
    const written = join(manifests, 'web.yaml')
    using call = startCli(['apply', '--wait', '-f', await put('web.yaml', manifest('web'))], {
      env: { PODD_SOCKET: rig.socketPath },
    })
    await expect.poll(() => readdir(manifests)).toEqual(['web.yaml'])
    rig.units = [unitObject(written, 'Failed', 1)]
    const { exitCode, stderr } = await call.outcome
    expect(exitCode).toBe(1)
    expect(stderr.split('has crashed 3 times')).toHaveLength(2)
    expect(stderr).toContain('    | sh: httpdd: not found\n')
    expect(stderr).toContain(`podd: ${written}: pod default/web has crashed 3 times\n`)
  })
})

describe('what may not run here now', () => {
  const big = (name: string) =>
    manifest(name, 'web:1', {
      containers: [{ name: 'main', image: 'web:1', resources: { requests: { memory: '900Ti' } } }],
    })

  it.each([['apply'], ['diff']])('is said by podd %s with what changes', async (verb) => {
    const configPath = join(rig.directory, 'config.yaml')
    await writeFile(
      configPath,
      JSON.stringify({
        apiVersion: 'podd.dev/v1',
        kind: 'PoddConfiguration',
        runDir: rig.directory,
        staticPodPath: manifests,
      }),
    )
    const path = await put('big.yaml', big('big'), manifest('web'))
    const { stdout } = await callCli([verb, '-f', path], {
      env: { PODD_SOCKET: rig.socketPath },
      usual: { configPath, runDir: rig.directory },
    })
    expect(stdout).toMatch(
      /^create {3}pod default\/big: it will wait: Blocked: Node didn't have enough resource: memory, .*\ncreate {3}pod default\/web\n$/u,
    )
  })

  it('has podd apply --wait give up after some seconds, with the reason', async () => {
    const { reason, message, afterMs } = {
      reason: 'Blocked',
      message: 'Insufficient memory',
      afterMs: 10_000,
    }
    rig.pods.put(podObject({ name: 'web', status: { phase: 'Pending', reason, message, conditions: [] } }))
    run('web', 'web.yaml')
    await hold('web.yaml', manifest('web'))
    const clock = new ManualClock()
    using call = startCli(['apply', '--wait', '-f', await put('web.yaml', manifest('web'))], {
      env: { PODD_SOCKET: rig.socketPath },
      clock,
    })
    let isOver = false
    void call.outcome.then(() => (isOver = true))
    await waitOn(clock, () => isOver)
    const { exitCode, stderr } = await call.outcome
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`podd: pod default/web does not start: ${reason}: ${message}\n`)
    expect(clock.monotonicMs()).toBe(afterMs)
  })
})

/** Moves the time of a command on while it waits, and never while it is answered, until this holds. */
async function waitOn(clock: ManualClock, isDone: () => boolean): Promise<void> {
  const lookMs = 200
  await expect
    .poll(
      async () => {
        if (!isDone() && clock.nextTimerMs === lookMs) await clock.advance(lookMs)
        return isDone()
      },
      { interval: 1 },
    )
    .toBe(true)
}

function unitObject(path: string, state: UnitObject['status']['state'], number: number): UnitObject {
  const time = '2026-01-01T00:00:00Z'
  const failure = {
    reason: 'CrashLoopBackOff',
    message: 'pod default/web has crashed 3 times',
    time,
    containers: [{ pod: 'default/web', container: 'main', exitCode: 127, lines: ['sh: httpdd: not found'] }],
  }
  const verdict = state === 'Healthy' || state === 'Failed' ? state : 'Progressing'
  const revision = { number, hash: 'b', time, verdict, pods: 1 } as const
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Unit',
    metadata: { name: path },
    spec: { source: 'file' },
    status: {
      state,
      active: number,
      offered: number,
      progressing: [],
      revisions: [{ ...revision, ...(state === 'Failed' && { failure }) }],
    },
  }
}

const readyCondition = (status: 'True' | 'False') => ({
  type: 'Ready' as const,
  status,
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

describe('podd delete pod', () => {
  it('removes the file of the pod, and says that it is gone', async () => {
    await hold('web.yaml', manifest('web'))
    run('web', 'web.yaml')
    expect(await podd('delete', 'pod', 'web')).toMatchObject({ exitCode: 0, stdout: 'pod "web" deleted\n' })
    expect(await readdir(manifests)).toEqual([])
  })

  it('waits until the pod is gone', async () => {
    await hold('web.yaml', manifest('web'))
    run('web', 'web.yaml')
    rig.pods.put(podObject({ name: 'web' }))
    using call = startCli(['delete', 'pod/web'], { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => readdir(manifests)).toEqual([])
    expect(call.stdout()).toBe('')
    await expect.poll(() => rig.pods.watchers).toBe(1)
    rig.pods.remove('web')
    expect(await call.outcome).toMatchObject({ exitCode: 0, stdout: 'pod "web" deleted\n' })
  })

  it('names a file that has other objects too, and leaves it', async () => {
    await hold('all.yaml', manifest('web'), manifest('db'))
    run('web', 'all.yaml')
    run('db', 'all.yaml')
    const { exitCode, stderr } = await podd('delete', 'pod', 'web')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('also has default/db')
    expect(await podd('delete', 'pod', 'web', 'db')).toMatchObject({
      exitCode: 0,
      stdout: 'pod "web" deleted\npod "db" deleted\n',
    })
  })

  it('says where a pod comes from that no file of the directory has', async () => {
    const pod = {
      key: 'default/web',
      path: 'http://host/pods',
      manifest: manifest('web'),
      isPastChange: false,
      isUpToDate: true,
    }
    rig.applied = { ...rig.applied, pods: [pod] }
    const { exitCode, stderr } = await podd('delete', 'pod', 'web')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('it comes from http://host/pods')
    expect(await podd('delete', 'pod', 'none')).toMatchObject({ exitCode: 1 })
  })

  it('removes no file of the same name that has something else', async () => {
    await hold('web.yaml', manifest('other'))
    run('other', 'web.yaml')
    const path = await put('web.yaml', manifest('web'))
    const { exitCode, stderr } = await podd('delete', '-f', path)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('also has default/other')
    expect(await podd('delete', '-f', join(manifests, 'web.yaml'))).toMatchObject({ exitCode: 0 })
    expect(await readdir(manifests)).toEqual([])
  })

  it('removes by file name with -f', async () => {
    await hold('web.yaml', manifest('web'))
    run('web', 'web.yaml')
    const path = await put('web.yaml', manifest('web'))
    expect(await podd('delete', '-f', path)).toMatchObject({ exitCode: 0, stdout: 'pod "web" deleted\n' })
    expect(await readdir(manifests)).toEqual([])
    expect(await readdir(own)).toEqual(['web.yaml'])
  })
})

describe('podd delete pod of one that was written over the API', () => {
  const pods = '/api/v1/namespaces/default/pods'
  const onto = (writing: WritingRig, ...words: readonly string[]): Promise<CliOutcome> =>
    callCli(['delete', 'pod', ...words], { env: { PODD_SOCKET: writing.socketPath } })

  it.each<[flags: readonly string[], graceSeconds: number]>([
    [['--wait=false'], 30],
    [['--grace-period=3', '--wait=false'], 3],
    // kubectl waits for the answer of the kubelet unless it is forced.
    [['--grace-period=0', '--wait=false'], 1],
    [['--grace-period', '-1', '--wait=false'], 30],
    [['--force'], 0],
  ])('deletes the object, as kubectl does: %j', async (flags, graceSeconds) => {
    await using writing = await startWritingRig()
    const { body } = await writing.ask('POST', pods, manifest('web'))
    writing.applied = {
      ...writing.applied,
      pods: [
        {
          key: 'default/web',
          path: '/var/lib/podd/api/web.json',
          source: 'api',
          manifest: manifest('web'),
          isPastChange: false,
          isUpToDate: true,
        },
      ],
    }
    expect(await onto(writing, 'web', ...flags)).toEqual({
      exitCode: 0,
      stdout: 'pod "web" deleted\n',
      stderr: '',
    })
    const uid = jsonAt(body, 'metadata', 'uid')
    expect(writing.ended).toEqual([`${typeof uid === 'string' ? uid : ''} ${graceSeconds}`])
  })

  it('deletes one of a workload of a file too, and waits for that one, not for the one that takes its place', async () => {
    await using writing = await startWritingRig()
    const show = (uid: string): void => {
      const made = podObject({
        name: 'web-0',
        uid,
        metadata: { annotations: { 'podd.dev/path': '/file/web.yaml' } },
      })
      const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'd' } as const
      const ownerReferences = [{ ...owner, controller: true, blockOwnerDeletion: true }] as const
      writing.pods.put({ ...made, metadata: { ...made.metadata, ownerReferences } })
    }
    show('first')
    const deleted = onto(writing, 'web-0')
    await expect.poll(() => writing.ended).toEqual(['first 30'])
    writing.pods.remove('web-0')
    show('second')
    expect(await deleted).toEqual({ exitCode: 0, stdout: 'pod "web-0" deleted\n', stderr: '' })
    expect(writing.ended).toEqual(['first 30'])
  })

  it('refuses to kill and to give time', async () => {
    await using writing = await startWritingRig()
    expect(await onto(writing, 'web', '--force', '--grace-period=5')).toMatchObject({ exitCode: 2 })
  })
})

describe('podd wait', () => {
  const pod = (status: 'True' | 'False', phase: 'Running' | 'Pending' = 'Running') =>
    podObject({ name: 'web', status: { phase, conditions: [readyCondition(status)] } })

  it.each([
    'condition=Ready',
    'condition=ready=TRUE',
    'jsonpath={.status.phase}=Running',
    'create',
    'jsonpath={.status.phase}',
  ])('is done at once where %s holds', async (condition) => {
    rig.pods.put(pod('True'))
    expect(await podd('wait', 'pod/web', `--for=${condition}`)).toEqual({
      exitCode: 0,
      stdout: 'pod/web condition met\n',
      stderr: '',
    })
  })

  it('waits for a change', async () => {
    rig.pods.put(pod('False'))
    using call = startCli(['wait', 'web', '--for=condition=Ready'], { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => rig.pods.watchers).toBe(1)
    expect(call.stdout()).toBe('')
    rig.pods.put(pod('True'))
    expect(await call.outcome).toMatchObject({ exitCode: 0, stdout: 'pod/web condition met\n' })
  })

  it('waits for the end, and for a pod that comes', async () => {
    rig.pods.put(pod('True'))
    using ending = startCli(['wait', 'web', '--for=delete'], { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => rig.pods.watchers).toBe(1)
    rig.pods.remove('web')
    expect(await ending.outcome).toMatchObject({ exitCode: 0 })
    using coming = startCli(['wait', 'web', '--for=create'], { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => rig.pods.watchers).toBe(1)
    rig.pods.put(pod('False', 'Pending'))
    expect(await coming.outcome).toMatchObject({ exitCode: 0 })
  })

  it('fails when the time is over, and for a pod that is missing', async () => {
    rig.pods.put(pod('False'))
    const late = await podd('wait', 'web', '--for=condition=Ready', '--timeout=10ms')
    expect(late).toMatchObject({ exitCode: 1, stdout: '' })
    expect(late.stderr).toContain('timed out waiting for the condition on pods/web')
    const missing = await podd('wait', 'none', '--for=condition=Ready')
    expect(missing).toMatchObject({ exitCode: 1 })
    expect(missing.stderr).toContain('pods "none" not found')
  })

  it('takes all pods of a namespace', async () => {
    rig.pods.put(pod('True'))
    rig.pods.put(
      podObject({ name: 'db', status: { phase: 'Running', conditions: [readyCondition('True')] } }),
    )
    const { stdout } = await podd('wait', 'pods', '--all', '--for=condition=Ready')
    expect(stdout).toBe('pod/db condition met\npod/web condition met\n')
  })

  it.each([
    ['wait', 'web'],
    ['wait', 'web', '--for=ready'],
    ['wait', '--for=delete'],
    ['wait', 'web', '--for=condition=Ready', '--timeout=soon'],
  ])('%s %s %s: wrong usage', async (...argv) => {
    expect(await podd(...argv)).toMatchObject({ exitCode: 2 })
  })

  it.each([
    ['cm/settings'],
    ['secret/tls'],
    ['svc/web'],
    ['web', 'pvc/data'],
    ['pod', 'cm/settings'],
    ['configmap', 'settings'],
    ['configmaps', '--all'],
  ])('%s %s: takes pods only', async (...words) => {
    const { exitCode, stdout, stderr } = await podd('wait', ...words, '--for=delete')
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/podd wait takes pods only, not .*\n.*`kubectl wait`/u)
  })

  it.each([['pods/web'], ['po/web'], ['Pod', 'web'], ['web'], ['configmap']])(
    '%s %s: a pod',
    async (...words) => {
      expect(await podd('wait', ...words, '--for=delete')).toMatchObject({
        exitCode: 0,
        stdout: `pod/${words.at(-1)?.replace(/^.*\//u, '')} condition met\n`,
      })
    },
  )
})

describe('podd drain', () => {
  it('says how many pods have ended, and which have not', async () => {
    expect(await podd('drain')).toEqual({ exitCode: 0, stdout: 'drained: 2 pods have ended\n', stderr: '' })
    rig.drained = { ended: 1, stuck: ['default/web'] }
    expect(await podd('drain')).toEqual({
      exitCode: 1,
      stdout: 'drained: 1 pod has ended\n',
      stderr: 'pod default/web has not ended in time\n',
    })
  })

  it('undoes it, and shows in the status that no pod is admitted', async () => {
    expect(await podd('drain', '--undo')).toMatchObject({ exitCode: 0 })
    expect(rig.undone).toBe(1)
    rig.status = { ...rig.status, draining: true }
    expect((await podd('status')).stdout).toMatch(/^Drained: +no pod is admitted/mu)
  })
})

describe('a kustomization', () => {
  const path = process.env['PATH']
  /** In place of kubectl: what it prints of `kustomize DIRECTORY`, or how it fails. */
  beforeEach(async () => {
    const script = `#!/bin/sh\n[ "$1" = kustomize ] && cat "$2/built.json"\n`
    await writeFile(join(rig.directory, 'kubectl'), script, { mode: 0o755 })
    process.env['PATH'] = `${rig.directory}:${path ?? ''}`
    await mkdir(join(own, 'plant'))
  })
  afterEach(() => {
    process.env['PATH'] = path ?? ''
  })

  it('is built and written under the name of its directory', async () => {
    await put('plant/built.json', manifest('web'), manifest('db'))
    const { exitCode, stdout } = await podd('apply', '-k', join(own, 'plant'))
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: 'create   pod default/web\ncreate   pod default/db\n',
    })
    expect(await readdir(manifests)).toEqual(['plant.yaml'])
    expect((await podd('validate', '-k', join(own, 'plant'))).stderr).toContain('2 valid pods, 0 errors')
  })

  it('that cannot be built writes nothing, and says why', async () => {
    const { exitCode, stderr } = await podd('apply', '-k', join(own, 'plant'))
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/cannot build \S*plant: .*exited with 1: cat: /u)
    expect(await readdir(manifests)).toEqual([])
  })

  it('of the manifest directory itself is refused, as podd builds it by itself', async () => {
    await writeFile(join(manifests, 'built.json'), JSON.stringify(manifest('web')))
    const { exitCode, stderr } = await podd('apply', '-k', manifests)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('keep the kustomization in another directory')
  })

  it('among manifests is built, in the place of what it refers to, and refused as a file', async () => {
    const file = await put('plant/kustomization.yaml', { resources: ['web.yaml', 'built.json'] })
    await put('plant/web.yaml', manifest('web'))
    await put('plant/own.yaml', manifest('own'))
    await put('plant/built.json', manifest('a-web'))
    const { exitCode, stderr } = await podd('validate', join(own, 'plant'))
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: expect.stringContaining('2 valid pods, 0 errors'),
    })
    expect((await podd('validate', file)).stdout).toContain('run `podd apply -k DIRECTORY`')
    await put('plant/kustomization.yaml', { resources: ['https://x.example/base'] })
    expect((await podd('validate', join(own, 'plant'))).stdout).toContain(
      'podd fetches nothing for a kustomization',
    )
  })
})

describe('signatures of manifests', () => {
  const signer = makeSigner()

  it('are checked by a key, or one in a .pub file', async () => {
    const path = await put('web.json', manifest('web'))
    const key = join(own, 'minisign.pub')
    await writeFile(key, `untrusted comment: minisign public key\n${signer.publicKey}\n`)
    const missing = await podd('validate', path, '--key', signer.publicKey)
    expect(missing.exitCode).toBe(1)
    expect(missing.stdout).toContain(`${path}: the signature ${path}.minisig is missing`)
    const sign = async (comment: string) => {
      const text = await readFile(path, 'utf8')
      await writeFile(`${path}.minisig`, signer.sign(text, { comment }))
    }
    await sign('timestamp:1\tfile:web.json\thashed')
    expect((await podd('validate', own, '--key', key)).stderr).toContain('1 valid pod, 0 errors')
    await sign('timestamp:1\tfile:db.json\thashed')
    expect((await podd('validate', path, '--key', key)).stdout).toContain('is for a file named db.json')
    await put('web.json', manifest('web', 'web:2'))
    expect((await podd('validate', path, '--key', key)).stdout).toContain('does not belong to this content')
    const strange = await podd('validate', path, '--key', makeSigner().publicKey)
    expect(strange.stdout).toContain('which is not trusted here')
  })

  it('are checked by the keys of the configured sources', async () => {
    const path = await put('web.json', manifest('web'))
    await writeFile(`${path}.minisig`, signer.sign(await readFile(path, 'utf8')))
    const config = join(own, 'config.yaml')
    const write = (source: object) =>
      writeFile(
        config,
        JSON.stringify({ apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', sources: [source] }),
      )
    await write({ name: 'fleet', path: '/nowhere', verify: { keys: [signer.publicKey] } })
    const good = await podd('validate', path, '--verify', '--config', config)
    expect(good.stderr).toContain('1 valid pod, 0 errors')
    await write({ name: 'fleet', path: '/nowhere' })
    const none = await podd('validate', path, '--verify', '--config', config)
    expect(none).toMatchObject({ exitCode: 2 })
    expect(none.stderr).toContain('no source in the config has verify.keys')
  })

  it.each([
    ['a file that is not there', ['/nowhere.pub'], 1, 'is no public key of minisign, nor a file with one'],
    ['a file without a key', ['/etc/hostname'], 2, 'this file has no public key of minisign'],
  ])('are refused with %s as key', async (_what, key, exitCode, message) => {
    const path = await put('web.json', manifest('web'))
    const result = await podd('validate', path, '--key', ...key)
    expect(result.exitCode).toBe(exitCode)
    expect(result.stderr).toContain(message)
  })
})
