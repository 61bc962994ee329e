import { describe, expect, it } from 'vitest'
import { ociRuntimeOptions } from '../../../src/config/pod-options.ts'

const { type } = ociRuntimeOptions.ociRuntimes

describe('ociRuntimes', () => {
  it.each([
    ['crun', ['crun']],
    ['crun,runc', ['crun', 'runc']],
    ['/opt/bin/crun,youki', ['/opt/bin/crun', 'youki']],
  ])('takes %s', (text, value) => {
    expect(type.fromText(text)).toEqual({ kind: 'ok', value })
    expect(type.fromFile(value)).toEqual({ kind: 'ok', value })
  })

  it.each([
    ['', 'must name at least one program'],
    ['bin/crun', '"bin/crun" must be the name of a program or an absolute path'],
    [
      '/opt/crun-1.9',
      '"/opt/crun-1.9" must be a program whose name has only lowercase letters, digits and dashes',
    ],
    ['-x', '"-x" must be a program whose name has only lowercase letters, digits and dashes'],
    ['crun,/opt/crun', 'must not name crun twice'],
  ])('refuses %j', (text, message) => {
    expect(type.fromText(text)).toEqual({ kind: 'bad', message })
    expect(type.fromFile(text.split(',').filter((item) => item !== ''))).toEqual({ kind: 'bad', message })
  })
})
