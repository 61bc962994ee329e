import { describe, expect, it } from 'vitest'
import { describeRecord, explainRecord, problemOf } from '../../../../src/decide/updates/describe-unit.ts'
import { isTemplateUnit } from '../../../../src/decide/updates/unit-content.ts'
import {
  completeCopy,
  createUnitRecord,
  decideStep,
  fallbackOf,
  isJudged,
  isToGoBack,
  matchCopy,
  matchWritten,
  noteFailed,
  noteGone,
  noteHealthy,
  noteHeld,
  noteScale,
  noteTrust,
  offerContent,
  previousOf,
  pruneRevisions,
  resumeOnRequest,
  resumeUnit,
  rollBackTo,
  takeUp,
} from '../../../../src/decide/updates/unit-revisions.ts'
import type { RevisionFailure, UnitRecord } from '../../../../src/decide/updates/unit-revisions.ts'

const failure: RevisionFailure = {
  reason: 'CrashLoopBackOff',
  message: 'it crashed',
  atMs: 9,
  containers: [],
}
const first = (hash = 'a', pods = 1): UnitRecord =>
  createUnitRecord({ source: 'file', unit: '/pods/web.yaml' }, { hash, pods }, 1)
const offer = (record: UnitRecord, hash: string, pods = 1): UnitRecord =>
  offerContent(record, { hash, pods }, 2)
const fail = (record: UnitRecord, mayRollBack = true): UnitRecord =>
  noteFailed(record, failure, { why: 'failed', mayRollBack })
const healthy = (): UnitRecord => noteHealthy(first())
const rolledBack = (): UnitRecord => fail(offer(healthy(), 'b'))
const target = (outcome: ReturnType<typeof rollBackTo>): UnitRecord => {
  if ('refusal' in outcome) throw new Error(outcome.refusal)
  return outcome.record
}

describe('what is told of a unit', () => {
  it.each<[string, UnitRecord, string | undefined]>([
    ['nothing while it is healthy', healthy(), undefined],
    ['nothing while its first revision is judged', first(), undefined],
    [
      'that its first revision failed',
      fail(first()),
      'revision 1 failed, and none is kept to go back to: it crashed',
    ],
    [
      'that another one failed and was gone back from',
      rolledBack(),
      'revision 2 failed, and revision 1 counts again: it crashed',
    ],
  ])('is %s', (_what, record, text) => {
    expect(explainRecord(record)).toBe(text)
  })
})

describe('a content that is written as before', () => {
  const written = (record: UnitRecord, hash: string, text: string): UnitRecord =>
    offerContent(record, matchWritten(record, { hash, written: text, pods: 1 }), 2)
  const known = (): UnitRecord =>
    fail(
      offerContent(
        noteHealthy(
          createUnitRecord({ source: 'file', unit: '/u' }, { hash: 'a', written: 'A', pods: 1 }, 1),
        ),
        { hash: 'b', written: 'B', pods: 1 },
        2,
      ),
    )

  it('is no new revision where a later podd understands it otherwise, so that what failed stays refused', () => {
    expect(written(known(), 'b2', 'B')).toEqual(known())
  })

  it('is the revision that it was, also where its source goes back to it', () => {
    expect(written(known(), 'a2', 'A')).toMatchObject({ offered: 1, active: 1, latest: 2, pin: undefined })
  })

  it.each([
    ['means what another revision does', { hash: 'a', written: 'B', pods: 1 }],
    ['comes from a source that does not say how it is written', { hash: 'c', pods: 1 }],
  ])('stays what it is where it %s', (_what, content) => {
    const unwritten = offer(known(), 'd')
    expect(matchWritten(unwritten, content)).toBe(content)
  })

  it('is a new revision where it is written otherwise and means something else', () => {
    expect(written(known(), 'c', 'C')).toMatchObject({ offered: 3, active: 3, latest: 3 })
  })

  it('is remembered as it is written now where that means the same', () => {
    const record = written(known(), 'b', 'B2')
    expect(record).toMatchObject({ offered: 2, active: 1, revisions: [{}, { hash: 'b', written: 'B2' }] })
    expect(written(record, 'b3', 'B2')).toBe(record)
  })

  it('is known by what it means in a record of a podd that did not note how it was written', () => {
    const record = written(rolledBack(), 'b', 'B')
    expect(record).toMatchObject({ offered: 2, active: 1, revisions: [{}, { hash: 'b', written: 'B' }] })
    expect(written(record, 'b2', 'B')).toBe(record)
  })
})

