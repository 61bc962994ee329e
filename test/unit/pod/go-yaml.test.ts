import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { readYamlDocuments } from '../../../src/pod/decode/read-documents.ts'

async function read(text: string): Promise<Json | string | undefined> {
  const [document] = await readYamlDocuments(text)
  if (document === undefined) return undefined
  if (document.kind === 'read') return document.value
  return `${document.position.line}:${document.position.column}: ${document.message}`
}

/** What go-yaml (go.yaml.in/yaml/v2 2.4.4, by sigs.k8s.io/yaml) made of each text. */
describe('white space that YAML asks for and Kubernetes doesn’t', () => {
  it.each<readonly [what: string, text: string, value: Json]>([
    ['a quoted scalar at the column of its key', 'a:\n  b: "x\n  y"\n  c: 1\n', { a: { b: 'x y', c: 1 } }],
    ['a quoted scalar left of its key', "a:\n  b: 'it''s\nfine'\n", { a: { b: "it's fine" } }],
    ['a quoted scalar that a tab continues', 'a: "x\n\ty"\n', { a: 'x y' }],
    ['an escaped line end', 'a: "x\\\ny"\n', { a: 'xy' }],
    ['a quoted scalar of blanks', 'a:\n  b: "\n  "\n', { a: { b: ' ' } }],
    ['a quoted scalar with empty lines', 'a: "x\n\n\ny"\n', { a: 'x\n\ny' }],
    ['a line of a quoted scalar like a comment', 'a: "x\n# no comment\ny"\n', { a: 'x # no comment y' }],
    ['a list in brackets left of its key', 'a:\n  b: [1,\n2]\n', { a: { b: [1, 2] } }],
    [
      'brackets that close at their key',
      'a:\n  b: {\n    x: 1,\n  z: 2\n  }\n  c: 1\n',
      { a: { b: { x: 1, z: 2 }, c: 1 } },
    ],
    ['brackets that close at column 1', 'a:\n  b: {\n    x: 1\n}\nc: 2\n', { a: { b: { x: 1 } }, c: 2 }],
    ['an item of a list', '- [a,\nb]\n- c\n', [['a', 'b'], 'c']],
    ['words over several lines', 'a: [b\nc, d]\n', { a: ['b c', 'd'] }],
    ['brackets with a comment left of them', 'a: ["b"\n# c\n, d]\n', { a: ['b', 'd'] }],
    ['a quoted scalar in brackets', "a: {b: 'x\n# y\nz'\n}\n", { a: { b: 'x # y z' } }],
    ['a comment right behind a quote', "o: 'a'#c\np: 1\n", { o: 'a', p: 1 }],
    ['a comment right behind an item', "- 'a'#c\n", ['a']],
    ['a comment right behind brackets', 'o: {a: 1}#c\np: 1\n', { o: { a: 1 }, p: 1 }],
    ['comments right behind quotes, commas and brackets', "o: [#c\n a,#d\n 'b'#e\n ]\n", { o: ['a', 'b'] }],
    ['a quote within a word', 'a: [b"c,\nd\'e]\n', { a: ['b"c', "d'e"] }],
    ['quotes in a block of lines', "v: 'l\nm'\nw: |\n  \"un\nx: 1\n", { v: 'l m', w: '"un\n', x: 1 }],
  ])('is not asked for: %s', async (_what, text, value) => {
    expect(await read(text)).toEqual(value)
  })

  it.each([
    ['a: b#c\n', { a: 'b#c' }],
    ['a: [b#c]\n', { a: ['b#c'] }],
  ])('makes no comment of a sharp within a word: %j', async (text, value) => {
    expect(await read(text)).toEqual(value)
  })

  it.each([
    ['a: "x\nb: 1\n', /^3:1: a quote that is opened here or above is not closed$/],
    ['a:\n  b: "x\n  y\n  c: 1\n', /^\d:\d+: a quote that is opened here or above is not closed$/],
    ['a: [b\nc: 1\n', /^2:1: a bracket that is opened here or above is not closed/],
    ['a: "x"y\n', /^1:7: text behind a value/],
    ['a: "b\nc": d\n', /^1:4: a `:` too many/],
  ])('leaves the errors of %j what they are', async (text, message) => {
    expect(await read(text)).toMatch(message)
  })

  it('says where a later error stands in the text as it was written', async () => {
    expect(await read('a:\n  b: "x\ny"\n  c: [1,\n2], 3\n')).toMatch(/^5:3: /)
    expect(await read("a: 'x'#c\nb: [1, 2]#d\nc: @e\n")).toMatch(/^3:4: /)
  })

  it('adds no more space than a text is worth', async () => {
    const deep = `${' '.repeat(2000)}a: "x\n${'y\n'.repeat(20_000)}"\n`
    expect(await read(deep)).toMatch(/^1:2006: /)
  })
})

describe('escapes of half a character', () => {
  it.each([
    [
      'a: "\\ud83d\\ude00"\n',
      '1:5: an escape of half a character, which YAML has not: write \\U0001F600, or the character itself',
    ],
    ['a: "\\\\x \\U0000d83d"\n', '1:9: an escape of half a character, which YAML has not'],
    ['a:\n- \'x\'\n- {b: ["\\udE00"]}\n', '3:9: an escape of half a character, which YAML has not'],
  ])('are refused in YAML, as Kubernetes does: %j', async (text, message) => {
    expect(await read(text)).toBe(message)
  })

  it('are taken in JSON, and behind a backslash they are none', async () => {
    expect(await read('{"a": "\\ud83d\\ude00"}')).toEqual({ a: '\u{1F600}' })
    expect(await read('a: "\\\\ud83d"\n')).toEqual({ a: '\\ud83d' })
  })
})
