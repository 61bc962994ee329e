import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { computeEndingActions, computeTerminationWaves } from '../../../../src/decide/plan/ending.ts'
import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { factsToJson, planToJson } from '../../../../src/decide/plan/facts-json.ts'
import { hasFinished } from '../../../../src/decide/plan/progress.ts'
import { deriveStatus } from '../../../../src/decide/status/derive-status.ts'
import type { PodAction, PodPlan } from '../../../../src/decide/plan/pod-action.ts'
import { backoffLimits, computeRestartTiming } from '../../../../src/decide/plan/backoff.ts'
import type { ObservedContainer } from '../../../../src/pod/state/observed.ts'
import type { BackoffEntry } from '../../../../src/pod/state/pod-record.ts'
import { bootId, factsFromLog, nowMs, statusFacts } from '../../../support/pod-builders.ts'
import { someEvents, somePod } from './arbitrary-pod.ts'
import { PodModel } from './pod-model.ts'

const runs = { numRuns: 120 }

/** A pod to which things have happened. */
const somePast = fc.tuple(somePod, someEvents).map(([pod, events]) => {
  const model = new PodModel(pod)
  for (const event of events) model.happen(event)
  return model
})

const idsOf = (things: readonly { readonly id: string }[]): readonly string[] => things.map(({ id }) => id)
const kindsOf = (actions: readonly PodAction[]): readonly string[] => actions.map(({ kind }) => kind)
const removedBy = (actions: readonly PodAction[]): readonly string[] =>
  actions.flatMap((action): readonly string[] => ('ids' in action ? action.ids : []))

/** Lists of ids are sets, and a map's order says nothing. */
function plain(plan: PodPlan): unknown {
  return {
    wakeAtMs: plan.wakeAtMs,
    waiting: Object.fromEntries(plan.waiting),
    removed: new Set(removedBy(plan.actions)),
    actions: plan.actions.filter((action) => !('ids' in action)),
  }
}

/** Merges the containers of the names in another order; those of one name stay newest first. */
function interleave(
  containers: readonly ObservedContainer[],
  order: readonly number[],
): readonly ObservedContainer[] {
  const queues = [...Map.groupBy(containers, ({ name }) => name).values()].map((queue) => queue.slice())
  const merged: ObservedContainer[] = []
  for (let step = 0; merged.length < containers.length; step += 1) {
    const left = queues.filter((queue) => queue.length > 0)
    const next = left[(order[step % order.length] ?? 0) % left.length]?.shift()
    if (next !== undefined) merged.push(next)
  }
  return merged
}

/** Looks and acts, and lets time pass and all go well in between, until nothing is left to do. */
function settle(model: PodModel): PodPlan {
  let plan = model.act()
  for (let step = 0; step < 80; step += 1) {
    if (plan.actions.length === 0) {
      if (plan.wakeAtMs !== undefined) model.nowMs = Math.max(model.nowMs, plan.wakeAtMs)
      else if (!model.goWell()) break
    }
    plan = model.act()
  }
  return plan
}