describe('a workload that was written over the API', () => {
  const name = 'api:Deployment/default/web'
  const begun = (hash: string, pods: number): UnitRecord =>
    createUnitRecord({ source: 'api', unit: name }, { hash, pods }, 1)
  const scale = (record: UnitRecord, pods: number): UnitRecord => noteScale(record, { hash: '', pods })

  it.each([
    ['api', 'api:Deployment/default/web', true],
    ['api', 'api:StatefulSet/default/web', true],
    ['api', 'api:DaemonSet/default/web', true],
    ['api', 'api:default/Deployment', false],
    ['file', '/pods/Deployment/web.yaml', false],
  ] as const)('of source %s as %s has its template as its revision: %s', (source, unit, is) => {
    expect(isTemplateUnit({ source, unit })).toBe(is)
  })

  it('has the number of pods noted that its template had last, but for none once it was healthy', () => {
    expect(scale(noteHealthy(begun('a', 1)), 3)).toMatchObject({
      base: 1,
      revisions: [{ pods: 3, verdict: 'healthy' }],
    })
    const record = noteHealthy(begun('a', 3))
    expect([scale(record, 0), scale(record, 3)]).toEqual([record, record])
  })

  it('is healthy without pods, but not what is gone back to, and is judged with its first ones', () => {
    const none = noteHealthy(offer(noteHealthy(begun('a', 1)), 'b', 0))
    expect(none).toMatchObject({ active: 2, base: 1, revisions: [{}, { pods: 0, verdict: 'healthy' }] })
    expect(isJudged(none)).toBe(false)
    const scaled = scale(none, 2)
    expect(scaled).toMatchObject({ active: 2, base: 1, revisions: [{}, { pods: 2, verdict: 'progressing' }] })
    expect([isJudged(scaled), fallbackOf(scaled)?.number]).toEqual([true, 1])
    const first = scale(noteHealthy(begun('a', 0)), 2)
    expect([isJudged(first), first.base]).toEqual([true, undefined])
  })

  it('keeps its pin and its marks where it is scaled, also to nothing', () => {
    const back = fail(offer(noteHealthy(begun('a', 1)), 'b'))
    const failed = fail(offer(noteHealthy(begun('a', 1)), 'b'), false)
    for (const pods of [4, 0]) {
      expect(scale(back, pods)).toMatchObject({ offered: 2, active: 1, base: 1, pin: { why: 'failed' } })
      expect(scale(failed, pods)).toMatchObject({
        active: 2,
        base: 1,
        revisions: [{}, { verdict: 'failed' }],
      })
    }
    const stopped = scale(failed, 0)
    expect(noteHealthy(stopped)).toBe(stopped)
    expect(noteHealthy(scale(stopped, 1))).toMatchObject({ base: 2 })
  })

  it('is known by how all of it was written where an older podd recorded that', () => {
    const old = createUnitRecord({ source: 'api', unit: name }, { hash: 'a', written: 'whole', pods: 1 }, 1)
    const content = { hash: 'a2', written: 'template', pods: 1 }
    expect(matchWritten(old, content, 'whole')).toMatchObject({ hash: 'a', written: 'template' })
    expect(matchWritten(old, content, 'other')).toBe(content)
    const noted = offerContent(old, matchWritten(old, content, 'whole'), 2)
    expect(matchWritten(noted, content, 'other')).toMatchObject({ hash: 'a' })
  })
})

