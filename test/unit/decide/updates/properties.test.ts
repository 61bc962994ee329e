import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { judgeUnit, trackPod } from '../../../../src/decide/updates/health-gate.ts'
import type {
  GateSettings,
  PodSight,
  PodTrack,
  UnitVerdict,
} from '../../../../src/decide/updates/health-gate.ts'
import {
  createUnitRecord,
  fallbackOf,
  isJudged,
  noteFailed,
  noteHealthy,
  noteHeld,
  noteScale,
  offerContent,
  pruneRevisions,
  resumeUnit,
  revisionOf,
  rollBackTo,
} from '../../../../src/decide/updates/unit-revisions.ts'
import type { UnitRecord } from '../../../../src/decide/updates/unit-revisions.ts'

const settings: GateSettings = { minReadyMs: 10_000, crashes: 3, progressDeadlineMs: 600_000 }

/**
 * How a content's pod goes. `waits`: its new version never comes into effect, and the old one runs on. `flaps`: it is Ready,
 * and not, every five seconds.
 */
const ways = ['good', 'crashes', 'never-ready', 'waits', 'flaps', 'ends-badly', 'completes'] as const
type Way = (typeof ways)[number]
/** Contents that a source may give, each with its way; the first is good. */
const contents: readonly Way[] = ['good', 'good', ...ways]

type Happening =
  | { readonly kind: 'offer' | 'rollback'; readonly at: number }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'scale'; readonly pods: number }
  | { readonly kind: 'resume' | 'restart' | 'reboot' | 'restart-unsaved' }

/** A unit of one pod on a host where its contents go their ways; the decisions are podd's. */
class UnitModel {
  record: UnitRecord | undefined
  #saved: UnitRecord | undefined
  #nowMs = 0
  #track: PodTrack | undefined
  /** The hash of the content that is in effect. */
  running: string | undefined
  #uid = 0
  #effectiveMs = 0
  #isNew = false
  /** How many pods it has by each content. */
  #pods = 1
  readonly #unit: Pick<UnitRecord, 'source' | 'unit'>
  /** The numbers that were active, one after the other. */
  readonly history: number[] = []

  constructor(unit: Pick<UnitRecord, 'source' | 'unit'> = { source: 'file', unit: 'u' }) {
    this.#unit = unit
  }

  get way(): Way | undefined {
    return this.running === undefined ? undefined : contents[Number(this.running)]
  }

