import { describe, expect, it } from 'vitest'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { documentKey, isPodDocument } from '../../../src/pod/objects/document.ts'
import { mergeLastGood } from '../../../src/sources/source.ts'
import { podYaml } from '../../component/sources/source-rig.ts'

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
      [podYaml('a', 'i:1').replace('kind: Pod', 'kind: Job')],
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