describe('a revision that a key has signed which is no longer trusted', () => {
  const signed = (record: UnitRecord, hash: string, id: string): UnitRecord =>
    offerContent(record, { hash, written: hash, signedBy: [id], pods: 1 }, 2)
  const begun = (id: string): UnitRecord =>
    noteHealthy(
      createUnitRecord(
        { source: 'file', unit: '/pods/web.yaml' },
        { hash: 'a', written: 'a', signedBy: [id], pods: 1 },
        1,
      ),
    )
  const old = (): UnitRecord => noteHealthy(signed(begun('NEW'), 'b', 'OLD'))
  const why = 'revision 2 is signed by key OLD, which its source no longer trusts'

  it('is not gone back to, neither by itself nor on request, and that is said', () => {
    const record = noteTrust(old(), ['NEW'])
    const failed = fail(signed(record, 'c', 'NEW'))
    expect(failed).toMatchObject({ offered: 3, active: 3, pin: undefined })
    expect(describeRecord(failed)).toBe(`revision 3 failed, and stays: ${why}: it crashed`)
    expect(rollBackTo(failed, 2, 5)).toEqual({ refusal: why })
    expect(previousOf(failed)?.number).toBe(1)
  })

  it('is one that has a second signature, by a key that is still trusted, too', () => {
    const both = noteHealthy(
      offerContent(begun('NEW'), { hash: 'b', written: 'b', signedBy: ['OLD', 'NEW'], pods: 1 }, 2),
    )
    expect(previousOf(signed(noteTrust(both, ['NEW']), 'c', 'NEW'))?.number).toBe(1)
    expect(previousOf(signed(noteTrust(both, ['NEW', 'OLD']), 'c', 'NEW'))?.number).toBe(2)
  })

  it('is one of which it is not known who has signed it, too: of an older podd, or of a time without signatures', () => {
    const record = noteTrust(signed(healthy(), 'b', 'NEW'), ['NEW'])
    expect([fallbackOf(record), previousOf(record)]).toEqual([undefined, undefined])
    expect(rollBackTo(record, 1, 5)).toEqual({
      refusal: 'revision 1 is not known to be signed by a key that its source trusts',
    })
    expect(fallbackOf(noteTrust(record, undefined))?.number).toBe(1)
  })

  it('stays while its source gives nothing else, which is said, and counts again once it is signed again', () => {
    const record = noteTrust(old(), ['NEW'])
    expect(record).toMatchObject({ offered: 2, active: 2, base: 2 })
    const runsOn = `${why}: it runs on until its source gives something else, and nothing goes back to it`
    expect([describeRecord(record), explainRecord(record)]).toEqual([undefined, runsOn])
    expect(problemOf(record, '/pods/web.yaml')).toMatchObject({ severity: 'warning', message: runsOn })
    const again = noteTrust(signed(record, 'b', 'NEW'), ['NEW'])
    expect(again).toMatchObject({ latest: 2, active: 2, revisions: [{}, { signedBy: ['NEW'] }] })
    expect(explainRecord(again)).toBeUndefined()
    expect(fail(signed(again, 'c', 'NEW'))).toMatchObject({ offered: 3, active: 2, pin: { why: 'failed' } })
  })

  it('runs on where it was gone back to before, which is said', () => {
    const back = noteTrust(fail(signed(old(), 'c', 'NEW')), ['NEW'])
    expect(back).toMatchObject({ offered: 3, active: 2, pin: { why: 'failed' } })
    expect(describeRecord(back)).toBe(`revision 3 failed, and revision 2 counts again: it crashed; ${why}`)
    expect(problemOf(back, '/pods/web.yaml')).toMatchObject({ severity: 'error' })
  })

  it('is not taken up by a resume where another one is active, which is kept then', () => {
    const pinned = noteTrust(target(rollBackTo(old(), 1, 5)), ['NEW'])
    expect(resumeOnRequest(pinned)).toEqual({ refusal: why })
    expect(resumeOnRequest(noteTrust(pinned, ['NEW', 'OLD']))).toMatchObject({ record: { active: 2 } })
  })

  it('is gone back to where its source demands no signature, or trusts the key still', () => {
    for (const trusted of [undefined, ['OLD', 'NEW']])
      expect(fail(signed(noteTrust(old(), trusted), 'c', 'NEW'))).toMatchObject({ active: 2 })
  })

  it('is noted without a change of what is as it was', () => {
    const record = noteTrust(old(), ['NEW'])
    expect(noteTrust(record, ['NEW'])).toBe(record)
    expect(noteTrust(record, undefined)).toEqual(old())
  })
})

