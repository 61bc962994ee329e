import { describe, expect, it } from 'vitest'
import {
  isOutdated,
  newestEnd,
  nextRestartCount,
  viewContainer,
} from '../../../../src/decide/plan/container-view.ts'
import { containerSpecHash } from '../../../../src/pod/values/hash.ts'
import type { ObservedContainer } from '../../../../src/pod/state/observed.ts'
import type { ContainerHistory } from '../../../../src/pod/state/pod-record.ts'
import { ended, exitedContainer, observedContainer, observedPod } from '../../../support/pod-builders.ts'

const live = observedContainer('a', { restartCount: 2 })
const exited = exitedContainer('a', 1, { restartCount: 1 })
const recorded = ended('a', 1, { restartCount: 1, message: 'last words' })

describe('viewContainer', () => {
  const view = (containers: readonly ObservedContainer[], history?: ContainerHistory, sandboxId?: string) =>
    viewContainer({
      name: 'a',
      observed: observedPod({ containers }),
      history,
      ...(sandboxId !== undefined && { sandboxId }),
    })

  it('sees nothing where there is nothing', () => {
    expect(view([observedContainer('b')])).toEqual({ kind: 'none' })
  })

  it('sees the newest', () => {
    expect(view([live, exited])).toEqual({ kind: 'live', container: live })
  })

  it.each(['created', 'running', 'unknown'] as const)('takes one that is %s for live', (state) => {
    expect(view([observedContainer('a', { state })]).kind).toBe('live')
  })

  it('tells an end by the runtime', () => {
    expect(view([exited])).toMatchObject({
      kind: 'ended',
      end: { exitCode: 1, restartCount: 1 },
      container: exited,
    })
  })

  it('tells an end in the words of the record where it has them', () => {
    expect(view([exited], { ended: recorded })).toMatchObject({
      end: { message: 'last words' },
      container: exited,
    })
  })

  it('tells an end that only the record knows', () => {
    expect(view([], { ended: recorded })).toEqual({ kind: 'ended', end: recorded, container: undefined })
  })

  it('believes the record about an end after the newest container', () => {
    const later = ended('a', 0, { restartCount: 3 })
    expect(view([live], { ended: later })).toEqual({ kind: 'ended', end: later, container: undefined })
  })

  it('believes the runtime about a container after the recorded end', () => {
    expect(view([live], { ended: recorded })).toEqual({ kind: 'live', container: live })
  })

  it('sees one sandbox alone, without the record, where it is told to', () => {
    expect(view([live], { ended: recorded }, 'sandbox-1')).toEqual({ kind: 'none' })
    expect(view([], { ended: recorded }, 'sandbox-0')).toEqual({ kind: 'none' })
  })
})

describe('newestEnd', () => {
  it.each([
    ['nothing', [live], undefined, undefined],
    ['the end behind a live one', [live, exited], undefined, 1],
    ['the recorded end', [live], { ended: recorded }, 1],
    ['the later of the two', [live, exited], { ended: ended('a', 0) }, 1],
    ['the recorded one when it is later', [exited], { ended: ended('a', 0, { restartCount: 5 }) }, 5],
  ] as const)('is %s', (_title, containers, history, restartCount) => {
    expect(newestEnd('a', observedPod({ containers }), history)?.restartCount).toBe(restartCount)
  })
})

describe('nextRestartCount', () => {
  it.each([
    ['the first', [], undefined, 0],
    ['after the newest that the runtime knows', [live, exited], undefined, 3],
    ['after the newest that the record knows', [], { ended: ended('a', 0, { restartCount: 6 }) }, 7],
    ['after the newest of both', [live], { ended: recorded }, 3],
    [
      'that of one that was made and never started',
      [observedContainer('a', { state: 'created', restartCount: 2 })],
      { ended: ended('a', 1, { restartCount: 1 }) },
      2,
    ],
    [
      'that of one whose start was cancelled before anything ran',
      [observedContainer('a', { state: 'created', restartCount: 2, cancelled: 'unrun' })],
      undefined,
      2,
    ],
    [
      'after one that may have run before its start was cancelled',
      [observedContainer('a', { state: 'created', restartCount: 2, cancelled: 'may-have-run' })],
      undefined,
      3,
    ],
    ['apart from other names', [observedContainer('b', { restartCount: 9 })], undefined, 0],
  ] as const)('%s', (_title, containers, history, expected) => {
    expect(nextRestartCount('a', observedPod({ containers }), history)).toBe(expected)
  })
})

describe('isOutdated', () => {
  const hash = containerSpecHash({ name: 'a', image: 'busybox:1' })
  it.each([
    ['of the same spec', hash, false],
    ['of another spec', containerSpecHash({ name: 'a', image: 'busybox:2' }), true],
    ['by a recipe of another version', 'v9-00112233', false],
    ['without a hash', '', false],
  ])('%s', (_title, specHash, expected) => {
    expect(isOutdated(observedContainer('a', { specHash }), hash)).toBe(expected)
  })
})
