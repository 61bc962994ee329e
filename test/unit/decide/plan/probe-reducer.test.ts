import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  applyEnding,
  applyFinding,
  followingTickMs,
  initialVerdict,
  nextProbeMs,
  startProbeState,
} from '../../../../src/decide/plan/probe-reducer.ts'
import type { ProbeFacts, ProbeFinding, ProbeState } from '../../../../src/decide/plan/probe-reducer.ts'
import type { ProbeKind } from '../../../../src/decide/plan/pod-facts.ts'

const thresholds = (successThreshold: number, failureThreshold: number) => ({
  successThreshold,
  failureThreshold,
})

/** `s` success, `f` failure, `e` errored. */
function findings(word: string): ProbeFinding[] {
  return word.split('').map((letter) => (letter === 's' ? 'success' : letter === 'f' ? 'failure' : 'errored'))
}

function run(kind: ProbeKind, word: string, success = 1, fail = 3, state = startProbeState(kind, 'c1')) {
  return findings(word).reduce<ProbeState>(
    (before, finding) => applyFinding(kind, thresholds(success, fail), before, finding),
    state,
  )
}

describe('verdicts', () => {
  it.each([
    ['liveness', 'success'],
    ['readiness', 'failure'],
    ['startup', 'unknown'],
  ] as const)('of %s stand at %s before the first probe', (kind, verdict) => {
    expect(initialVerdict(kind)).toBe(verdict)
    expect(startProbeState(kind, 'c1')).toMatchObject({ verdict, run: 0, onHold: false, containerId: 'c1' })
  })

  it('taken over from before a restart of podd stand until probes say otherwise', () => {
    const adopted = startProbeState('readiness', 'c1', 'success')
    expect(adopted.verdict).toBe('success')
    expect(run('readiness', 'ff', 1, 3, adopted).verdict).toBe('success')
    expect(run('readiness', 'fff', 1, 3, adopted).verdict).toBe('failure')
  })

  it.each([
    ['readiness', 's', 1, 3, 'success'],
    ['readiness', 'ss', 3, 3, 'failure'],
    ['readiness', 'sss', 3, 3, 'success'],
    ['readiness', 'ssfs', 3, 3, 'failure'],
    ['readiness', 'sff', 1, 3, 'success'],
    ['readiness', 'sfff', 1, 3, 'failure'],
    ['readiness', 'sffsff', 1, 3, 'success'],
    ['readiness', 'sfffs', 1, 3, 'success'],
    ['liveness', 'ff', 1, 3, 'success'],
    ['liveness', 'fff', 1, 3, 'failure'],
    ['liveness', 'f', 1, 1, 'failure'],
    ['startup', 'ff', 1, 3, 'unknown'],
    ['startup', 'fff', 1, 3, 'failure'],
    ['startup', 'ffs', 1, 3, 'success'],
    ['liveness', 'eeeeee', 1, 1, 'success'],
    ['liveness', 'fefef', 1, 3, 'failure'],
    ['startup', 'eee', 1, 1, 'unknown'],
  ] as const)('%s %s with thresholds %i and %i: %s', (kind, word, success, fail, verdict) => {
    expect(run(kind, word, success, fail).verdict).toBe(verdict)
  })

  it.each([
    ['liveness', true],
    ['startup', true],
    ['readiness', false],
  ] as const)('a failure of %s holds further probes: %s', (kind, onHold) => {
    const state = run(kind, 'fff')
    expect(state).toMatchObject({ verdict: 'failure', onHold })
    expect(startProbeState(kind, 'c2').onHold).toBe(false)
  })

  it.each([
    ['liveness', 'success'],
    ['startup', 'success'],
    ['readiness', 'failure'],
  ] as const)('of %s are %s once the pod ends', (kind, verdict) => {
    expect(applyEnding(kind, startProbeState(kind, 'c1')).verdict).toBe(verdict)
  })
})

describe('whatever a probe finds', () => {
  const kinds = fc.constantFrom<ProbeKind>('liveness', 'readiness', 'startup')
  const words = fc.array(fc.constantFrom('s', 'f', 'e'), { maxLength: 40 }).map((letters) => letters.join(''))
  const threshold = fc.integer({ min: 1, max: 5 })

  it('a verdict is the last run that was long enough, and what erred never mattered', () => {
    fc.assert(
      fc.property(words, threshold, threshold, (word, success, fail) => {
        const said = word.replaceAll('e', '')
        const runs = [...said.matchAll(new RegExp(`s{${success},}|f{${fail},}`, 'g'))]
        const last = runs.at(-1)?.[0][0]
        const wanted = last === undefined ? 'failure' : last === 's' ? 'success' : 'failure'
        expect(run('readiness', word, success, fail).verdict).toBe(wanted)
      }),
    )
  })

  it('only liveness and startup hold, only on a failure, and held ones are never due', () => {
    fc.assert(
      fc.property(kinds, words, threshold, threshold, fc.boolean(), (kind, word, success, fail, ending) => {
        const state = run(kind, word, success, fail)
        const facts = { kind, state, ending, startedUp: true, notBeforeMs: 0, tickMs: 1 }
        const isDue = nextProbeMs(facts) !== undefined
        expect(state.onHold && (kind === 'readiness' || state.verdict !== 'failure' || isDue)).toBe(false)
      }),
    )
  })
})

describe('the next probe', () => {
  const facts: ProbeFacts = {
    kind: 'liveness',
    state: startProbeState('liveness', 'c1'),
    ending: false,
    startedUp: true,
    notBeforeMs: 5_000,
    tickMs: 7_000,
  }
  const startup = (verdict: ProbeState['verdict']): Partial<ProbeFacts> => ({
    kind: 'startup',
    state: { ...startProbeState('startup', 'c1'), verdict },
    startedUp: false,
  })
  it.each<[string, Partial<ProbeFacts>, number | undefined]>([
    ['comes with the period', {}, 7_000],
    ['waits for the initial delay', { notBeforeMs: 9_000 }, 9_000],
    ['waits for the startup probe', { startedUp: false }, undefined],
    ['of startup waits for nobody', startup('unknown'), 7_000],
    ['of startup never comes once it has passed', startup('success'), undefined],
    ['never comes while on hold', { state: { ...facts.state, onHold: true } }, undefined],
    ['of liveness never comes while the pod ends', { ending: true }, undefined],
    ['of startup never comes while the pod ends', { ...startup('unknown'), ending: true }, undefined],
    ['of readiness comes while the pod ends', { kind: 'readiness', ending: true }, 7_000],
  ])('%s', (_what, change, dueMs) => {
    expect(nextProbeMs({ ...facts, ...change })).toBe(dueMs)
  })

  it.each([
    [1_000, 1_020, 2_000],
    [1_000, 2_000, 2_000],
    [1_000, 4_300, 4_300],
    [1_030, 1_040, 2_100],
    [1_100.2, 1_140, 2_200],
  ])('due at %i and over at %i is followed at %i', (dueMs, nowMs, next) => {
    expect(followingTickMs(dueMs, 1_000, nowMs)).toBe(next)
  })
})
