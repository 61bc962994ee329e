import type { PodListObject, PodObject } from '../../api/objects.ts'
import type { WatchEvent } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { ServerError } from '../client/client.ts'
import { formatProblem } from '../../pod/objects/format-problem.ts'
import { listPath, namedInAll, podPath, readNamespace } from '../arguments/namespace.ts'
import { readOutputFormat } from '../arguments/output-format.ts'
import { listPods } from '../output/pod-listing.ts'
import type { Listing, VerbContext, VerbResult } from '../arguments/verb.ts'

/** Pods, all or by name, once or with each change. */
export async function getPods(context: VerbContext, names: readonly string[]): Promise<VerbResult> {
  const { args, client, signal } = context
  const format = readOutputFormat(args)
  const withNamespace = args.has('all-namespaces')
  const namespace = withNamespace ? undefined : readNamespace(args)
  const listing = (pods: readonly PodObject[]): Listing =>
    listPods(pods, { withNamespace, nowMs: context.clock.wallMs(), isSingle: names.length === 1 })
  if (names.length > 0 && namespace === undefined) throw namedInAll()
  if (args.has('watch')) {
    // A name that nobody bears would be waited for without a word.
    if (namespace !== undefined)
      await Promise.all(names.map((name) => client.get<PodObject>(podPath(namespace, name), signal)))
    const path = `${listPath('pods', namespace)}?watch=true`
    return { kind: 'watch', listings: watchPods(context, path, names, listing), format }
  }
  const found =
    names.length === 0 || namespace === undefined
      ? (await client.get<PodListObject>(listPath('pods', namespace), signal)).items
      : await Promise.all(names.map((name) => getPod(context, podPath(namespace, name), names.length > 1)))
  // Afterwards: a podd that has just been started takes its time to answer for its pods, and knows more then.
  const status = await client.get<DaemonStatus>('/podd/v1/status', signal)
  const wanted = found.flatMap((pod) => (pod instanceof ServerError ? [] : [pod]))
  const missing = found.flatMap((pod) => (pod instanceof ServerError ? [`podd: ${pod.message}`] : []))
  const notes = [...missing, ...daemonNotes(status)]
  if (missing.length > 0) return { kind: 'listing', listing: listing(wanted), format, notes, exitCode: 1 }
  if (wanted.length > 0 || format === 'json' || format === 'yaml')
    return { kind: 'listing', listing: listing(wanted), format, notes }
  const nothing = namespace === undefined ? 'No pods found' : `No pods found in namespace ${namespace}`
  return { kind: 'listing', listing: listing([]), format, notes: [nothing, ...notes] }
}

/** One of several that is missing doesn't keep the others from being shown. */
async function getPod(
  { client, signal }: VerbContext,
  path: string,
  isOneOfMany: boolean,
): Promise<PodObject | ServerError> {
  try {
    return await client.get<PodObject>(path, signal)
  } catch (error) {
    if (isOneOfMany && error instanceof ServerError && error.reason === 'NotFound') return error
    throw error
  }
}

async function* watchPods(
  { client, signal, notify }: VerbContext,
  path: string,
  names: readonly string[],
  listing: (pods: readonly PodObject[]) => Listing,
): AsyncGenerator<Listing, void> {
  for (const note of daemonNotes(await client.get<DaemonStatus>('/podd/v1/status', signal))) notify(note)
  for await (const { object } of client.watch<WatchEvent<PodObject>>(path, signal)) {
    if (names.length === 0 || names.includes(object.metadata.name)) yield listing([object])
  }
}

/** What whoever looks at the pods has to know besides: bad manifests, sources that were not read, a runtime that is gone. */
export function daemonNotes({ problems, runtime, sources }: DaemonStatus): readonly string[] {
  return [
    ...problems.map((problem) => `${problem.severity}: ${formatProblem(problem)}`),
    ...sources
      .filter((source) => !source.ready)
      .map(({ source, path }) => `warning: ${path} has not been read yet (source ${source})`),
    ...(runtime.healthy
      ? []
      : [
          `warning: the container runtime at ${runtime.endpoint} does not work: ${runtime.message ?? 'no answer'}`,
        ]),
  ]
}
