import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { admitPod } from '../../../../src/decide/admission/admit-pod.ts'
import type { Neighbour, HostLimits } from '../../../../src/decide/admission/admit-pod.ts'
import { planReplacements } from '../../../../src/decide/admission/plan-replacements.ts'
import type { Readiness, WaitingVersion } from '../../../../src/decide/admission/plan-replacements.ts'
import type { Pod } from '../../../../src/pod/schema/pod-schema.ts'
import { makePod } from '../../../support/pod-builders.ts'

/** What a pod asks for: a host port (0 for none), processors, GiB of memory, and an exclusive claim. */
interface Wish {
  readonly port?: number
  readonly cpu?: number
  readonly memory?: number
  readonly claim?: string
}

const capacity = { cpu: 4, memory: 4 }
const limits: HostLimits = { maxPods: 20, allocatable: { cpu: '4', memory: '4Gi' } }

function podOf(name: string, { port = 0, cpu = 0, memory = 0, claim }: Wish): Pod {
  const container: JsonObject = {
    ports: [{ containerPort: 80, hostPort: port }],
    resources: { requests: { cpu: String(cpu), memory: `${memory}Gi` } },
  }
  const volumes = claim === undefined ? [] : [{ name: 'v', persistentVolumeClaim: { claimName: claim } }]
  return makePod({ name, containers: [{ name: 'a', ...container }], spec: { volumes } })
}

const keyOf = (name: string): string => `default/${name}`

function version(name: string, wish: Wish, readiness: Readiness = { kind: 'ready' }): WaitingVersion {
  const exclusiveClaims = wish.claim === undefined ? [] : [wish.claim]
  return { key: keyOf(name), pod: podOf(name, wish), exclusiveClaims, readiness }
}

function holder(name: string, wish: Wish, more: Partial<Neighbour> = {}): Neighbour {
  return { key: keyOf(name), pod: podOf(name, wish), ...more }
}

interface Case {
  /** By name: what it has. */
  readonly pods: Readonly<Record<string, Wish>>
  /** By name: what its new version asks for. */
  readonly versions: Readonly<Record<string, Wish>>
  readonly ending?: readonly string[]
  readonly ended?: readonly string[]
  /** By name: what is reserved for one that doesn't run yet. */
  readonly promised?: Readonly<Record<string, Wish>>
  readonly readiness?: Readonly<Record<string, Readiness>>
}

function planOf({ pods, versions, ending = [], ended = [], promised = {}, readiness = {} }: Case) {
  const plan = planReplacements({
    pods: [
      ...Object.entries(pods).map(([name, wish]) =>
        holder(name, wish, { isEnding: ending.includes(name), hasEnded: ended.includes(name) }),
      ),
      ...Object.entries(promised).map(([name, wish]) => holder(name, wish, { isPromised: true })),
    ],
    versions: Object.entries(versions).map(([name, wish]) => version(name, wish, readiness[name])),
    limits,
  })
  const short = (key: string): string => key.replace('default/', '')
  return {
    release: plan.release.map((group) => group.map((key) => short(key)).join('+')),
    prepare: plan.prepare.map((key) => short(key)),
    waiting: [...plan.waiting.keys()].map((key) => short(key)),
    messages: [...plan.waiting.values()],
  }
}

/** Pods that have nothing, and ask for nothing. */
const bystanders = Object.fromEntries(Array.from({ length: 10 }, (_, at): [string, Wish] => [`z${at}`, {}]))

const unprepared: Readiness = { kind: 'unprepared' }
const failed: Readiness = { kind: 'failed', message: 'no image' }