describe('a unit', () => {
  it('begins with its first revision, which is judged and has none to go back to', () => {
    expect(first()).toMatchObject({ offered: 1, active: 1, latest: 1 })
    expect([isJudged(first()), fallbackOf(first())]).toEqual([true, undefined])
  })

  it('is unchanged by what it gave before', () => {
    const record = offer(healthy(), 'b')
    expect(offer(record, 'b')).toBe(record)
  })

  it('keeps its first revision although it failed, and takes it for healthy later', () => {
    const failed = fail(first())
    expect(failed).toMatchObject({ active: 1, revisions: [{ verdict: 'failed', failure }] })
    expect(failed.pin).toBeUndefined()
    expect(noteHealthy(failed)).toMatchObject({ base: 1, revisions: [{ verdict: 'healthy' }] })
    expect(noteHealthy(failed).revisions[0]?.failure).toBeUndefined()
  })

  it('goes back to its last healthy revision when the next one fails', () => {
    expect(rolledBack()).toMatchObject({
      offered: 2,
      active: 1,
      base: 1,
      pin: { why: 'failed', atMs: 9 },
      revisions: [{ verdict: 'healthy' }, { verdict: 'failed', failure }],
    })
    expect(isJudged(rolledBack())).toBe(false)
  })

  it('tries a content once more that failed before, and then no more until somebody asks for it', () => {
    const again = offer(offer(rolledBack(), 'a'), 'b')
    expect(again).toMatchObject({ offered: 3, active: 3 })
    const refused = offer(offer(fail(again), 'a'), 'b')
    expect(refused).toMatchObject({ latest: 3, offered: 3, active: 1, pin: { why: 'failed' } })
    expect(offer(refused, 'c')).toMatchObject({ offered: 4, active: 4 })
    expect(resumeUnit(refused)).toMatchObject({ offered: 3, active: 3 })
    const better = noteHealthy(offer(refused, 'c'))
    expect(offer(better, 'b')).toMatchObject({ offered: 5, active: 5, base: 4 })
  })

  it('counts no failure of the revision that it would go back to', () => {
    const held = noteHeld(offer(healthy(), 'b'), failure, true)
    const once = offer(fail(offer(offer(held, 'c'), 'b')), 'd')
    expect(once).toMatchObject({ base: 2, active: 5 })
    expect(offer(once, 'b')).toMatchObject({ offered: 6, active: 6 })
  })

  it('does not go back where that is not allowed', () => {
    const record = fail(offer(healthy(), 'b'), false)
    expect(record).toMatchObject({ active: 2, revisions: [{}, { verdict: 'failed' }] })
    expect(record.pin).toBeUndefined()
  })

  it('does not go back to a revision without pods', () => {
    const record = fail(offer(noteHealthy(first('a', 0)), 'b'))
    expect(record).toMatchObject({ active: 2 })
    expect(record.pin).toBeUndefined()
  })

  it('stays where it went back to while its source gives the failed content', () => {
    const record = rolledBack()
    expect(offer(record, 'b')).toBe(record)
  })

  it('takes up the next content after it went back, and goes back to the same one if that fails too', () => {
    const record = offer(rolledBack(), 'c')
    expect(record).toMatchObject({ offered: 3, active: 3, base: 1 })
    expect(record.pin).toBeUndefined()
    expect(fail(record)).toMatchObject({ offered: 3, active: 1, pin: { why: 'failed' } })
  })

  it('needs no new number for what is active when its source gives that again', () => {
    const record = offer(rolledBack(), 'a')
    expect(record).toMatchObject({ offered: 1, active: 1, latest: 2 })
    expect(record.pin).toBeUndefined()
    expect(isJudged(record)).toBe(false)
  })

  it('tries a failed content again once its source has given something else', () => {
    const record = offer(offer(rolledBack(), 'a'), 'b')
    expect(record).toMatchObject({ offered: 3, active: 3, latest: 3 })
    expect(record.revisions.at(-1)).toMatchObject({ hash: 'b', verdict: 'progressing' })
  })

  it('goes back over one that was superseded before it was healthy', () => {
    const record = fail(offer(offer(healthy(), 'b'), 'c'))
    expect(record).toMatchObject({ active: 1, offered: 3 })
    expect(record.revisions.map(({ verdict }) => verdict)).toEqual(['healthy', 'superseded', 'failed'])
  })

  it('tries what failed again on request', () => {
    const record = resumeUnit(rolledBack())
    expect(record).toMatchObject({ active: 2, revisions: [{}, { verdict: 'progressing' }] })
    expect([record.pin, record.revisions[1]?.failure]).toEqual([undefined, undefined])
    expect(resumeUnit(record)).toBe(record)
  })
})

