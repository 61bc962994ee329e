import type { PodObject } from '../../api/resource.ts'
import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import type { LogLifetime } from '../../logs/follow-log.ts'
import { followLog, checkLogWatch } from '../../logs/follow-log.ts'
import { listLogInstances } from '../../logs/log-files.ts'
import { readLog } from '../../logs/read-log.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import { podLogDirectory } from '../../translate/identity.ts'
import { ApiError } from '../requests/api-error.ts'
import { mayRunAgain } from './may-run-again.ts'
import { findRemovedLog } from './removed-log.ts'
import type { ResourceReader } from '../requests/readers.ts'

/** The fields of core/v1 PodLogOptions that podd supports. */
export interface LogRequest {
  readonly container: string | undefined
  readonly follow: boolean
  readonly previous: boolean
  readonly timestamps: boolean
  /** Only lines written to this stream. */
  readonly stream: 'stdout' | 'stderr' | undefined
  readonly tailLines: number | undefined
  /** Wall time. */
  readonly sinceMs: number | undefined
  readonly limitBytes: number | undefined
}

export interface PodLogsOptions {
  readonly podLogsDir: string
  readonly pods: Pick<ResourceReader<PodObject>, 'list' | 'subscribe'>
  readonly clock: Clock
}

/** Reads the logs of pods; the checks and messages are the kubelet's (pkg/kubelet/kubelet_pods.go, 1.36). */
export class PodLogs {
  readonly #options: PodLogsOptions

  constructor(options: PodLogsOptions) {
    this.#options = options
  }

  /** Throws ApiError, or PoddError LOG_WATCH; errors of the file system are thrown while the chunks are read. */
  async read(pod: PodObject, request: LogRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const container = chooseContainer(pod, request.container)
    const directory = `${podLogDirectory(this.#options.podLogsDir, pod.metadata)}/${container}`
    const restartCount = await chooseInstance(pod, container, request, directory)
    const options = {
      tailLines: request.tailLines,
      sinceMs: request.sinceMs,
      timestamps: request.timestamps,
      stream: request.stream,
    }
    const follows = request.follow && !request.previous
    if (follows) checkLogWatch(directory)
    const chunks = follows
      ? followLog({
          directory,
          restartCount,
          options,
          lifetime: this.#lifetime(pod, container),
          clock: this.#options.clock,
          signal,
        })
      : readLog(directory, restartCount, options)
    return request.limitBytes === undefined ? chunks : limit(chunks, request.limitBytes)
  }

  /**
   * The kept log of a removed pod, of the last one where several had that name; undefined where none is kept. It gets
   * no more lines: following it stops at its end. Throws ApiError.
   */
  async readRemoved(
    pod: { readonly namespace: string; readonly name: string },
    request: LogRequest,
  ): Promise<AsyncIterable<Uint8Array> | undefined> {
    const found = await findRemovedLog(this.#options.podLogsDir, pod, request)
    if (found === undefined) return undefined
    const chunks = readLog(found.directory, found.restartCount, request)
    return request.limitBytes === undefined ? chunks : limit(chunks, request.limitBytes)
  }

  #lifetime(pod: PodObject, container: string): LogLifetime {
    const { pods } = this.#options
    const { uid } = pod.metadata
    return {
      isOver() {
        const now = pods.list().find((other) => other.metadata.uid === uid)
        return now === undefined || !mayRunAgain(now, container)
      },
      watch: (listener) =>
        pods.subscribe((change) => {
          if (change.object.metadata.uid === uid) listener()
        }),
    }
  }
}

type ContainerList = 'containers' | 'initContainers' | 'ephemeralContainers'

/** Names of the pod's containers, the main ones first. */
function containerNames(pod: PodObject, list: ContainerList): readonly string[] {
  const containers = pod.spec[list]
  if (!Array.isArray(containers)) return []
  return containers.flatMap((container: unknown) =>
    isJsonObject(container) && typeof container['name'] === 'string' ? [container['name']] : [],
  )
}

/**
 * The requested container, or the only one beside init and ephemeral containers (`pkg/registry/core/pod/strategy.go`
 * validateContainer, 1.36). Throws ApiError.
 */
export function chooseContainer(pod: PodObject, wanted: string | undefined): string {
  const main = containerNames(pod, 'containers')
  const all = [
    ...containerNames(pod, 'initContainers'),
    ...main,
    ...containerNames(pod, 'ephemeralContainers'),
  ]
  const { name } = pod.metadata
  if (wanted !== undefined) {
    if (all.includes(wanted)) return wanted
    throw new ApiError(400, `container ${wanted} is not valid for pod ${name}`, `It has: ${all.join(', ')}.`)
  }
  const [only] = main
  if (only !== undefined && main.length === 1) return only
  throw new ApiError(
    400,
    `a container name must be specified for pod ${name}, choose one of: [${all.join(' ')}]`,
  )
}

async function chooseInstance(
  pod: PodObject,
  container: string,
  request: LogRequest,
  directory: string,
): Promise<number> {
  const { status } = pod
  const found = [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ].find((candidate) => candidate.name === container)
  const logged = await listLogInstances(directory)
  const newest = logged.at(-1)
  if (request.previous) {
    const wanted = previousInstance(found)
    if (wanted !== undefined && logged.includes(wanted)) return wanted
    throw new ApiError(
      400,
      `previous terminated container ${JSON.stringify(container)} in pod ${JSON.stringify(pod.metadata.name)} not found`,
    )
  }
  if (newest !== undefined) return newest
  const hasEnded = status.phase === 'Failed' || status.phase === 'Succeeded'
  // Following a container that has ended waits for its next instance.
  const state = request.follow ? found?.state.running : (found?.state.running ?? found?.state.terminated)
  if (found !== undefined && state !== undefined && !hasEnded) throw logIsGone(pod, found, directory)
  if (request.follow) return found?.restartCount ?? 0
  const which = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod.metadata.name)}`
  if (hasEnded) {
    const why = [status.reason, status.message].filter((word) => word !== undefined).join(': ')
    throw new ApiError(400, `${which} has no log${why === '' ? '' : `; the pod has ended: ${why}`}`)
  }
  const waiting = found?.state.waiting?.reason ?? 'ContainerCreating'
  throw new ApiError(400, `${which} is waiting to start: ${waitingWords[waiting] ?? waiting}`)
}

/** The runtime creates a container's log before the start, so this one was deleted. */
function logIsGone(
  { metadata }: PodObject,
  { name, restartCount }: ContainerStatus,
  directory: string,
): ApiError {
  return new ApiError(
    400,
    `the log file of container ${JSON.stringify(name)} in pod ${JSON.stringify(metadata.name)} does not exist: ${directory}/${restartCount}.log`,
    `A running container keeps writing to a deleted file. A restart creates a new one: podd restart ${metadata.name} -n ${metadata.namespace}`,
  )
}

const waitingWords: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
}

/** While the next instance waits to start, the newest log is that of the last one that ended. */
function previousInstance(status: ContainerStatus | undefined): number | undefined {
  if (status?.lastState.terminated === undefined) return undefined
  return status.state.waiting === undefined ? status.restartCount - 1 : status.restartCount
}

async function* limit(chunks: AsyncIterable<Buffer>, limitBytes: number): AsyncGenerator<Buffer, void> {
  let leftBytes = limitBytes
  for await (const chunk of chunks) {
    yield chunk.subarray(0, leftBytes)
    leftBytes -= chunk.length
    if (leftBytes <= 0) return
  }
}