describe('a pod to which anything may happen', () => {
  it('is never told to start what runs, what has finished or what has no sandbox, nor to count down', () => {
    fc.assert(
      fc.property(somePod, someEvents, (pod, events) => {
        const model = new PodModel(pod)
        // The model breaks by itself when it is told what must never be.
        expect(() => events.forEach((event) => model.happen(event))).not.toThrow()
      }),
      { numRuns: 300 },
    )
  })

  it('comes to rest when nothing more goes wrong', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        expect(settle(model)).toMatchObject({ actions: [], wakeAtMs: undefined })
        const running = model.containers.filter(({ state }) => state === 'running')
        const ready = model.sandboxes.filter((sandbox) => sandbox.ready)
        const left = hasFinished(model.facts()) ? [...running, ...ready] : []
        expect(left).toEqual([])
      }),
      runs,
    )
  })

  it('is shown as over once all its main containers have ended for good', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        const plan = settle(model)
        const isOver = hasFinished(model.facts()) || plan.isLost === true
        expect({ isOver, phase: model.phase(plan) }).toEqual({
          isOver,
          phase: expect.stringMatching(isOver ? /^(Succeeded|Failed)$/ : /^(Pending|Running)$/),
        })
      }),
      { numRuns: 300 },
    )
  })

  it('is never started again once it was shown as over, at whatever moment', () => {
    fc.assert(
      fc.property(somePod, someEvents, (pod, events) => {
        const model = new PodModel(pod)
        let isOver = false
        const look = (plan?: PodPlan): void => {
          const phase = model.phase(plan)
          const ends = phase === 'Succeeded' || phase === 'Failed'
          expect({ phase, isOver }).toEqual({ phase, isOver: isOver && ends })
          isOver = ends
        }
        model.onStep = look
        for (const event of events) {
          model.happen(event)
          // Who asks for it gets a pod to run that is over.
          if (event.kind === 'restart-asked') isOver = false
          look()
        }
      }),
      { numRuns: 300 },
    )
  })

  it('runs in the end whatever may always run again', () => {
    const restless = somePast.filter(({ pod: { spec } }) => {
      const policies = spec.initContainers.map((init) => init.restartPolicy ?? spec.restartPolicy)
      return spec.restartPolicy !== 'Never' && !policies.includes('Never')
    })
    fc.assert(
      fc.property(restless, (model) => {
        settle(model)
        const { spec } = model.pod
        const wanted = spec.containers.filter((c) => (c.restartPolicy ?? spec.restartPolicy) === 'Always')
        const newest = model.sandboxes[0]?.id
        const running = model.containers
          .filter(({ state, sandboxId }) => state === 'running' && sandboxId === newest)
          .map(({ name }) => name)
        expect(running).toEqual(expect.arrayContaining(wanted.map(({ name }) => name)))
      }),
      runs,
    )
  })

  it('is restarted in the end when somebody asks for it, whatever its policy', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        model.happen({ kind: 'restart-asked' })
        settle(model)
        const facts = model.facts()
        // An init container that dies with its sandbox meanwhile, or can't be told about, may end the pod.
        const { spec } = model.pod
        const mayFail = spec.initContainers.some((c) => (c.restartPolicy ?? spec.restartPolicy) === 'Never')
        const isOver = mayFail && hasFinished(facts)
        expect(isOver ? [] : [...(facts.restartRequested ?? [])]).toEqual([])
      }),
      runs,
    )
  })

  it('is never made to wait longer than the longest delay', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        const { wakeAtMs = model.nowMs + 1 } = computePodActions(model.facts())
        expect(wakeAtMs - model.nowMs).toBeGreaterThan(0)
        expect(wakeAtMs - model.nowMs).toBeLessThanOrEqual(300_000)
      }),
      runs,
    )
  })

  it('is told the same by equal facts, in whatever order they come', () => {
    fc.assert(
      fc.property(somePast, fc.array(fc.nat(5), { minLength: 1, maxLength: 8 }), (model, order) => {
        const facts = model.facts()
        const plan = plain(computePodActions(facts))
        const shuffled = {
          ...facts,
          pod: structuredClone(facts.pod),
          observed: { ...facts.observed, containers: interleave(facts.observed.containers, order) },
          history: Object.fromEntries(Object.entries(structuredClone(facts.history)).toReversed()),
          containerFacts: Object.fromEntries(Object.entries(facts.containerFacts).toReversed()),
        }
        expect(plain(computePodActions(shuffled))).toEqual(plan)
        expect(plain(computePodActions(facts))).toEqual(plan)
      }),
      runs,
    )
  })

  it('gets the same plan again from its facts as they are logged', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        const facts = model.facts()
        const replayed = computePodActions(factsFromLog(JSON.stringify(factsToJson(facts))))
        expect(planToJson(replayed)).toEqual(planToJson(computePodActions(facts)))
      }),
      runs,
    )
  })

  // id: told-nothing-more-than
  it('is told nothing more than to stop and to go once it ends', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        const first = computeEndingActions(model.observed, { stoppedBefore: false })
        const allowed = ['stop-pod', 'remove-containers', 'remove-sandboxes']
        expect(kindsOf(first.actions).filter((kind) => !allowed.includes(kind))).toEqual([])
        model.stopPod()
        const second = computeEndingActions(model.observed, { stoppedBefore: true })
        expect(second.kind).toBe('remove')
        expect(removedBy(second.actions)).toEqual([...idsOf(model.containers), ...idsOf(model.sandboxes)])
      }),
      runs,
    )
  })

  it('has each container that lives stopped once', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        const stopped = idsOf(computeTerminationWaves(model.observed, model.pod).flat())
        const live = model.containers.filter(({ state }) => state === 'running' || state === 'unknown')
        expect(new Set(stopped)).toEqual(new Set(idsOf(live)))
        expect(stopped).toHaveLength(live.length)
      }),
      runs,
    )
  })

  it('has a status that agrees with what is planned for it', () => {
    fc.assert(
      fc.property(somePast, (model) => {
        const facts = model.facts()
        const plan = computePodActions(facts)
        const { record } = statusFacts()
        const { status } = deriveStatus({
          ...statusFacts(),
          pod: model.pod,
          observed: facts.observed,
          record: {
            ...record,
            containers: facts.history,
            restartRequested: [...(facts.restartRequested ?? [])],
            restartsDue: [...(facts.restartsDue ?? [])],
            restartAll: [...(plan.restartAll ?? facts.restartAll ?? [])],
          },
          probes: facts.probes,
          waiting: plan.waiting,
        })
        const over = status.phase === 'Succeeded' || status.phase === 'Failed'
        const begun = ['start-container', 'create-sandbox']
        expect(over && kindsOf(plan.actions).some((kind) => begun.includes(kind))).toBe(false)
        expect(over && plan.wakeAtMs !== undefined).toBe(false)
        const shown = (status.containerStatuses ?? []).map(({ state }) => Object.keys(state).length)
        expect(new Set(shown)).toEqual(new Set([1]))
        const unready = status.containerStatuses?.filter(({ state }) => state.running === undefined)
        expect(unready?.some(({ ready }) => ready)).toBe(false)
      }),
      runs,
    )
  })
})