describe('planReplacements', () => {
  it.each<[string, Case, { release?: string[]; prepare?: string[]; waiting?: string[] }]>([
    ['nothing that waits', { pods: { a: { port: 1 } }, versions: {} }, {}],
    [
      'one whose port is free',
      { pods: { a: { port: 1 } }, versions: { a: { port: 2 } } },
      { release: ['a'] },
    ],
    [
      'one whose port another pod keeps',
      { pods: { a: { port: 1 }, b: { port: 2 } }, versions: { a: { port: 2 } } },
      { waiting: ['a'] },
    ],
    [
      'two that swap ports',
      { pods: { a: { port: 1 }, b: { port: 2 } }, versions: { a: { port: 2 }, b: { port: 1 } } },
      { release: ['a+b'] },
    ],
    [
      'one beside a pod that ends and what is reserved in its place, which never hold together',
      {
        pods: { a: { cpu: 1 }, e: { cpu: 2 } },
        ending: ['e'],
        promised: { p: { cpu: 2 } },
        versions: { a: { cpu: 2 } },
      },
      { release: ['a'] },
    ],
    [
      'two that swap claims',
      {
        pods: { a: { claim: 'x' }, b: { claim: 'y' } },
        versions: { a: { claim: 'y' }, b: { claim: 'x' } },
      },
      { release: ['a+b'] },
    ],
    [
      'two that trade cpu for memory',
      {
        pods: { a: { cpu: 3, memory: 1 }, b: { cpu: 1, memory: 3 } },
        versions: { a: { cpu: 1, memory: 3 }, b: { cpu: 3, memory: 1 } },
      },
      { release: ['a+b'] },
    ],
    [
      'three that trade a port, cpu and memory',
      {
        pods: { a: { port: 1, cpu: 3 }, b: { cpu: 1, memory: 3 }, c: { memory: 1 } },
        versions: { a: { cpu: 1, memory: 3 }, b: { cpu: 3, memory: 1 }, c: { port: 1 } },
      },
      { release: ['a+b+c'] },
    ],
    [
      'a ring of four',
      {
        pods: { a: { port: 1 }, b: { port: 2 }, c: { port: 3 }, d: { port: 4 } },
        versions: { a: { port: 2 }, b: { port: 3 }, c: { port: 4 }, d: { port: 1 } },
      },
      { release: ['a+b+c+d'] },
    ],
    [
      'a chain, one after the other',
      {
        pods: { a: { port: 1 }, b: { port: 2 }, c: { port: 3 } },
        versions: { a: { port: 2 }, b: { port: 3 }, c: { port: 4 } },
      },
      { release: ['c'], waiting: ['a', 'b'] },
    ],
    [
      'a circle, and one that waits for a part of it',
      {
        pods: { d: {}, a: { port: 1, cpu: 3 }, b: { port: 2 } },
        versions: { d: { cpu: 3 }, a: { port: 2 }, b: { port: 1 } },
      },
      { release: ['a+b'], waiting: ['d'] },
    ],
    [
      'a circle beside a competitor that came first',
      {
        pods: { d: { port: 9 }, a: { port: 1 }, b: { port: 2 } },
        versions: { d: { port: 1 }, a: { port: 2 }, b: { port: 1 } },
      },
      { release: ['a+b'], waiting: ['d'] },
    ],
    [
      'a circle whose images are not there',
      {
        pods: { a: { port: 1 }, b: { port: 2 } },
        versions: { a: { port: 2 }, b: { port: 1 } },
        readiness: { a: unprepared, b: { kind: 'preparing' } },
      },
      { prepare: ['a'] },
    ],
    [
      'a circle with one that cannot start',
      {
        pods: { a: { port: 1 }, b: { port: 2 } },
        versions: { a: { port: 2 }, b: { port: 1 } },
        readiness: { b: failed },
      },
      { waiting: ['a', 'b'] },
    ],
    [
      'a circle for which another one can stand in',
      {
        pods: { a: { cpu: 2 }, b: { cpu: 1, memory: 3 }, c: { cpu: 1, memory: 1 } },
        versions: { a: { cpu: 3 }, b: { memory: 3, port: 1 }, c: { memory: 1, port: 1 } },
        readiness: { b: failed },
      },
      { release: ['c'], waiting: ['a', 'b'] },
    ],
    [
      'two that want the same free port',
      { pods: { a: {}, b: {} }, versions: { a: { port: 1 }, b: { port: 1 } } },
      { release: ['a'], waiting: ['b'] },
    ],
    [
      'two that want the same free port, the second of which is ready',
      {
        pods: { a: {}, b: {} },
        versions: { a: { port: 1 }, b: { port: 1 } },
        readiness: { a: unprepared },
      },
      { release: ['b'], waiting: ['a'] },
    ],
    [
      'a port of a pod that is ending',
      { pods: { a: { port: 1 }, b: { port: 2 } }, versions: { a: { port: 2 } }, ending: ['b'] },
      { waiting: ['a'] },
    ],
    [
      'more than the host has',
      { pods: { a: { cpu: 1 }, b: { cpu: 3 } }, versions: { a: { cpu: 5 }, b: { cpu: 0 } } },
      { release: ['b'], waiting: ['a'] },
    ],
    [
      'one that takes what a pod that has ended had',
      { pods: { a: { cpu: 1 }, b: { cpu: 3 } }, versions: { a: { cpu: 3 } }, ended: ['b'] },
      { release: ['a'] },
    ],
    [
      'one that has room beside a pod that is ending, and then beside what is reserved',
      {
        pods: { a: {}, b: { cpu: 3 } },
        versions: { a: { cpu: 1 } },
        ending: ['b'],
        promised: { b: { cpu: 1 } },
      },
      { release: ['a'] },
    ],
    [
      'one whose port is reserved for a new version that was itself replaced by another one',
      {
        pods: { a: { port: 1 }, b: { port: 4 } },
        versions: { a: { port: 2 }, b: { port: 3 } },
        promised: { b: { port: 2 } },
      },
      { release: ['b'], waiting: ['a'] },
    ],
    [
      'one whose port is reserved for an earlier version of its own pod',
      { pods: { a: { port: 1 } }, versions: { a: { port: 2 } }, promised: { a: { port: 2 } } },
      { waiting: ['a'] },
    ],
    [
      'one for which there is no room beside what is reserved for an earlier version of its own pod',
      { pods: { a: { cpu: 1 } }, versions: { a: { cpu: 2 } }, promised: { a: { cpu: 3 } } },
      { waiting: ['a'] },
    ],
    [
      'one that grows, without room beside what is reserved for an earlier version of another pod that is replaced',
      {
        pods: { a: { cpu: 1 }, b: {} },
        versions: { b: {}, a: { cpu: 2 } },
        promised: { b: { cpu: 3 } },
      },
      { release: ['b'], waiting: ['a'] },
    ],
    [
      'two that trade, where less is reserved for an earlier version of one of them than it has',
      {
        pods: { a: { memory: 3 }, b: { cpu: 3 } },
        versions: { a: { cpu: 3 }, b: { memory: 3 } },
        promised: { b: { cpu: 1 } },
      },
      { release: ['a+b'] },
    ],
    [
      'one that trades with the second of two, of which the first cannot start, beside many that free nothing',
      {
        pods: { a: { memory: 1 }, p: { cpu: 2 }, r: { cpu: 2 }, q: { memory: 3 }, ...bystanders },
        versions: {
          a: { cpu: 2, port: 1 },
          p: { memory: 2 },
          r: { memory: 1 },
          q: { port: 1 },
          ...bystanders,
        },
      },
      { release: ['a+r', ...Object.keys(bystanders)], waiting: ['p', 'q'] },
    ],
    [
      'two with room beside the old version of the first',
      { pods: { a: { cpu: 2 }, b: { cpu: 1 } }, versions: { a: { cpu: 1 }, b: { cpu: 2 } } },
      { release: ['a', 'b'] },
    ],
    [
      'two that grow, with room beside the others for the first only',
      { pods: { a: {}, b: {}, c: { cpu: 1 } }, versions: { a: { cpu: 2 }, b: { cpu: 2 } } },
      { release: ['a'], waiting: ['b'] },
    ],
    [
      'two that grow, with room for both once another pod has ended',
      {
        pods: { a: {}, b: {}, c: { cpu: 1 } },
        versions: { a: { cpu: 2 }, b: { cpu: 2 } },
        ending: ['c'],
      },
      { release: ['a', 'b'] },
    ],
    [
      'one that trades with any of two, of which one gives more',
      {
        pods: { a: { memory: 2 }, b: { cpu: 2, memory: 1 }, c: { cpu: 2, memory: 1 } },
        versions: { a: { cpu: 1, memory: 1 }, b: { cpu: 1, memory: 2 }, c: { memory: 2 } },
      },
      { release: ['a+c'], waiting: ['b'] },
    ],
    [
      'one that trades with any of two, which give the same',
      {
        pods: { a: { memory: 2 }, b: { cpu: 2, memory: 1 }, c: { cpu: 2, memory: 1 } },
        versions: { a: { cpu: 1, memory: 1 }, b: { memory: 2 }, c: { memory: 2 } },
      },
      { release: ['a+b'], waiting: ['c'] },
    ],
  ])('of %s', (_what, facts, expected) => {
    const { messages: _, ...plan } = planOf(facts)
    expect(plan).toEqual({ release: [], prepare: [], waiting: [], ...expected })
  })

  it('says what stands in the way, and who holds the others back', () => {
    const { messages } = planOf({
      pods: { a: { port: 1 }, b: { port: 2 }, c: { port: 3 }, d: { port: 4 }, e: {} },
      versions: { a: { port: 2 }, b: { port: 3 }, c: { port: 1 }, d: { port: 1 }, e: { cpu: 5 } },
      readiness: { c: failed },
    })
    const together = (others: string): string =>
      `its new version and that of ${others} start together, and that of default/c cannot start: no image`
    expect(messages).toEqual([
      `host port 2/TCP is held by pod default/b; ${together('default/b, default/c')}`,
      `host port 3/TCP is held by pod default/c; ${together('default/c, default/a')}`,
      'no image',
      'host port 1/TCP is held by pod default/a',
      "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
    ])
  })

  it('says what stands in the way, and not what the pod has itself', () => {
    const { messages } = planOf({
      pods: { a: { port: 1, cpu: 1 }, b: { cpu: 3 } },
      versions: { a: { port: 1, cpu: 2 } },
    })
    expect(messages).toEqual([
      "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
    ])
  })
})

