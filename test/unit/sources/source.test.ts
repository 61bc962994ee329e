import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { documentKey, isPodDocument } from '../../../src/pod/objects/document.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { LastGoodSaver, mergeLastGood } from '../../../src/sources/source.ts'
import type { LastGoodStore } from '../../../src/store/last-good.ts'
import { podYaml } from '../../component/sources/source-rig.ts'

function document(value: string): SourceDocument {
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data: { value } }
  return { object: objectFromManifest(manifest), manifest, place: { path: 'a.yaml' } }
}

it('has nothing to complain about once what is on disk is what is wanted again', async () => {
  const store: LastGoodStore = {
    load: async () => undefined,
    isThere: async () => true,
    save: async (_source, _location, documents) => {
      if (documents[0]?.manifest === second.manifest) throw new Error('no space left')
    },
  }
  let calls = 0
  const [first, second] = [document('1'), document('2')]
  const saver = new LastGoodSaver(store, 'file', '/etc/pods', silentLogger, () => void (calls += 1))
  saver.save([first])
  await saver.flush()
  saver.save([second])
  await saver.flush()
  expect(saver.problem()?.message).toContain('no space left')
  saver.save([first])
  await saver.flush()
  expect([saver.problem(), calls]).toEqual([undefined, 2])
})

it('saves what changes after a set that was on disk already', async () => {
  const saved: (readonly SourceDocument[])[] = []
  const store: LastGoodStore = {
    load: async () => ({ documents: [document('1')], isComplete: true }),
    isThere: async () => true,
    save: async (_source, _location, documents) => void saved.push(documents),
  }
  const saver = new LastGoodSaver(store, 'file', '/etc/pods', silentLogger, () => {})
  await saver.load()
  saver.save([document('1')])
  await saver.flush()
  expect(saved).toEqual([])
  saver.save([document('2')])
  await saver.flush()
  expect(saved).toEqual([[document('2')]])
})

it('saves a copy again whose file is gone, and only then', async () => {
  const saved: (readonly SourceDocument[])[] = []
  let isThere = true
  const store: LastGoodStore = {
    load: async () => undefined,
    isThere: async () => isThere,
    save: async (_source, _location, documents) => void saved.push(documents),
  }
  const saver = new LastGoodSaver(store, 'file', '/etc/pods', silentLogger, () => {})
  await saver.keep()
  const documents = [document('1')]
  saver.save(documents)
  await saver.flush()
  await saver.keep()
  await saver.flush()
  expect(saved).toEqual([documents])
  isThere = false
  await saver.keep()
  await saver.flush()
  expect(saved).toEqual([documents, documents])
})

const decode = (...texts: string[]) => decodeDocuments(texts.join('---\n'), { path: 'a.yaml' })
const bad = (name: string): string => podYaml(name).replace('image', 'imagee')

const configMap = (name: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  key: value\n`

async function merge(before: string[], now: string[]): Promise<readonly string[]> {
  const { documents } = await decode(...before)
  return mergeLastGood(documents, await decode(...now)).map((document) =>
    isPodDocument(document)
      ? `${document.pod.metadata.name}=${document.pod.spec.containers[0]?.image}`
      : documentKey(document),
  )
}

describe('mergeLastGood', () => {
  it.each<[string, string[], string[], string[]]>([
    ['nothing before', [], [podYaml('a', 'i:1')], ['a=i:1']],
    ['nothing bad', [podYaml('a', 'i:1'), podYaml('b', 'i:1')], [podYaml('a', 'i:2')], ['a=i:2']],
    [
      'one turned bad',
      [podYaml('a', 'i:1'), podYaml('b', 'i:1')],
      [podYaml('a', 'i:2'), bad('b')],
      ['a=i:2', 'b=i:1'],
    ],
    ['another object of the same name', [podYaml('a', 'i:1'), configMap('a')], [bad('a')], ['a=i:1']],
    [
      'an object turned bad',
      [podYaml('a', 'i:1'), configMap('a')],
      [podYaml('a', 'i:2'), configMap('a').replace('data', 'dada')],
      ['a=i:2', 'ConfigMap/default/a'],
    ],
    ['one bad from the start', [], [podYaml('a', 'i:1'), bad('b')], ['a=i:1']],
    ['one bad and good at once', [podYaml('a', 'i:1')], [bad('a'), podYaml('a', 'i:2')], ['a=i:2']],
    [
      'one without a name',
      [podYaml('a', 'i:1'), podYaml('b', 'i:1')],
      [podYaml('c', 'i:1'), 'a: ['],
      ['c=i:1', 'a=i:1', 'b=i:1'],
    ],
    [
      'one that became another kind',
      [podYaml('a', 'i:1')],
      [podYaml('a', 'i:1').replace('kind: Pod', 'kind: ReplicaSet')],
      [],
    ],
    [
      'one whose kind is misspelt',
      [podYaml('a', 'i:1')],
      [podYaml('a', 'i:1').replace('kind: Pod', 'kind: Pdo')],
      ['a=i:1'],
    ],
    ['all gone', [podYaml('a', 'i:1')], ['# nothing\n'], []],
  ])('%s', async (_what, before, now, expected) => {
    expect(await merge(before, now)).toEqual(expected)
  })
})
