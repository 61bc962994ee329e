import { join } from 'node:path'
import { allContainerNames, containerNames, containerStatuses } from '../../api/pod-summary.ts'
import type { PodObject } from '../../api/resource.ts'
import { shouldRestart } from '../../decide/plan/backoff.ts'
import { mayRestartAll } from '../../decide/plan/restart-request.ts'
import { listRemovedPods } from '../../logs/container-log-directories.ts'
import { checkLogWatch, followLog } from '../../logs/follow-log.ts'
import type { LogLifetime } from '../../logs/follow-log.ts'
import { listDirectory, listLogInstances } from '../../logs/log-files.ts'
import { readLog } from '../../logs/read-log.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import { podLogDirectory } from '../../translate/identity.ts'
import { ApiError, invalidOptions } from '../requests/api-error.ts'
import type { OptionFault } from '../requests/api-error.ts'
import type { ResourceReader } from '../requests/readers.ts'
import { booleanParam, integerParam, timeParam } from '../requests/route.ts'
import type { Call } from '../requests/route.ts'
import { findRunningPod } from './pod-target.ts'

/** The fields of core/v1 PodLogOptions that podd supports. */
interface LogRequest {
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

/**
 * Opens the requested log, of an existing pod or, where its logs are kept, of a removed one: of the last one where several
 * had that name, and without waiting for more lines. The checks and messages are the kubelet's (pkg/kubelet/kubelet_pods.go,
 * 1.36). Throws ApiError, or PoddError LOG_WATCH; errors of the file system are thrown while the chunks are read.
 */
export async function openLog(
  pods: PodReader,
  podLogsDir: string,
  { names: [namespace = '', name = ''], query, clock, signal }: Omit<Call, 'request'>,
): Promise<{ readonly body: AsyncIterable<Uint8Array>; readonly follow: boolean }> {
  const request = readLogQuery(query, name, clock.wallMs())
  const { follow } = request
  const isGone = !pods
    .list()
    .some(({ metadata }) => metadata.namespace === namespace && metadata.name === name)
  const removed = isGone ? await findRemovedLog(podLogsDir, { namespace, name }, request) : undefined
  if (removed !== undefined)
    return { body: readInstance(removed.directory, removed.restartCount, request), follow }
  // While its successor is being prepared, the old pod has the logs.
  const pod = findRunningPod(pods, namespace, name)
  const container = findContainerName(pod, request.container)
  const directory = `${podLogDirectory(podLogsDir, pod.metadata)}/${container}`
  const restartCount = await chooseInstance(pod, container, request, directory)
  if (!follow || request.previous) return { body: readInstance(directory, restartCount, request), follow }
  checkLogWatch(directory)
  const lifetime = lifetimeOf(pods, pod.metadata.uid, container)
  const chunks = followLog({ directory, restartCount, options: request, lifetime, clock, signal })
  return { body: limit(chunks, request.limitBytes), follow }
}

type PodReader = Pick<ResourceReader<PodObject>, 'list' | 'subscribe'>

function lifetimeOf(pods: PodReader, uid: string, container: string): LogLifetime {
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

function readInstance(
  directory: string,
  restartCount: number,
  request: LogRequest,
): AsyncIterable<Uint8Array> {
  return limit(readLog(directory, restartCount, request), request.limitBytes)
}

/** The one asked for, or the only main one (`pkg/registry/core/pod/strategy.go` validateContainer, 1.36). */
export function findContainerName(pod: PodObject, wanted: string | undefined): string {
  const all = allContainerNames(pod)
  const { name } = pod.metadata
  if (wanted === undefined) return onlyContainer(name, containerNames(pod, 'containers'), all)
  if (all.includes(wanted)) return wanted
  throw new ApiError(400, `container ${wanted} is not valid for pod ${name}`, `It has: ${all.join(', ')}.`)
}

/** @param all those to choose from where there is more than one */
function onlyContainer(pod: string, main: readonly string[], all: readonly string[]): string {
  const [only, second] = main
  if (only !== undefined && second === undefined) return only
  throw new ApiError(
    400,
    `a container name must be specified for pod ${pod}, choose one of: [${all.join(' ')}]`,
  )
}

async function chooseInstance(
  pod: PodObject,
  container: string,
  request: LogRequest,
  directory: string,
): Promise<number> {
  const { status } = pod
  const found = containerStatuses(pod).find((candidate) => candidate.name === container)
  const logged = await listLogInstances(directory)
  const newest = logged.at(-1)
  if (request.previous) {
    const wanted = previousInstance(found)
    if (wanted !== undefined && logged.includes(wanted)) return wanted
    throw noPrevious(container, pod.metadata.name)
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
  const { reason: waiting = 'ContainerCreating', message } = found?.state.waiting ?? {}
  throw new ApiError(400, `${which} is waiting to start: ${waitingWords[waiting] ?? waiting}`, message)
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

function noPrevious(container: string, pod: string): ApiError {
  const which = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)}`
  return new ApiError(400, `previous terminated ${which} not found`)
}

async function* limit(
  chunks: AsyncIterable<Buffer>,
  limitBytes: number | undefined,
): AsyncGenerator<Buffer, void> {
  let leftBytes = limitBytes ?? Infinity
  for await (const chunk of chunks) {
    yield chunk.subarray(0, leftBytes)
    leftBytes -= chunk.length
    if (leftBytes <= 0) return
  }
}

/** `?stream=`, and which stream of the log it is. */
const streams: Readonly<Record<string, 'stdout' | 'stderr' | undefined>> = {
  All: undefined,
  Stderr: 'stderr',
  Stdout: 'stdout',
}

/**
 * The PodLogOptions of a query, with PodLogsQuerySplitStreams. Throws ApiError BadRequest for a value that can't be
 * read and Invalid for forbidden values and combinations (`pkg/apis/core/validation/validation.go`
 * ValidatePodLogOptions, 1.36).
 * @param wallMs now, for `sinceSeconds`
 */
export function readLogQuery(query: URLSearchParams, podName: string, wallMs: number): LogRequest {
  const tailLines = integerParam(query, 'tailLines')
  const limitBytes = integerParam(query, 'limitBytes')
  const sinceSeconds = integerParam(query, 'sinceSeconds')
  const sinceTimeMs = timeParam(query, 'sinceTime')
  const stream = query.get('stream') ?? 'All'
  const problems: OptionFault[] = []
  const refuse = (field: string, message: string, reason: OptionFault['reason'] = 'FieldValueInvalid') =>
    problems.push({ field, reason, message })
  if (tailLines !== undefined && tailLines < 0)
    refuse('tailLines', `Invalid value: ${tailLines}: must be greater than or equal to 0`)
  if (limitBytes !== undefined && limitBytes < 1)
    refuse('limitBytes', `Invalid value: ${limitBytes}: must be greater than 0`)
  if (sinceSeconds !== undefined && sinceTimeMs !== undefined)
    refuse(
      '',
      'Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
      'FieldValueForbidden',
    )
  else if (sinceSeconds !== undefined && sinceSeconds < 1)
    refuse('sinceSeconds', `Invalid value: ${sinceSeconds}: must be greater than 0`)
  if (!Object.hasOwn(streams, stream)) {
    const supported = Object.keys(streams).map((name) => JSON.stringify(name))
    const message = `Unsupported value: ${JSON.stringify(stream)}: supported values: ${supported.join(', ')}`
    refuse('stream', message, 'FieldValueNotSupported')
  }
  if (stream !== 'All' && tailLines !== undefined)
    refuse(
      '',
      'Forbidden: `tailLines` and specific `stream` are mutually exclusive for now',
      'FieldValueForbidden',
    )
  if (problems.length > 0) throw invalidOptions({ kind: 'PodLogOptions', name: podName }, problems)
  return {
    container: query.get('container') || undefined,
    follow: booleanParam(query, 'follow'),
    previous: booleanParam(query, 'previous'),
    timestamps: booleanParam(query, 'timestamps'),
    stream: streams[stream],
    tailLines,
    sinceMs: sinceSeconds === undefined ? sinceTimeMs : wallMs - sinceSeconds * 1000,
    limitBytes,
  }
}

/**
 * Finds a kept log of a pod that was removed; undefined where none of its logs is kept. Only the pod's directory
 * remains: its containers are those that have logged. Throws ApiError.
 */
async function findRemovedLog(
  podLogsDir: string,
  pod: { readonly namespace: string; readonly name: string },
  wanted: { readonly container: string | undefined; readonly previous: boolean },
): Promise<{ readonly directory: string; readonly restartCount: number } | undefined> {
  const prefix = podLogDirectory('', { ...pod, uid: '' }).slice(1)
  const kept = await listRemovedPods(podLogsDir, undefined, prefix)
  const last = kept.toSorted((a, b) => b.removedAtMs - a.removedAtMs)[0]
  if (last === undefined) return undefined
  const containers: string[] = []
  for (const name of await listDirectory(last.directory))
    if ((await listLogInstances(join(last.directory, name))).length > 0) containers.push(name)
  const container = findRemovedContainer(pod.name, containers.toSorted(), wanted.container)
  const directory = join(last.directory, container)
  const restartCount = (await listLogInstances(directory)).at(wanted.previous ? -2 : -1)
  if (restartCount !== undefined) return { directory, restartCount }
  throw noPrevious(container, pod.name)
}

function findRemovedContainer(
  pod: string,
  containers: readonly string[],
  wanted: string | undefined,
): string {
  if (wanted === undefined) return onlyContainer(pod, containers, containers)
  if (containers.includes(wanted)) return wanted
  throw new ApiError(
    400,
    `container ${wanted} of the removed pod ${pod} has left no log`,
    `These have: ${containers.join(', ')}.`,
  )
}

/** Whether it runs, or may still: false once its last instance has ended for good. Unknown counts as true. */
export function mayRunAgain(object: PodObject, container: string): boolean {
  const { status, metadata } = object
  const isNamed = ({ name }: { readonly name: string }): boolean => name === container
  const ephemeral = status.ephemeralContainerStatuses?.find(isNamed)
  const state = (ephemeral ?? containerStatuses(object).find(isNamed))?.state
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
