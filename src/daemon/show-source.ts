import type { SourceObject } from '../api/sources.ts'
import { formatTime } from '../base/clock.ts'
import type { SourceSnapshot } from '../pod/objects/document.ts'
import { kindOfSource } from '../pod/values/ids.ts'
import type { SourceControl } from '../server/requests/readers.ts'
import type { SourceHolds, SourceState } from '../sources/source-holds.ts'
import type { SourceReport } from '../sources/source.ts'
import type { NamedSource } from './create-sources.ts'

/** The sources as the API shows them, and holds and resumes them. */
export function createSourceControl(
  { sources, holds }: { readonly sources: readonly NamedSource[]; readonly holds: SourceHolds },
  snapshots: () => readonly SourceSnapshot[],
): SourceControl {
  const change = async (text: string, act: (source: NamedSource) => Promise<boolean>): Promise<boolean> => {
    const found = sources.find(({ name }) => name === text)
    return found === undefined ? false : await act(found)
  }
  return {
    list: () =>
      sources.map((each) => {
        const followed = snapshots().find(({ source }) => source === each.name)
        return showSource(each, followed, holds.state(each.name), each.source.report())
      }),
    hold: (name) => change(name, (source) => holds.hold(source)),
    resume: (name) => change(name, (source) => holds.resume(source)),
  }
}

/** The most problems that are shown of one text. */
const mostProblems = 100

/** A source as the API shows it: its followed snapshot, its newest one, and how it is read. */
export function showSource(
  { name, location }: Pick<NamedSource, 'name' | 'location'>,
  followed: SourceSnapshot | undefined,
  { newest = followed, errorsSinceMs, heldSinceMs, pending }: SourceState,
  { mode, hash, etag, answeredAtMs, failure }: SourceReport,
): SourceObject {
  const problems = newest?.problems ?? []
  const failures = problems.filter(({ severity }) => severity === 'error')
  const isReady = followed?.ready === true
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Source',
    metadata: { name },
    spec: { type: kindOfSource(name) === 'http' ? 'URL' : 'Directory', place: location },
    status: {
      state: stateOf(isReady, heldSinceMs, failure),
      mode,
      ready: isReady,
      pods: followed?.pods.length ?? 0,
      objects: followed?.objects.length ?? 0,
      errors: failures.length,
      warnings: problems.length - failures.length,
      hash,
      etag,
      lastAnswerTime: timeOf(answeredAtMs),
      message: failure?.message ?? (failures[0] ?? problems[0])?.message,
      failingSince: timeOf(failure?.sinceMs),
      errorsSince: timeOf(errorsSinceMs),
      // Documents that are bad now stay in their last good form, as all do while nothing can be read.
      lastGood: isReady && failures.length > 0,
      heldSince: timeOf(heldSinceMs),
      pending,
      problems: problems.length === 0 ? undefined : problems.slice(0, mostProblems),
    },
  }
}

function stateOf(
  isReady: boolean,
  heldSinceMs: number | undefined,
  failure: SourceReport['failure'],
): SourceObject['status']['state'] {
  if (heldSinceMs !== undefined) return 'Held'
  if (!isReady) return 'Unread'
  return failure === undefined ? 'Following' : 'Failing'
}

function timeOf(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : formatTime(atMs)
}
