import { execFileSync } from 'node:child_process'
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellPod, yamlPod } from '../support/shell-pods.ts'

describePodd('manifests', {}, (rig) => {
  it.concurrent('tells where a manifest is wrong, and runs the others', async () => {
    const podd = rig()
    podd.dropText('typo.yaml', yamlPod('typo', podd.shared, '    imagePullPolcy: Never\n'))
    podd.dropText('sound.yaml', yamlPod('sound', podd.shared))
    await podd.untilReady('sound')
    const text = await podd.untilNote(/typo\.yaml/u)
    const line = text.split('\n').find((candidate) => candidate.includes('typo.yaml')) ?? ''
    expect(line).toMatch(/typo\.yaml:16:5: /u)
    expect(line).toContain('spec.containers[0].imagePullPolcy')
    expect(line).toContain('imagePullPolicy')
    expect(await podd.findPod('typo')).toBeUndefined()
    podd.dropText('typo.yaml', yamlPod('typo', podd.shared))
    await podd.untilReady('typo')
    expect(await podd.notes()).not.toContain('typo.yaml')
  })

  it.concurrent('reads any number of documents from a file, and each for itself', async () => {
    const podd = rig()
    const documents = [
      yamlPod('doc-one', podd.shared),
      'apiVersion: v1\nkind: Pod\nmetadata: {name: doc-bad}\nspec: {containers: []}\n',
      yamlPod('doc-two', podd.shared),
      'apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: doc-other}\n',
    ]
    podd.dropText('many.yml', documents.join('---\n'))
    await podd.untilReady('doc-one')
    await podd.untilReady('doc-two')
    const text = await podd.untilNote(/many\.yml.*Gadget/u)
    expect(text).toMatch(/many\.yml:\d+:\d+: spec\.containers/u)
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: ['listed-a', 'listed-b'].map((name) => shellPod(name, podd.shared, 'stay')),
    }
    podd.dropText('list.json', JSON.stringify(list))
    await podd.untilReady('listed-a')
    await podd.untilReady('listed-b')
  })

  it.concurrent('keeps a pod whose document turned bad, and shows why', async () => {
    const podd = rig()
    podd.dropText('spoilt.yaml', yamlPod('spoilt', podd.shared))
    const before = await podd.untilReady('spoilt')
    podd.dropText(
      'spoilt.yaml',
      'apiVersion: v1\nkind: Pod\nmetadata: {name: spoilt}\nspec: {containers: {}}\n',
    )
    await podd.untilNote(/spoilt\.yaml/u)
    podd.dropText('spoilt.yaml', 'kind: [Pod\n  oh: "no\n')
    await podd.untilNote(/spoilt\.yaml:\d+:\d+/u)
    expect((await podd.untilReady('spoilt')).metadata.uid).toBe(before.metadata.uid)
    expect(await podd.untilWords('spoilt', 1)).toEqual(['start'])
  })

  it.concurrent('replaces no pod whose file is swapped with another one by renames', async () => {
    const podd = rig()
    const names = ['swap-one', 'swap-two'] as const
    for (const name of names) podd.dropText(`${name}.yaml`, yamlPod(name, podd.shared))
    const uids = async () =>
      Promise.all(names.map(async (name) => (await podd.untilReady(name)).metadata.uid))
    const before = await uids()
    const at = (file: string): string => join(podd.manifests, file)
    for (let swap = 0; swap < 2; swap += 1) {
      const moves = `mv "$1" "$3"; mv "$2" "$1"; mv "$3" "$2"`
      execFileSync('sh', ['-c', moves, 'sh', at('swap-one.yaml'), at('swap-two.yaml'), at('.swap')])
      const first = swap % 2 === 0 ? 'swap-two' : 'swap-one'
      await podd.until(`${first} in swap-one.yaml`, async () => {
        const pod = await podd.findPod(first)
        return pod?.metadata.annotations?.['podd.dev/path'] === at('swap-one.yaml')
      })
    }
    expect(await uids()).toEqual(before)
    for (const name of names) expect(await podd.untilWords(name, 1)).toEqual(['start'])
    expect(await podd.notes()).not.toContain('swap-')
  })

  it.concurrent('names both places of a pod that stands in two, keeps the first, and lets the other take over', async () => {
    const podd = rig()
    const pod = (value: string) =>
      shellPod('double', podd.shared, 'say $V; stay', { container: { env: [{ name: 'V', value }] } })
    podd.drop('double-b', pod('b'))
    await podd.untilReady('double')
    podd.drop('double-a', pod('a'))
    const text = await podd.untilNote(/double-a\.yaml/u)
    const line = text.split('\n').find((candidate) => candidate.includes('double-a.yaml')) ?? ''
    expect(line).toContain('double-b.yaml')
    expect(line).toMatch(/error: .*double-a\.yaml.*default\/double/u)
    expect(await podd.untilWords('double', 1)).toEqual(['b'])
    podd.removeManifest('double-b')
    await podd.untilLine('double', / a$/u)
    await podd.untilReady('double')
    expect(await podd.untilWords('double', 3)).toEqual(['b', 'end', 'a'])
    expect(await podd.notes()).not.toContain('double')
  })

  it.concurrent('is not put out by half-written files and by what editors leave', async () => {
    const podd = rig()
    const path = join(podd.manifests, 'slow.yaml')
    const text = yamlPod('slow', podd.shared)
    writeFileSync(path, '')
    const said: string[] = []
    for (let at = 0; at < text.length; at += 40) {
      appendFileSync(path, text.slice(at, at + 40))
      await sleep(4)
    }
    await podd.untilReady('slow')
    said.push(await podd.notes())
    for (const name of [
      '.slow.yaml.swp',
      'slow.yaml~',
      '#slow.yaml#',
      '4913',
      'slow.yaml.bak',
      '.#slow.yaml',
      'slow.yaml.dpkg-new',
    ])
      writeFileSync(join(podd.manifests, name), yamlPod('stray', podd.shared))
    // As vim saves: the old file aside, a new one, the old one away.
    renameSync(path, join(podd.manifests, 'slow.yaml~'))
    writeFileSync(path, text)
    rmSync(join(podd.manifests, 'slow.yaml~'))
    // As `>` in a shell does.
    writeFileSync(path, '')
    writeFileSync(path, text)
    podd.dropText('after.yaml', yamlPod('after', podd.shared))
    await podd.untilReady('after')
    said.push(await podd.notes())
    expect(said.join('')).not.toMatch(/slow|stray/u)
    expect(await podd.findPod('stray')).toBeUndefined()
    expect(await podd.untilWords('slow', 1)).toEqual(['start'])
    expect(containerOf(await podd.untilReady('slow'), 'main').restartCount).toBe(0)
  })

  it.concurrent('tells a namespace from another', proves('namespaces', 'ObjectMeta: namespace'), async () => {
    const podd = rig()
    podd.drop('other', shellPod('twin', podd.shared, 'stay', { metadata: { namespace: 'other' } }))
    podd.drop('here', shellPod('twin', podd.shared, 'stay'))
    await podd.untilReady('twin')
    await podd.until(
      'its twin',
      async () => (await podd.findPod('twin', 'other'))?.status.phase === 'Running',
    )
    const uids = (await podd.pods())
      .filter(({ metadata }) => metadata.name === 'twin')
      .map(({ metadata }) => metadata.uid)
    expect(new Set(uids).size).toBe(2)
    expect(await podd.cliOk('get', 'pods', '-n', 'other', '-o', 'name')).toBe('pod/twin\n')
  })
})
