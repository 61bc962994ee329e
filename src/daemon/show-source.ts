import type { SourceObject } from '../api/sources.ts'
import { formatTime } from '../base/clock.ts'
import type { SourceSnapshot } from '../pod/objects/document.ts'
import { kindOfSource } from '../pod/values/source-name.ts'
import type { SourceReport } from '../sources/source.ts'
import type { NamedSource } from './create-sources.ts'

/** A source as the API shows it, with what it gave last. */
export function showSource(
  { name, location }: Pick<NamedSource, 'name' | 'location'>,
  snapshot: SourceSnapshot | undefined,
  { mode, hash, etag, answeredAtMs, failure }: SourceReport,
): SourceObject {
  const problems = snapshot?.problems ?? []
  const failures = problems.filter(({ severity }) => severity === 'error')
  const isReady = snapshot?.ready === true
  const message = failure?.message ?? failures[0]?.message
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Source',
    metadata: { name },
    spec: { type: kindOfSource(name) === 'http' ? 'URL' : 'Directory', place: location },
    status: {
      state: isReady ? (failure === undefined ? 'Following' : 'Failing') : 'Unread',
      mode,
      ready: isReady,
      pods: snapshot?.pods.length ?? 0,
      objects: snapshot?.objects.length ?? 0,
      errors: failures.length,
      warnings: problems.length - failures.length,
      ...(hash === undefined ? {} : { hash }),
      ...(etag === undefined ? {} : { etag }),
      ...(answeredAtMs === undefined ? {} : { lastAnswerTime: formatTime(answeredAtMs) }),
      ...(message === undefined ? {} : { message }),
      ...(failure === undefined ? {} : { failingSince: formatTime(failure.sinceMs) }),
      // Documents that are bad now stay in their last good form, as all do while nothing can be read.
      lastGood: isReady && failures.length > 0,
    },
  }
}
