import type { PodObject } from '../../api/resource.ts'
import { mayRestartAll } from '../../decide/plan/restart-request.ts'
import { shouldRestart } from '../../decide/plan/backoff.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'

/**
 * Whether a container of this pod runs or may still run: false once its last instance has ended and no other will be
 * started. Unknown counts as true.
 */
export function mayRunAgain(object: PodObject, container: string): boolean {
  const { status, metadata } = object
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status
  const isNamed = ({ name }: { readonly name: string }): boolean => name === container
  const ephemeral = ephemeralContainerStatuses.find(isNamed)
  const state = (ephemeral ?? [...initContainerStatuses, ...containerStatuses].find(isNamed))?.state
  if (state?.running !== undefined) return true
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return false
  const ended = state?.terminated
  if (ended === undefined) return true
  if (metadata.deletionTimestamp !== undefined || ephemeral !== undefined) return false
  const { apiVersion, kind, spec } = object
  const { namespace, name } = metadata
  const pod = podFromManifest({ apiVersion, kind, metadata: { namespace, name }, spec })
  if (mayRestartAll(pod)) return true
  const main = pod.spec.containers.find(isNamed)
  if (main !== undefined) return shouldRestart(pod.spec, main, ended.exitCode)
  const init = pod.spec.initContainers.find(isNamed)
  if (init === undefined) return true
  // Init containers run again until they succeed, unless the pod never restarts anything.
  const isDone = ended.exitCode === 0 && init.restartPolicy === undefined
  return !isDone && shouldRestart(pod.spec, init, ended.exitCode)
}
