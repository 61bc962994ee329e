import { describe, expect, it } from 'vitest'
import { kindOfSource, parseSourceName, sourceWords } from '../../../src/pod/values/ids.ts'

describe('the name of a source', () => {
  it.each([
    ['file', 'file', 'the manifest directory'],
    ['http', 'http', 'the URL'],
    ['file:edge', 'file', 'the source edge'],
    ['http:fleet', 'http', 'the source fleet'],
  ])('%s is of kind %s', (text, kind, words) => {
    const name = parseSourceName(text)!
    expect([name, kindOfSource(name), sourceWords(name)]).toEqual([text, kind, words])
  })

  it.each(['', 'file:', 'http:', 'files', 'ftp', 'ftp:x', 'https:x'])('is not %j', (text) => {
    expect(parseSourceName(text)).toBeUndefined()
  })
})
