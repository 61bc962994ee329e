import { ADDRCONFIG } from 'node:dns'
import { describe, expect, it } from 'vitest'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { shareLookups } from '../../../src/probes/probe-outcome.ts'

describe('the lookups of names that manifests give', () => {
  const address = { address: '192.0.2.1', family: 4 }
  const other = { address: '2001:db8::1', family: 6 }

  function given() {
    const asked: {
      readonly name: string
      readonly options: LookupOptions
      readonly answer: (error: Error | null, addresses?: readonly LookupAddress[]) => void
    }[] = []
    const lookUp = shareLookups((name, options, answer) => asked.push({ name, options, answer }))
    const ask = (name: string, options: LookupOptions = { all: true }) =>
      new Promise((resolve) => lookUp(name, options, (...answer) => resolve(answer)))
    return { asked, ask }
  }

  it('are one for all probes that ask before it is answered, however many', async () => {
    const { asked, ask } = given()
    const answers = Array.from({ length: 100 }, () => ask('silent.example'))
    const elsewhere = ask('other.example')
    expect(asked.map(({ name }) => name)).toEqual(['silent.example', 'other.example'])
    asked[0]?.answer(null, [address, other])
    asked[1]?.answer(null, [other])
    expect(new Set(await Promise.all(answers.map(async (answer) => JSON.stringify(await answer))))).toEqual(
      new Set([JSON.stringify([null, [address, other]])]),
    )
    expect(await elsewhere).toEqual([null, [other]])
  })

  it('ask for the kinds of addresses that the connection can use, and are shared with others of these alone', () => {
    const { asked, ask } = given()
    const wanted = [
      { all: true, family: 0, hints: ADDRCONFIG },
      { all: false, family: 0, hints: ADDRCONFIG },
      { all: true, family: 0 },
      { all: true, family: 4, hints: ADDRCONFIG },
    ]
    for (const options of wanted) void ask('web.example', options)
    expect(asked.map(({ options }) => options)).toEqual([
      { all: true, family: 0, hints: ADDRCONFIG },
      { all: true, family: 0, hints: 0 },
      { all: true, family: 4, hints: ADDRCONFIG },
    ])
  })

  it('are made again once one is answered, or has failed', async () => {
    const { asked, ask } = given()
    const failed = ask('a.example')
    const error = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
    asked[0]?.answer(error)
    expect(await failed).toEqual([error, ''])
    const found = ask('a.example', {})
    asked[1]?.answer(null, [address, other])
    expect(await found).toEqual([null, '192.0.2.1', 4])
    void ask('a.example')
    expect(asked).toHaveLength(3)
  })
})