  happen(happening: Happening): void {
    const { record } = this
    switch (happening.kind) {
      case 'offer': {
        const content = { hash: String(happening.at), pods: this.#pods }
        const next =
          record === undefined
            ? createUnitRecord(this.#unit, content, this.#nowMs)
            : offerContent(record, content, this.#nowMs)
        this.#take(noteScale(next, content))
        this.#saved = record
        break
      }
      case 'scale': {
        this.#pods = happening.pods
        if (this.#pods === 0) this.running = undefined
        const hash = record && revisionOf(record, record.offered)?.hash
        if (hash !== undefined) this.happen({ kind: 'offer', at: Number(hash) })
        break
      }
      case 'rollback': {
        const outcome = record && rollBackTo(record, record.revisions[happening.at]?.number, this.#nowMs)
        if (outcome !== undefined && 'record' in outcome) this.#take(outcome.record)
        break
      }
      case 'resume':
        if (record !== undefined) this.#take(resumeUnit(record))
        break
      case 'pass':
        this.pass(happening.ms)
        break
      case 'restart-unsaved':
        // The newest content was acted upon, and podd died before it was recorded; the source still gives it.
        if (record !== undefined && this.#saved !== undefined && record.pin === undefined) {
          const hash = revisionOf(record, record.offered)?.hash ?? ''
          const content = { hash, pods: this.#pods }
          this.#start(noteScale(offerContent(this.#saved, content, this.#nowMs), content))
        }
        break
      case 'restart':
        this.#start(record)
        break
      case 'reboot':
        this.#start(record)
        // All starts anew, under the same UID.
        this.#effectiveMs = this.#nowMs
    }
  }

  #start(record: UnitRecord | undefined): void {
    this.#track = undefined
    this.#isNew = false
    if (record !== undefined) this.#take(record)
  }

  #take(record: UnitRecord): void {
    const before = this.record
    const kept = pruneRevisions(record, { most: 4, maxBytes: 100, bytesOf: () => 1 })
    this.#saved = kept
    if (before?.active !== kept.active) {
      this.#track = undefined
      this.history.push(kept.active)
    }
    this.record = kept
    const hash = revisionOf(kept, kept.active)?.hash
    if (hash === undefined) throw new Error('the active revision is not kept')
    const waits = contents[Number(hash)] === 'waits' && this.running !== undefined
    if (hash === this.running || waits || this.#pods === 0) return
    this.running = hash
    this.#uid += 1
    this.#effectiveMs = this.#nowMs
    this.#isNew = true
  }

  #see(): PodSight {
    const { record } = this
    const isActive = record !== undefined && revisionOf(record, record.active)?.hash === this.running
    const isBase = record !== undefined && revisionOf(record, record.base)?.hash === this.running
    if (!isActive && isBase) return { kind: 'held', by: 'former', message: '' }
    const ageMs = this.#nowMs - this.#effectiveMs
    const isBetween = !isActive
    const seen = { kind: 'seen', uid: String(this.#uid), isNew: this.#isNew, isBetween, message: '' } as const
    switch (this.way) {
      case 'crashes':
        return { ...seen, state: 'starting', crashes: { main: Math.floor(ageMs / 10_000) } }
      case 'good':
        return { ...seen, state: ageMs >= 2000 ? 'ready' : 'starting', crashes: {} }
      case 'flaps':
        return { ...seen, state: ageMs % 10_000 < 5000 ? 'ready' : 'starting', crashes: {} }
      case 'ends-badly':
        return { ...seen, state: ageMs >= 1000 ? 'failed' : 'starting', crashes: {} }
      case 'completes':
        return { ...seen, state: ageMs >= 1000 ? 'completed' : 'starting', crashes: {} }
      case 'never-ready':
      case 'waits':
      case undefined:
        return { ...seen, state: 'starting', crashes: {} }
    }
  }

  /** podd looks each second: at each change of a pod, and when its timer says so. */
  pass(ms: number): void {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; this.#nowMs += 1000) {
      if (this.record === undefined || !isJudged(this.record)) {
        this.#nowMs = endMs
        return
      }
      this.#act(this.#judge())
    }
  }

  #judge(): UnitVerdict {
    if (this.#pods === 0) return judgeUnit([], settings, this.#nowMs)
    const track = trackPod(this.#track, this.#see(), settings, this.#nowMs)
    this.#track = track
    return judgeUnit([{ pod: 'p', track }], settings, this.#nowMs)
  }

  #act(verdict: UnitVerdict): void {
    const { record } = this
    if (record === undefined || verdict.kind === 'progressing') return
    if (verdict.kind === 'healthy') this.#take(noteHealthy(record))
    else {
      const failure = { reason: 'r', message: 'm', atMs: this.#nowMs, containers: [] }
      if (verdict.kind === 'held') {
        if (revisionOf(record, record.active)?.verdict !== 'failed')
          this.#take(noteHeld(record, failure, verdict.rest === 'may-count'))
        return
      }
      this.#take(noteFailed(record, failure, { why: 'failed', mayRollBack: true }))
    }
  }
}

const someContent = fc.nat({ max: contents.length - 1 })
const someHappening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 5, arbitrary: someContent.map((at) => ({ kind: 'offer' as const, at })) },
  {
    weight: 5,
    arbitrary: fc.constantFrom(1000, 9000, 40_000, 700_000).map((ms) => ({ kind: 'pass' as const, ms })),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('resume', 'restart', 'reboot', 'restart-unsaved')
      .map((kind): Happening => ({ kind })),
  },
)
const someRollback: fc.Arbitrary<Happening> = fc
  .nat({ max: 3 })
  .map((at) => ({ kind: 'rollback' as const, at }))

const longMs = 4_000_000
const runs = { numRuns: 400 }

function live(
  happenings: readonly Happening[],
  begins: 'good' | 'anyhow',
  unit?: Pick<UnitRecord, 'source' | 'unit'>,
): UnitModel {
  const model = new UnitModel(unit)
  if (begins === 'good') {
    model.happen({ kind: 'offer', at: 0 })
    model.happen({ kind: 'pass', ms: 20_000 })
  }
  for (const happening of happenings) model.happen(happening)
  return model
}

describe('a unit to which anything may happen', () => {
  it('comes back to a content that runs, once it had one that was healthy', () => {
    fc.assert(
      fc.property(fc.array(someHappening, { maxLength: 30 }), (happenings) => {
        const model = live(happenings, 'good')
        model.pass(longMs)
        expect(['good', 'completes']).toContain(model.way)
      }),
      runs,
    )
  })

  it('comes to rest after what happened last, with one change at most', () => {
    const some = fc.array(
      fc.oneof({ weight: 5, arbitrary: someHappening }, { weight: 1, arbitrary: someRollback }),
      {
        maxLength: 30,
      },
    )
    fc.assert(
      fc.property(some, (happenings) => {
        const model = live(happenings, 'anyhow')
        const before = model.history.length
        model.pass(longMs)
        expect(model.history.length - before).toBeLessThanOrEqual(1)
      }),
      runs,
    )
  })

  it('does not try a content again that failed, until its source gives something else or somebody resumes it', () => {
    const quiet = fc.array(
      fc.oneof(
        fc.constantFrom('restart', 'reboot').map((kind): Happening => ({ kind })),
        fc.constantFrom(1000, 700_000).map((ms): Happening => ({ kind: 'pass', ms })),
      ),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(fc.array(someHappening, { maxLength: 20 }), quiet, (happenings, after) => {
        const model = live(happenings, 'good')
        model.pass(longMs)
        const offered = Number(model.record && revisionOf(model.record, model.record.offered)?.hash)
        const count = model.history.length
        for (const happening of after) {
          model.happen({ kind: 'offer', at: offered })
          model.happen(happening)
        }
        expect(model.history.length).toBe(count)
      }),
      runs,
    )
  })

  it('always keeps what is offered, what is active and what it goes back to, and goes back to nothing but what was healthy', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(someHappening, someRollback), { maxLength: 40 }), (happenings) => {
        const model = new UnitModel()
        for (const happening of happenings) {
          model.happen(happening)
          const { record } = model
          if (record === undefined) continue
          const { offered, active, base, pin, revisions } = record
          const numbers = new Set(revisions.map(({ number }) => number))
          const kept = [offered, active, ...(base === undefined ? [] : [base])]
          expect(kept.filter((number) => !numbers.has(number))).toEqual([])
          expect(pin === undefined).toBe(offered === active)
          expect(base === undefined ? 'healthy' : revisionOf(record, base)?.verdict).toBe('healthy')
          expect([undefined, 'healthy']).toContain(fallbackOf(record)?.verdict)
        }
      }),
      runs,
    )
  })
})

describe('a workload of the API to which anything may happen, and that is scaled meanwhile', () => {
  const unit = { source: 'api', unit: 'api:Deployment/default/web' } as const
  const someScale: fc.Arbitrary<Happening> = fc
    .nat({ max: 3 })
    .map((pods) => ({ kind: 'scale' as const, pods }))
  const some = fc.array(
    fc.oneof({ weight: 3, arbitrary: someHappening }, { weight: 1, arbitrary: someScale }),
    { maxLength: 30 },
  )

  it('comes back to a template that runs, once it had one that was healthy with a pod', () => {
    fc.assert(
      fc.property(some, (happenings) => {
        const model = live(happenings, 'good', unit)
        model.happen({ kind: 'scale', pods: 1 })
        model.pass(longMs)
        expect(['good', 'completes']).toContain(model.way)
      }),
      runs,
    )
  })

  it('has no other revision, pin or verdict by being scaled, once all is decided', () => {
    fc.assert(
      fc.property(some, fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 5 }), (happenings, scales) => {
        const model = live(happenings, 'anyhow', unit)
        model.happen({ kind: 'scale', pods: 1 })
        model.pass(longMs)
        const known = (): unknown => {
          const { record } = model
          return (
            record && {
              ...record,
              revisions: record.revisions.map(({ number, hash, verdict }) => [number, hash, verdict]),
            }
          )
        }
        const before = known()
        for (const pods of scales) {
          model.happen({ kind: 'scale', pods })
          model.happen({ kind: 'pass', ms: 1000 })
        }
        expect(known()).toEqual(before)
      }),
      runs,
    )
  })
})