/** What became of a pod of the model. */
interface ModelPod {
  readonly name: string
  has: Wish | undefined
  isEnding: boolean
  /** Its new version, until it runs. */
  next: Wish | undefined
  readiness: Readiness
  readonly isBroken: boolean
  wasReleased: boolean
}

/** Whether these can run beside each other. */
function canCoexist(wishes: readonly Wish[]): boolean {
  const sum = (of: (wish: Wish) => number | undefined): number =>
    wishes.reduce((total, wish) => total + (of(wish) ?? 0), 0)
  const unique = (values: readonly unknown[]): boolean => new Set(values).size === values.length
  return (
    unique(wishes.flatMap(({ port = 0 }) => (port === 0 ? [] : [port]))) &&
    unique(wishes.flatMap(({ claim }) => claim ?? [])) &&
    sum(({ cpu }) => cpu) <= capacity.cpu &&
    sum(({ memory }) => memory) <= capacity.memory
  )
}

class Model {
  readonly pods: ModelPod[] = []

  constructor(given: readonly (readonly [Wish, Wish | undefined, boolean])[]) {
    for (const [has, next, isBroken] of given) {
      if (!canCoexist([...this.pods.map((pod) => pod.has ?? {}), has])) continue
      const name = `p${this.pods.length}`
      const readiness: Readiness = { kind: 'unprepared' }
      this.pods.push({ name, has, isEnding: false, next, readiness, isBroken, wasReleased: false })
    }
  }