describe('a rollback on request', () => {
  const two = (): UnitRecord => noteHealthy(offer(healthy(), 'b'))

  it('is to the last healthy revision before the active one, and stays until the source gives something else', () => {
    const record = target(rollBackTo(two(), undefined, 5))
    expect(record).toMatchObject({ offered: 2, active: 1, base: 1, pin: { why: 'requested', atMs: 5 } })
    expect(offer(record, 'b')).toBe(record)
    expect(offer(record, 'c')).toMatchObject({ offered: 3, active: 3, base: 1 })
  })

  it('to one that was never healthy is judged, and never undone by the gate', () => {
    const record = target(rollBackTo(noteHealthy(offer(rolledBack(), 'c')), 2, 5))
    expect(isJudged(record)).toBe(true)
    expect(fail(record)).toMatchObject({ active: 2, base: 3, pin: { why: 'requested' } })
    expect(noteHealthy(record)).toMatchObject({ active: 2, base: 2, pin: { why: 'requested' } })
  })

  it('to what the source gives is no rollback any more', () => {
    const record = target(rollBackTo(target(rollBackTo(two(), undefined, 5)), 2, 6))
    expect(record).toMatchObject({ offered: 2, active: 2 })
    expect(record.pin).toBeUndefined()
  })

  it.each([
    [
      'without an earlier healthy one',
      healthy(),
      undefined,
      /no healthy revision is kept before revision 1/u,
    ],
    ['to one that is not kept', healthy(), 7, /revision 7 is not kept; there are 1/u],
    ['to the active one', healthy(), 1, /revision 1 is active already/u],
  ])('%s is refused', (_what, record, to, message) => {
    expect(rollBackTo(record, to, 5)).toEqual({ refusal: expect.stringMatching(message) })
  })

  it('is to no revision that failed, and to none after the active one', () => {
    expect(previousOf(noteHealthy(offer(rolledBack(), 'c')))).toMatchObject({ number: 1 })
    expect(previousOf(target(rollBackTo(two(), 1, 5)))).toBeUndefined()
  })

  it('finds no other than the content that is active', () => {
    expect(previousOf(noteHealthy(offer(two(), 'a')))).toMatchObject({ number: 2 })
    expect(previousOf(healthy())).toBeUndefined()
  })
})

describe('old revisions', () => {
  const many = (): UnitRecord => ['b', 'c', 'd', 'e'].reduce((record, hash) => offer(record, hash), healthy())
  const kept = (most: number, maxBytes: number, bytes = 1): readonly number[] =>
    pruneRevisions(many(), { most, maxBytes, bytesOf: () => bytes }).revisions.map(({ number }) => number)

  it.each([
    ['all', 9, 100, [1, 2, 3, 4, 5]],
    ['the newest and the one to go back to', 3, 100, [1, 3, 4, 5]],
    ['as many as have room', 9, 2, [1, 3, 4, 5]],
    ['what is needed, however little room there is', 1, 0, [1, 5]],
  ])('are kept: %s', (_what, most, maxBytes, numbers) => {
    expect(kept(most, maxBytes)).toEqual(numbers)
  })

  it('are never counted anew', () => {
    const record = pruneRevisions(rolledBack(), { most: 1, maxBytes: 0, bytesOf: () => 9 })
    expect(offer(offer(record, 'a'), 'c').revisions.at(-1)?.number).toBe(3)
  })
})

describe('a copy that was kept without Secrets', () => {
  const whole = { hash: 'a', hashWithoutSecrets: 'a-', pods: 1 }
  const record = (): UnitRecord =>
    offerContent(
      noteHealthy(createUnitRecord({ source: 'http', unit: 'http' }, whole, 1)),
      { hash: 'b', hashWithoutSecrets: 'b-', pods: 1 },
      2,
    )

  it('is what was offered, or what is active, where it differs from it in Secrets alone', () => {
    expect(matchCopy(record(), { hash: 'b-', pods: 1 })).toMatchObject({ hash: 'b' })
    expect(matchCopy(fail(record()), { hash: 'a-', pods: 1 })).toMatchObject({ hash: 'a' })
    expect(matchCopy(record(), { hash: 'b', hashWithoutSecrets: 'b-', pods: 1 })).toMatchObject({ hash: 'b' })
    expect(matchCopy(record(), { hash: 'c-', pods: 1 })).toEqual({ hash: 'c-', pods: 1 })
  })

  it('is itself where it is known as it is, also where it differs from what was offered in Secrets alone', () => {
    const twin = fail(
      offerContent(noteHealthy(record()), { hash: 'b2', hashWithoutSecrets: 'b-', pods: 1 }, 3),
    )
    const copy = { hash: 'b', hashWithoutSecrets: 'b-', pods: 1 }
    expect(twin).toMatchObject({ offered: 3, active: 2 })
    expect(matchCopy(twin, copy)).toBe(copy)
  })

  it('that was the first that was known is completed, and a content that had its Secrets is not', () => {
    const copied = createUnitRecord({ source: 'http', unit: 'http' }, { hash: 'a-', pods: 1 }, 1)
    expect(completeCopy(copied, whole)).toMatchObject({ latest: 1, revisions: [{ number: 1, ...whole }] })
    expect(completeCopy(copied, { ...whole, hashWithoutSecrets: 'c-' })).toBe(copied)
    expect(completeCopy(record(), { hash: 'd', hashWithoutSecrets: 'b-', pods: 1 }).revisions[1]?.hash).toBe(
      'b',
    )
  })
})

