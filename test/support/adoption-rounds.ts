import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { podIdentity } from './pod-identity.ts'
import { conditionOf, containerOf } from './podd-rig.ts'
import type { PoddRig } from './podd-rig.ts'
import { pick } from './seeded-random.ts'
import type { Moment, Struck } from './seeded-random.ts'
import { podOf, shellContainer, shellPod, wordsOf } from './shell-pods.ts'

/** What podd is in the middle of when it is killed. */
interface AdoptionMoment extends Moment {
  readonly kind: 'quiet' | 'start' | 'end' | 'change' | 'adoption'
  /** The pod that comes, goes or changes. */
  readonly pod?: string
}

const kinds: readonly AdoptionMoment['kind'][] = ['quiet', 'start', 'end', 'change', 'adoption']

/** Pods that must outlive every SIGKILL of podd as they are, and pods that come, change and go while it falls. */
export class AdoptionRounds implements Struck<AdoptionMoment> {
  readonly #rig: PoddRig
  readonly #steady = new Map<string, object>()
  /** Pods that came and are to stay, and how often each was to start: once, and once for each change. */
  readonly #coming = new Map<string, number>()
  #kills = 0

  constructor(rig: PoddRig) {
    this.#rig = rig
  }

  async open(): Promise<void> {
    const podd = this.#rig
    const readinessProbe = { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 10 }
    podd.drop('plain', shellPod('plain', podd.shared, 'say start; stay'))
    podd.drop('probed', shellPod('probed', podd.shared, 'say start; stay', { container: { readinessProbe } }))
    podd.drop(
      'rich',
      podOf('rich', podd.shared, [shellContainer('main', 'rich', 'say main; stay')], {
        spec: {
          initContainers: [
            shellContainer('setup', 'rich', 'say setup'),
            shellContainer('proxy', 'rich', 'say proxy; stay', { restartPolicy: 'Always' }),
          ],
        },
      }),
    )
    // Restarted once; then it stays.
    const restarted = 'say start; [ $(wc -l </shared/counted) -ge 2 ] && stay; exit 1'
    podd.drop('counted', shellPod('counted', podd.shared, restarted))
    for (const name of ['plain', 'probed', 'rich']) await podd.untilReady(name)
    await podd.untilPod(
      'counted',
      'its restart',
      (pod) => containerOf(pod, 'main').restartCount === 1 && conditionOf(pod, 'Ready') === 'True',
    )
    for (const pod of await podd.pods()) this.#steady.set(pod.metadata.name, podIdentity(pod))
  }

  async begin(round: number, random: () => number): Promise<AdoptionMoment> {
    const podd = this.#rig
    const kind = pick(random, kinds)
    const [known, starts = 0] = [...this.#coming][0] ?? []
    switch (kind) {
      case 'start': {
        const pod = `coming-${round}`
        this.#coming.set(pod, 1)
        podd.drop(pod, shellPod(pod, podd.shared, 'say start; stay'))
        return { kind, pod, withinMs: 1000 }
      }
      case 'end': {
        if (known === undefined) return { kind: 'quiet', withinMs: 500 }
        this.#coming.delete(known)
        podd.removeManifest(known)
        return { kind, pod: known, withinMs: 1000 }
      }
      case 'change': {
        if (known === undefined) return { kind: 'quiet', withinMs: 500 }
        const env = [{ name: 'ROUND', value: String(round) }]
        this.#coming.set(known, starts + 1)
        podd.drop(known, shellPod(known, podd.shared, 'say start; stay', { container: { env } }))
        return { kind, pod: known, withinMs: 1500 }
      }
      case 'adoption':
        await this.strike()
        podd.launch()
        return { kind, withinMs: 2000 }
      case 'quiet':
        return { kind, withinMs: 500 }
    }
  }

  async strike(): Promise<void> {
    await this.#rig.stopDaemon('SIGKILL')
    this.#kills += 1
  }

  outcome(): string {
    return `podd was killed ${this.#kills} times, and no container was restarted, doubled or forgotten`
  }

  async judge(_round: number, { kind, pod }: AdoptionMoment, random: () => number): Promise<void> {
    const podd = this.#rig
    if (random() < 0.3) await sleep(random() * 1000)
    await podd.startDaemon()
    if (pod !== undefined && kind === 'end') {
      await podd.untilGone(pod)
      // One that was killed before it started never does.
      const { starts, ends } = this.#said(pod)
      expect(ends, `ends of ${pod}`).toBeLessThanOrEqual(starts)
    }
    for (const [name, starts] of this.#coming) {
      await podd.until(`${starts} starts of ${name}`, () => this.#said(name).starts >= starts)
      const found = await podd.untilReady(name)
      expect(containerOf(found, 'main').restartCount, `restarts of ${name}`).toBe(0)
      expect(this.#said(name).starts, `starts of ${name}`).toBe(starts)
    }
    for (const [name, identity] of this.#steady)
      expect(podIdentity(await podd.untilReady(name))).toEqual(identity)
    expect(await podd.untilWords('plain', 1)).toEqual(['start'])
    expect(await podd.untilWords('probed', 1)).toEqual(['start'])
    expect(await podd.untilWords('rich', 3)).toEqual(['setup', 'proxy', 'main'])
    expect(await podd.untilWords('counted', 2)).toEqual(['start', 'start'])
  }

  #said(pod: string): { readonly starts: number; readonly ends: number } {
    const words = wordsOf(this.#rig.lines(pod))
    const count = (word: string): number => words.filter((each) => each === word).length
    return { starts: count('start'), ends: count('end') }
  }
}