  get waiting(): readonly ModelPod[] {
    return this.pods.filter(({ next, wasReleased }) => next !== undefined && !wasReleased)
  }

  neighbours(but?: ModelPod): readonly Neighbour[] {
    return this.pods.flatMap((pod) => {
      const { name, has, next, isEnding, wasReleased } = pod
      const holds = has === undefined ? [] : [holder(name, has, { isEnding })]
      const promised =
        wasReleased && next !== undefined && pod !== but ? [holder(name, next, { isPromised: true })] : []
      return [...holds, ...promised]
    })
  }

  /** Carries out a plan; gives whether there was anything to do. */
  act(): boolean {
    const { release, prepare } = planReplacements({
      pods: this.neighbours(),
      versions: this.waiting.map(({ name, next, readiness }) => version(name, next ?? {}, readiness)),
      limits,
    })
    for (const key of release.flat()) {
      const pod = this.#named(key)
      pod.isEnding = true
      pod.wasReleased = true
    }
    for (const key of prepare) this.#named(key).readiness = { kind: 'preparing' }
    return release.length > 0 || prepare.length > 0
  }

  /** Something comes to its end, of all that does; gives whether there was anything. */
  pass(choice: number): boolean {
    const open = this.pods.filter(
      ({ isEnding, readiness, wasReleased }) => isEnding || (readiness.kind === 'preparing' && !wasReleased),
    )
    const pod = open[choice % Math.max(1, open.length)]
    if (pod === undefined) return false
    if (pod.isEnding) {
      pod.isEnding = false
      pod.has = undefined
    } else pod.readiness = pod.isBroken ? { kind: 'failed', message: 'broken' } : { kind: 'ready' }
    this.#startFree()
    return true
  }

