import { describe, expect, it } from 'vitest'
import { showSource } from '../../../src/daemon/create-api.ts'
import type { SourceSnapshot } from '../../../src/pod/objects/document.ts'

const fleet = { name: 'http:fleet', location: 'https://fleet.example/pods' } as const
const given: SourceSnapshot = {
  source: 'http:fleet',
  location: fleet.location,
  ready: true,
  pods: [],
  objects: [],
  problems: [],
}

const idle = { newest: undefined, errorsSinceMs: undefined, heldSinceMs: undefined, pending: undefined }
const allMet = { names: [], failures: [], warnings: [] }

describe('a source as it is shown', () => {
  it('was not read yet', () => {
    expect(showSource(fleet, undefined, idle, { mode: 'poll' }, allMet)).toEqual({
      apiVersion: 'podd.dev/v1',
      kind: 'Source',
      metadata: { name: 'http:fleet' },
      spec: { type: 'URL', place: 'https://fleet.example/pods' },
      status: {
        state: 'Unread',
        mode: 'poll',
        ready: false,
        pods: 0,
        objects: 0,
        errors: 0,
        warnings: 0,
        lastGood: false,
      },
    })
  })

  it('is followed, by its revision and its last answer', () => {
    const report = { mode: 'push', hash: 'abc', etag: '"1"', answeredAtMs: 1000 } as const
    expect(showSource(fleet, given, idle, report, allMet).status).toMatchObject({
      state: 'Following',
      mode: 'push',
      hash: 'abc',
      etag: '"1"',
      lastAnswerTime: '1970-01-01T00:00:01Z',
      lastGood: false,
    })
  })

  it('cannot be read, since when and why; its last good copy stands in', () => {
    const problem = {
      severity: 'error',
      place: { path: fleet.location },
      message: 'the server answered 503',
    } as const
    const report = { mode: 'poll', failure: { message: problem.message, sinceMs: 2000 } } as const
    expect(
      showSource(fleet, { ...given, problems: [problem] }, { ...idle, errorsSinceMs: 3000 }, report, allMet)
        .status,
    ).toMatchObject({
      state: 'Failing',
      errors: 1,
      message: 'the server answered 503',
      failingSince: '1970-01-01T00:00:02Z',
      errorsSince: '1970-01-01T00:00:03Z',
      lastGood: true,
    })
  })

  it('has a unit that runs although none of its keys is trusted any more', () => {
    const why = 'revision 1 is signed by key OLD, which its source no longer trusts'
    const unmet = { ...allMet, warnings: [why] }
    expect(showSource(fleet, given, idle, { mode: 'watch' }, unmet).status).toMatchObject({
      errors: 0,
      warnings: 1,
      message: why,
    })
  })

  it('is held, with what waits; the errors are those of what it gives now', () => {
    const problem = { severity: 'error', place: { path: fleet.location }, message: 'bad' } as const
    const pending = { added: ['Pod default/new'], changed: [], removed: [] }
    const state = {
      newest: { ...given, problems: [problem] },
      errorsSinceMs: 3000,
      heldSinceMs: 1000,
      pending,
    }
    expect(showSource(fleet, given, state, { mode: 'watch' }, allMet).status).toMatchObject({
      state: 'Held',
      heldSince: '1970-01-01T00:00:01Z',
      errors: 1,
      message: 'bad',
      pending,
    })
  })
})
