import type { PodObject } from '../../api/resource.ts'
import type { UnitRecord } from './unit-revisions.ts'

/** How what a source gives does on this host. */
export type SourceHealth = 'healthy' | 'progressing' | 'failed'

/** What a source gives that counts on this host, and how that does. */
export interface SourceSight {
  /** SHA-256 of the answer of a URL; undefined where that is not known. */
  readonly revision: string | undefined
  readonly health: SourceHealth
}

/** What a container waits for that it will not get by itself. */
const failures: readonly string[] = [
  'CrashLoopBackOff',
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
]

/**
 * The health of a source: `failed` where a document of it is bad, a new revision failed, a pod failed, or a container crashes
 * or can't be started; `healthy` where all its pods are ready or have completed; `progressing` otherwise, and while a new
 * revision is judged.
 */
export function judgeSource({
  shown,
  wanted,
  hasBadDocuments,
  units,
}: {
  /** Its pods as they are shown. */
  readonly shown: readonly PodObject[]
  /** How many pods it gives. */
  readonly wanted: number
  readonly hasBadDocuments: boolean
  readonly units: readonly Pick<UnitRecord, 'revisions' | 'offered'>[]
}): SourceHealth {
  const pods = shown.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const verdicts = units.map(({ revisions, offered }) => {
    return revisions.find(({ number }) => number === offered)?.verdict
  })
  if (hasBadDocuments || verdicts.includes('failed') || pods.some((pod) => isFailing(pod))) return 'failed'
  if (verdicts.includes('progressing')) return 'progressing'
  return pods.length >= wanted && pods.every((pod) => isDone(pod)) ? 'healthy' : 'progressing'
}

function isFailing({ status }: PodObject): boolean {
  if (status.phase === 'Failed') return true
  const { initContainerStatuses = [], containerStatuses = [] } = status
  return [...initContainerStatuses, ...containerStatuses].some(({ state: { waiting } }) =>
    failures.includes(waiting?.reason ?? ''),
  )
}

/** Whether nothing more is to come of it. */
function isDone({ status: { phase, conditions } }: PodObject): boolean {
  if (phase === 'Succeeded') return true
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}