  #startFree(): void {
    for (const pod of this.pods) {
      if (!pod.wasReleased || pod.has !== undefined || pod.next === undefined) continue
      const admission = admitPod(podOf(pod.name, pod.next), this.neighbours(pod), limits)
      expect(admission.kind).not.toBe('rejected')
      if (admission.kind !== 'admitted') continue
      pod.has = pod.next
      pod.next = undefined
    }
  }

  #named(key: string): ModelPod {
    const pod = this.pods.find(({ name }) => keyOf(name) === key)
    if (pod === undefined) throw new Error(`there is no pod ${key}`)
    return pod
  }
}

const someWish = fc.record(
  {
    port: fc.integer({ min: 0, max: 4 }),
    cpu: fc.integer({ min: 0, max: 3 }),
    memory: fc.integer({ min: 0, max: 3 }),
  },
  { requiredKeys: [] },
)
/** New versions often ask for what another pod has. */
const somePods = fc
  .array(
    fc.tuple(
      someWish,
      fc.option(fc.oneof(someWish, fc.nat(5), fc.nat(5)), { nil: undefined, freq: 6 }),
      fc.integer({ min: 0, max: 5 }),
    ),
    { minLength: 2, maxLength: 6 },
  )
  .map((given) =>
    given.map(([has, next, luck]): readonly [Wish, Wish | undefined, boolean] => [
      has,
      typeof next === 'number' ? given[next % given.length]?.[0] : next,
      luck === 0,
    ]),
  )

describe('pods whose manifests changed in any way', () => {
  it('never hold the same thing twice, lose no pod, and settle all that can be settled', () => {
    fc.assert(
      fc.property(somePods, fc.array(fc.nat(7), { minLength: 1, maxLength: 30 }), (given, choices) => {
        const model = new Model(given)
        let turn = 0
        do {
          while (model.act()) expect((turn += 1)).toBeLessThan(100)
          expect(canCoexist(model.pods.flatMap(({ has }) => has ?? []))).toBe(true)
          turn += 1
        } while (model.pass(choices[turn % choices.length] ?? 0))
        expect(model.pods.every(({ has }) => has !== undefined)).toBe(true)
        const open = model.waiting.filter(({ isBroken }) => !isBroken)
        for (let mask = 1; mask < 1 << open.length; mask += 1) {
          const group = open.filter((_pod, i) => (mask & (1 << i)) !== 0)
          const others = model.pods.filter((pod) => !group.includes(pod)).map(({ has }) => has ?? {})
          expect(canCoexist([...others, ...group.map(({ next }) => next ?? {})])).toBe(false)
        }
      }),
      { numRuns: 400 },
    )
  })
})