describe('a unit that its source does not give any more', () => {
  const week = 7 * 24 * 3_600_000
  const content = (hash: string) => ({ hash, pods: 1 })

  it('is remembered for a week where another revision counts in place of one that failed, and not otherwise', () => {
    const gone = noteGone(rolledBack(), 100)
    expect(gone).toMatchObject({ goneAtMs: 100, offered: 2, active: 1 })
    expect(gone && noteGone(gone, 99 + week)).toEqual(gone)
    expect(gone && noteGone(gone, 100 + week)).toBeUndefined()
    expect(noteGone(healthy(), 100)).toBeUndefined()
    expect(noteGone(target(rollBackTo(noteHealthy(offer(healthy(), 'b')), 1, 5)), 100)).toBeUndefined()
  })

  it('is taken up with what failed, and begins anew with anything else', () => {
    const gone = { ...rolledBack(), goneAtMs: 100 }
    expect(takeUp(gone, content('b'), 200)).toEqual(rolledBack())
    expect(takeUp(gone, content('a'), 200)).toBeUndefined()
    expect(takeUp(gone, content('b'), 100 + week)).toBeUndefined()
    expect(takeUp(rolledBack(), content('c'), 200)).toEqual(rolledBack())
  })
})

describe('a revision of which pods have not come into effect', () => {
  it('stays, and is the one to go back to where its other pods are healthy', () => {
    const open = noteHeld(offer(healthy(), 'b'), failure, false)
    expect(open).toMatchObject({ active: 2, base: 1, revisions: [{}, { verdict: 'failed' }] })
    const counts = noteHeld(offer(healthy(), 'b'), failure, true)
    expect(counts).toMatchObject({ active: 2, base: 2 })
    expect([isJudged(open), isJudged(counts)]).toEqual([true, true])
    expect(describeRecord(counts)).toBe('revision 2 is not in effect as a whole, and stays: it crashed')
    expect(fail(offer(counts, 'c'))).toMatchObject({ active: 2, pin: { why: 'failed' } })
    expect(previousOf(offer(counts, 'c'))?.number).toBe(2)
    expect(isJudged(noteHealthy(counts))).toBe(false)
  })

  it('keeps the images that it runs where it is the one to go back to, and only there', () => {
    const images = [{ pod: 'default/web', container: 'main', image: 'app:1', id: 'sha256:1' }]
    const imagesOf = (mayCount: boolean) =>
      noteHeld(offer(healthy(), 'b'), failure, mayCount, images).revisions.at(-1)?.images
    expect([imagesOf(true), imagesOf(false)]).toEqual([images, undefined])
  })

  it('is judged again when somebody resumes it after one that never was healthy', () => {
    const counts = noteHeld(offer(rolledBack(), 'c'), failure, true)
    const back = target(rollBackTo(counts, 2, 5))
    expect(back).toMatchObject({ base: 3, offered: 3, active: 2 })
    expect(resumeUnit(back)).toMatchObject({ active: 3, revisions: [{}, {}, { verdict: 'progressing' }] })
    const good = target(rollBackTo(noteHealthy(offer(rolledBack(), 'c')), 2, 5))
    expect(resumeUnit(good)).toMatchObject({ active: 3, revisions: [{}, {}, { verdict: 'healthy' }] })
  })

  it('is judged again when somebody resumes it', () => {
    const counts = noteHeld(offer(healthy(), 'b'), failure, true)
    const back = target(rollBackTo(counts, 1, 5))
    expect(resumeUnit(back)).toMatchObject({ active: 2, revisions: [{}, { verdict: 'progressing' }] })
  })
})

