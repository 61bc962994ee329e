import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { PullDisplay } from '../../../src/cli/verbs/move-images.ts'

function display(isTTY: boolean) {
  const written: string[] = []
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString())
      done()
    },
  })
  return { written, shown: new PullDisplay('web:1', Object.assign(stream, { isTTY })) }
}

describe('PullDisplay', () => {
  it('draws a bar over itself on a terminal, and takes it away at the end', () => {
    const { shown, written } = display(true)
    shown.show({ doneBytes: 0 })
    shown.show({ doneBytes: 500_000, totalBytes: 1_000_000 })
    shown.show({ doneBytes: 1_000_000, totalBytes: 1_000_000 })
    shown.end()
    expect(written.map((text) => text.replace('\r\u001b[K', '<'))).toEqual([
      '<web:1 0B',
      `<web:1 [${'='.repeat(15)}>${' '.repeat(14)}] 50% 500kB of 1MB`,
      `<web:1 [${'='.repeat(30)}] 100% 1MB of 1MB`,
      '<',
    ])
  })

  it('writes a line for each tenth elsewhere, and nothing while the total is not known', () => {
    const { shown, written } = display(false)
    shown.show({ doneBytes: 10 })
    for (const doneBytes of [0, 5, 10, 12, 35, 100]) shown.show({ doneBytes, totalBytes: 100 })
    shown.end()
    expect(written).toEqual([
      'web:1: 10%, 10B of 100B\n',
      'web:1: 30%, 35B of 100B\n',
      'web:1: 100%, 100B of 100B\n',
    ])
  })
})