describe('crash backoff', () => {
  it('stays in its bounds, whatever the clock does', () => {
    const jump = fc.oneof(fc.constant(0), fc.integer({ min: -7_200_000, max: 7_200_000 }))
    const step = fc.record({ ranMs: fc.nat(900_000), waitedMs: fc.nat(400_000), jumpMs: jump })
    const limits = fc.constantFrom(backoffLimits(), backoffLimits(60_000), backoffLimits(1000))
    fc.assert(
      fc.property(limits, fc.array(step, { maxLength: 30 }), (bounds, steps) => {
        let clockMs = nowMs
        let previous: BackoffEntry | undefined
        for (const { ranMs, waitedMs, jumpMs } of steps) {
          clockMs += ranMs
          const finishedAtMs = clockMs
          clockMs += waitedMs + jumpMs
          const timing = computeRestartTiming({
            key: 'k',
            previous,
            finishedAtMs,
            nowMs: clockMs,
            bootId,
            limits: bounds,
          })
          if (timing.kind === 'now') previous = timing.entry
          const delayMs = timing.kind === 'now' ? timing.entry.delayMs : timing.delayMs
          expect(delayMs).toBeGreaterThanOrEqual(bounds.initialMs)
          expect(delayMs).toBeLessThanOrEqual(bounds.maxMs)
          const waitMs = timing.kind === 'now' ? 1 : timing.untilMs - clockMs
          expect(waitMs).toBeGreaterThan(0)
          expect(waitMs).toBeLessThanOrEqual(bounds.maxMs)
        }
      }),
      runs,
    )
  })
})