describe('what is said of a unit', () => {
  const requested = (): UnitRecord => target(rollBackTo(noteHealthy(offer(healthy(), 'b')), 1, 5))

  it.each<[string, UnitRecord, string | undefined, string]>([
    ['nothing where all is well', healthy(), undefined, ''],
    ['nothing while it is judged', offer(healthy(), 'b'), undefined, ''],
    ['nothing of a first revision that failed, for it has none to go back to', fail(first()), undefined, ''],
    [
      'which revision counts on request, and how that ends',
      requested(),
      'warning: revision 1 counts on request, and revision 2 is offered',
      'podd resume /pods/web.yaml` has what the source gives',
    ],
    [
      'why it went back',
      rolledBack(),
      'error: revision 2 failed, and revision 1 counts again: it crashed',
      'podd history /pods/web.yaml`',
    ],
    [
      'why it should go back where that is not allowed',
      fail(offer(healthy(), 'b'), false),
      'error: revision 2 failed, and is not rolled back: it crashed',
      'podd history /pods/web.yaml`',
    ],
    [
      'what has not come into effect',
      noteHeld(offer(healthy(), 'b'), failure, false),
      'warning: revision 2 is not in effect as a whole, and stays: it crashed',
      'podd describe pod POD',
    ],
  ])('is %s', (_what, record, message, hint) => {
    const problem = problemOf(record, '/pods/web.yaml')
    expect(problem && `${problem.severity}: ${problem.message}`).toBe(message)
    expect(problem?.place).toEqual(message === undefined ? undefined : { path: '/pods/web.yaml' })
    expect(problem?.hint ?? '').toContain(hint)
  })

  it('is why it failed before, where it went back from one that had not come into effect', () => {
    const back = { ...noteHeld(offer(healthy(), 'b'), failure, false), active: 1 }
    const pinned: UnitRecord = { ...back, pin: { why: 'failed', atMs: 9 } }
    expect(problemOf(pinned, '/pods/web.yaml')).toMatchObject({ severity: 'error' })
  })

  it('is to go back once it failed and nothing keeps it', () => {
    const failed = fail(offer(healthy(), 'b'), false)
    expect([healthy(), failed, rolledBack(), fail(first())].map((each) => isToGoBack(each))).toEqual([
      false,
      true,
      false,
      false,
    ])
  })
})

describe('what follows from a verdict that is not a good one', () => {
  const failures = [{ pod: 'default/a', reason: 'PodFailed', message: 'it failed' } as const]
  const failedVerdict = { kind: 'failed', failures, wakeAtMs: undefined } as const
  const heldVerdict = (rest: 'may-count' | 'open' | 'none') =>
    ({ kind: 'held', failures, rest, wakeAtMs: undefined }) as const
  const may = { mayGoBack: true, isWhole: true }
  const progressing = offer(healthy(), 'b')
  const stuck = noteHeld(progressing, failure, false)

  it.each([
    ['a new failure fails it', progressing, failedVerdict, may, 'fail'],
    ['a failure of one that was held fails it', stuck, failedVerdict, may, 'fail'],
    ['one that is known to have failed goes back', fail(progressing, false), failedVerdict, may, 'go-back'],
    [
      'one that may not go back stays',
      fail(progressing, false),
      failedVerdict,
      { ...may, mayGoBack: false },
      'wait',
    ],
    ['one that has none to go back to stays', fail(first()), failedVerdict, may, 'wait'],
    ['a new one whose pods wait is held', progressing, heldVerdict('open'), may, 'hold'],
    ['one that is held already stays', stuck, heldVerdict('open'), may, 'wait'],
    ['one that is held counts once its other pods are healthy', stuck, heldVerdict('may-count'), may, 'hold'],
    ['one that counts stays', noteHeld(progressing, failure, true), heldVerdict('may-count'), may, 'wait'],
    ['a new one of which no pod may run fails', progressing, heldVerdict('none'), may, 'fail'],
    ['one that was held and of which no pod may run fails', stuck, heldVerdict('none'), may, 'fail'],
    [
      'one of which not all pods are judged is held',
      progressing,
      heldVerdict('none'),
      { ...may, isWhole: false },
      'hold',
    ],
    [
      'one that may not go back is held',
      progressing,
      heldVerdict('none'),
      { ...may, mayGoBack: false },
      'hold',
    ],
  ] as const)('%s', (_what, record, verdict, facts, step) => {
    expect(decideStep(record, verdict, facts)).toBe(step)
  })
})
