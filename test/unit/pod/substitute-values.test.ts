import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { isPodDocument } from '../../../src/pod/objects/document.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { substituteValues } from '../../../src/pod/decode/substitute-values.ts'

const values = { SITE: 'berlin', EMPTY: '', TRICK: '${SITE}\nkind: Secret', _x1: 'y' }

function textOf(text: string): unknown {
  return substituteValues({ text }, values).value['text']
}

describe('the values of a host in a document', () => {
  it.each([
    ['${SITE}', 'berlin'],
    ['a-${SITE}-${_x1}${EMPTY}', 'a-berlin-y'],
    ['$${SITE} $SITE $(SITE) {SITE} $', '${SITE} $SITE $(SITE) {SITE} $'],
    ['$$${SITE}', '$${SITE}'],
    ['${TRICK}', '${SITE}\nkind: Secret'],
  ])('%s is %s', (text, wanted) => {
    expect(textOf(text)).toBe(wanted)
  })

  it.each([
    [
      '${SIET}',
      'this host has no value ${SIET}',
      'did you mean ${SITE}? for the text itself, write $${SIET}',
    ],
    ['${HOME:-x}', 'this host has no value ${HOME:-x}', 'for the text itself, write $${HOME:-x}'],
    ['${}', 'this host has no value ${}', 'for the text itself, write $${}'],
    ['${SITE', '${SITE is not closed', 'for the text itself, write $${SITE'],
    ['${toString}', 'this host has no value ${toString}', 'for the text itself, write $${toString}'],
  ])('refuses %s', (text, message, hint) => {
    const { value, problems } = substituteValues({ spec: { list: ['', text] } }, values)
    expect(problems).toEqual([{ severity: 'error', path: ['spec', 'list', 1], message, hint }])
    expect(value).toEqual({ spec: { list: ['', text] } })
  })

  it('touches no keys, no other types, and neither kind nor apiVersion', () => {
    const document = {
      kind: '${SITE}',
      apiVersion: '${SITE}',
      a: { '${SITE}': 1, b: [true, null, '${SITE}'] },
    }
    expect(substituteValues(document, values).value).toEqual({
      ...document,
      a: { '${SITE}': 1, b: [true, null, 'berlin'] },
    })
  })

  it('changes nothing but strings, whatever the document and the values', () => {
    const shape = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map((item) => shape(item))
      if (typeof value === 'object' && value !== null)
        return Object.entries(value).map(([key, item]) => [key, shape(item)])
      return typeof value === 'string' ? 'text' : value
    }
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.dictionary(fc.constantFrom('A', 'B'), fc.string()),
        (document, own) => {
          const json: JsonObject = JSON.parse(JSON.stringify({ ...document, text: ['${A}', '${B}'] }))
          const { kind: _, apiVersion: _other, ...rest } = json
          expect(shape(substituteValues(rest, own).value)).toEqual(shape(rest))
        },
      ),
    )
  })

  it('may not make a document larger than it may be', () => {
    const large = { LARGE: 'x'.repeat(64 * 1024) }
    const { problems, value } = substituteValues({ text: '${LARGE}'.repeat(1000) }, large)
    expect(problems).toMatchObject([{ path: ['text'], message: expect.stringContaining('1 MiB') as string }])
    expect(JSON.stringify(value).length).toBeLessThan(1.2 * 2 ** 20)
  })
})

describe('documents with values', () => {
  const pod = (name: string, image: string): string =>
    `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: main\n    image: ${image}\n`

  it('are taken with them, each item of a list too', async () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n- ${pod('a', '"x:${SITE}"').replaceAll('\n', '\n  ')}`
    const text = `${pod('web-${SITE}', 'i:1')}---\n${list}`
    const { documents, problems } = await decodeDocuments(text, { path: 'p', values })
    expect(problems).toEqual([])
    const pods = documents.filter((document) => isPodDocument(document)).map((document) => document.pod)
    expect(pods.map(({ metadata, spec }) => [metadata.name, spec.containers[0]?.image])).toEqual([
      ['web-berlin', 'i:1'],
      ['a', 'x:berlin'],
    ])
  })

  it('are refused at the field with the unknown name; the others are taken, and what was there stays', async () => {
    const text = `${pod('a', '"${SIET}"')}---\n${pod('b', 'i:1')}---\n${pod('"c-${SIET}"', 'i:1')}`
    const { documents, problems, heldObjects, holdsAll } = await decodeDocuments(text, { path: 'p', values })
    expect(documents).toHaveLength(1)
    expect(problems).toMatchObject([
      { place: { line: 8, column: 5 }, field: 'spec.containers[0].image', object: 'default/a' },
      { place: { line: 22 }, field: 'metadata.name' },
    ])
    expect(heldObjects).toContain('default/a')
    expect(holdsAll).toBe(true)
  })

  it('stand for themselves where none are given', async () => {
    const { documents } = await decodeDocuments(pod('a', '"i:${SITE}"'), { path: 'p' })
    expect(JSON.stringify(documents)).toContain('i:${SITE}')
  })
})
