import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, it } from 'vitest'
import { forbidNewThreads } from '../support/limit-pids.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod, yamlPod } from '../support/shell-pods.ts'

describePodd('the manifest directory', {}, (rig) => {
  const names = ['one', 'spoilt', 'two']
  const uids = async () =>
    (await rig().pods()).map(({ metadata }) => `${metadata.name} ${metadata.uid}`).toSorted()
  /** What says that the directory is gone, which is more than that it wasn't read yet. */
  const gone = () => new RegExp(`${rig().manifests}: the manifest directory does not exist`, 'u')
  let before: readonly string[] = []

  beforeEach(() => rig().ensureDaemon())

  it('leaves a pod running whose document turned bad, over a restart of podd', async () => {
    const podd = rig()
    // A change of problems alone, which leaves nothing to save.
    podd.dropText('bad.yaml', 'kind: Pod\n')
    await podd.untilNote(/bad\.yaml/u)
    for (const name of names) podd.dropText(`${name}.yaml`, yamlPod(name, podd.shared))
    for (const name of names) await podd.untilReady(name)
    before = await uids()
    podd.dropText('spoilt.yaml', 'kind: [Pod\n  oh: "no\n')
    await podd.untilNote(/spoilt\.yaml:\d+:\d+/u)
    await podd.restartDaemon('SIGKILL')
    await podd.untilNote(/spoilt\.yaml:\d+:\d+/u)
    await podd.until('all pods', async () => (await uids()).length === names.length)
    // A pod that is dropped now shows that podd has taken everything up.
    podd.drop('marker', shellPod('marker', podd.shared, 'stay'))
    await podd.untilReady('marker')
    podd.removeManifest('marker')
    await podd.untilGone('marker')
    expect(await uids()).toEqual(before)
    expect(await podd.untilWords('spoilt', 1)).toEqual(['start'])
  })

  it('keeps its pods when it vanishes, over a restart, and is followed when it is back', async () => {
    const podd = rig()
    const aside = join(podd.directory, 'aside')
    renameSync(podd.manifests, aside)
    await podd.untilNote(gone())
    await sleep(300)
    expect(await uids()).toEqual(before)
    await podd.restartDaemon('SIGKILL')
    const text = await podd.untilNote(gone())
    expect(text).toContain('the pods it gave before are kept (3)')
    await podd.until('all pods', async () => (await uids()).length === before.length)
    expect(await uids()).toEqual(before)
    rmSync(join(aside, 'two.yaml'))
    renameSync(aside, podd.manifests)
    await podd.untilGone('two')
    before = before.filter((pod) => !pod.startsWith('two '))
    expect(await uids()).toEqual(before)
    for (const name of ['one', 'spoilt']) expect(await podd.untilWords(name, 1)).toEqual(['start'])
    expect(await podd.notes()).not.toMatch(gone())
  })

  // id: keeps-pods-records-neither
  it('keeps the pods that it has records of when neither it nor its last good copy was there at the start', async () => {
    const podd = rig()
    podd.dropText('spoilt.yaml', yamlPod('spoilt', podd.shared))
    rmSync(join(podd.manifests, 'bad.yaml'))
    await podd.until('a clean slate', async () => !(await podd.notes()).includes('.yaml'))
    const aside = join(podd.directory, 'aside')
    await podd.stopDaemon('SIGTERM')
    renameSync(podd.manifests, aside)
    rmSync(join(podd.rootDir, 'sources'), { recursive: true })
    await podd.startDaemon()
    await podd.untilNote(gone())
    await podd.until('all pods', async () => (await uids()).length === before.length)
    renameSync(aside, podd.manifests)
    await podd.until('the directory', async () => !gone().test(await podd.notes()))
    podd.dropText('after.yaml', yamlPod('after', podd.shared))
    await podd.untilReady('after')
    expect(await uids()).toEqual(expect.arrayContaining([...before]))
    for (const name of ['one', 'spoilt']) expect(await podd.untilWords(name, 1)).toEqual(['start'])
  })

  it('forgets a file that stood in its place, over a restart', async () => {
    const podd = rig()
    rmSync(podd.manifests, { recursive: true })
    writeFileSync(podd.manifests, 'x\n')
    const aboutFile = new RegExp(`${podd.manifests}:1:1: `, 'u')
    const text = await podd.untilNote(aboutFile)
    expect(text).not.toContain('.yaml')
    expect((await podd.pods()).length).toBeGreaterThan(0)
    rmSync(podd.manifests)
    await podd.untilNote(gone())
    mkdirSync(podd.manifests)
    podd.dropText('one.yaml', yamlPod('one', podd.shared))
    await podd.until('no notes', async () => (await podd.notes()) === '')
    await podd.restartDaemon('SIGTERM')
    await podd.untilReady('one')
    expect(await podd.notes()).toBe('')
    expect(await podd.untilWords('one', 1)).toEqual(['start'])
  })

  it('takes an emptied directory at its word', async () => {
    const podd = rig()
    rmSync(podd.manifests, { recursive: true })
    mkdirSync(podd.manifests)
    await podd.until('the end of all pods', async () => (await podd.pods()).length === 0)
    expect(await podd.cli('get', 'pods')).toMatchObject({ code: 0, stdout: '' })
  })

  it('waits for a directory that is not there yet', async () => {
    const podd = rig()
    await podd.stopDaemon('SIGTERM')
    rmSync(podd.manifests, { recursive: true })
    rmSync(join(podd.rootDir, 'sources'), { recursive: true })
    await podd.startDaemon()
    const text = await podd.untilNote(gone())
    expect(text).toContain(`mkdir -p ${podd.manifests}`)
    mkdirSync(podd.manifests)
    podd.dropText('first.yaml', yamlPod('first', podd.shared))
    await podd.untilReady('first')
    expect(await podd.notes()).not.toContain('has not been read')
  })

  it('takes a large manifest when the system has threads again, and changes no pod before', async () => {
    const podd = rig()
    const large = (name: string, filler: string): string =>
      yamlPod(name, podd.shared).replace('metadata:', `# ${filler.repeat(70 * 1024)}\nmetadata:`)
    podd.dropText('heavy.yaml', large('heavy', 'x'))
    const { metadata } = await podd.untilReady('heavy')
    const allow = forbidNewThreads((await podd.status()).pid)
    try {
      podd.dropText('heavy.yaml', large('heavy', 'y'))
      podd.dropText('later.yaml', large('later', 'z'))
      await podd.untilNote(/later\.yaml: cannot be decoded for now: no thread can be started: EAGAIN/u)
    } finally {
      allow()
    }
    await podd.untilReady('later')
    await podd.until('an end of the notes', async () => !(await podd.notes()).includes('decoded'))
    expect((await podd.findPod('heavy'))?.metadata.uid).toBe(metadata.uid)
    for (const name of ['heavy', 'later']) {
      podd.removeManifest(name)
      await podd.untilGone(name)
    }
  })
})
