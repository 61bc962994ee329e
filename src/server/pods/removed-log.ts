import { join } from 'node:path'
import { listDirectory, listLogInstances } from '../../logs/log-files.ts'
import { listRemovedPods } from '../../logs/container-log-directories.ts'
import { podLogDirectory } from '../../translate/identity.ts'
import { ApiError } from '../requests/api-error.ts'

/** One instance's log in the directory of its container. */
export interface RemovedLog {
  readonly directory: string
  readonly restartCount: number
}

/**
 * Finds a kept log of a pod that was removed; undefined where none of its logs is kept. Only the pod's directory
 * remains: its containers are those that have logged. Throws ApiError.
 */
export async function findRemovedLog(
  podLogsDir: string,
  pod: { readonly namespace: string; readonly name: string },
  wanted: { readonly container: string | undefined; readonly previous: boolean },
): Promise<RemovedLog | undefined> {
  const prefix = podLogDirectory('', { ...pod, uid: '' }).slice(1)
  const kept = await listRemovedPods(podLogsDir, { prefix })
  const last = kept.toSorted((a, b) => b.removedAtMs - a.removedAtMs)[0]
  if (last === undefined) return undefined
  const containers: string[] = []
  for (const name of await listDirectory(last.directory))
    if ((await listLogInstances(join(last.directory, name))).length > 0) containers.push(name)
  const container = chooseContainer(pod.name, containers.toSorted(), wanted.container)
  const directory = join(last.directory, container)
  const restartCount = (await listLogInstances(directory)).at(wanted.previous ? -2 : -1)
  if (restartCount !== undefined) return { directory, restartCount }
  throw new ApiError(
    400,
    `previous terminated container ${JSON.stringify(container)} in pod ${JSON.stringify(pod.name)} not found`,
  )
}

function chooseContainer(pod: string, containers: readonly string[], wanted: string | undefined): string {
  const [only] = containers
  if (wanted === undefined && only !== undefined && containers.length === 1) return only
  if (wanted === undefined)
    throw new ApiError(
      400,
      `a container name must be specified for pod ${pod}, choose one of: [${containers.join(' ')}]`,
    )
  if (containers.includes(wanted)) return wanted
  throw new ApiError(
    400,
    `container ${wanted} of the removed pod ${pod} has left no log`,
    `These have: ${containers.join(', ')}.`,
  )
}
