import type { ServedKind } from '../../api/kinds/served-kind.ts'
import type { PodObject } from '../../api/objects.ts'
import type { ResourceList, ResourceObject, WatchEvent } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { listPath, namedInAll, readNamespace } from '../arguments/namespace.ts'
import { isOutputFormat, readOutputFormat, unknownFormat } from '../arguments/output-format.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Listing, VerbContext, VerbResult } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import { daemonNotes } from '../output/daemon-notes.ts'
import { listObjects } from '../output/object-listing.ts'

/** What a container that is being created is shown as. */
const created: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])

/** Some objects of a kind. */
export interface Asked {
  readonly kind: ServedKind
  /** None for all. */
  readonly names: readonly string[]
  /** Terms of a field selector. */
  readonly fields?: readonly string[]
  /** A label selector. */
  readonly labels?: string | undefined
  /** A JSONPath. */
  readonly sortBy?: string | undefined
}

/** Where the objects are, and how they look. */
interface Asking extends Asked {
  readonly namespace: string | undefined
  /** The path of the collection, without its query. */
  readonly path: string
  readonly listing: (objects: readonly ResourceObject[]) => Listing
}

/** Objects of one kind, all or by name, once or with each change. */
export async function getObjects(context: VerbContext, asked: Asked): Promise<VerbResult> {
  const { args, client, clock, signal } = context
  const { kind, names } = asked
  const custom = await readCustomOutput(args.value('output'))
  const format = custom === undefined ? readOutputFormat(args) : 'table'
  const withNamespace = args.has('all-namespaces')
  const namespace = withNamespace || !kind.namespaced ? undefined : readNamespace(args)
  if (names.length > 0 && namespace === undefined && kind.namespaced) throw namedInAll(kind.singular)
  const isData = format === 'json' || format === 'yaml' || custom !== undefined
  const asking: Asking = {
    ...asked,
    namespace,
    path: listPath(kind.resource, namespace, isData ? kind.root : kind.tableRoot),
    listing: (objects) =>
      custom?.kind === 'columns'
        ? custom.list(objects)
        : listObjects(kind, objects, { withNamespace, nowMs: clock.wallMs(), isSingle: names.length === 1 }),
  }
  if (args.has('watch')) {
    if (custom?.kind === 'jsonPath')
      throw new UsageError(
        '-w prints tables, JSON and YAML',
        'kubectl get -w -o jsonpath prints each change.',
      )
    if (asked.sortBy !== undefined) throw new UsageError('a watch cannot be sorted')
    // A name that nothing bears would be waited for without a word.
    for (const name of names) await getOne(context, asking, name)
    return { kind: 'watch', listings: watchObjects(context, asking), format }
  }
  const found =
    names.length === 0
      ? await client.getList<ResourceList>(withQuery(asking, {}), signal)
      : await getNamed(context, asking)
  const items = asked.sortBy === undefined ? found.items : await sorted(found.items, asked.sortBy)
  const missing = 'missing' in found ? found.missing : []
  const notes = missing.map((error) => `podd: ${error.message}`)
  if (names.length === 0 && items.length === 0 && !isData)
    notes.push(
      namespace === undefined
        ? `No ${kind.resource} found`
        : `No ${kind.resource} found in namespace ${namespace}`,
    )
  notes.push(...(await notesOn(kind, context)))
  if (format === 'table' || format === 'wide') notes.push(...creationNotes(items))
  const exitCode = missing.length === 0 ? 0 : 1
  if (custom?.kind === 'jsonPath') {
    const [only] = names.length === 1 ? items : []
    const value = only ?? { kind: 'List', apiVersion: 'v1', metadata: {}, items }
    return { kind: 'text', text: custom.print(value), notes, exitCode }
  }
  return { kind: 'listing', listing: asking.listing(items), format, notes, exitCode }
}

function getOne({ client, signal }: VerbContext, { path }: Asking, name: string): Promise<ResourceObject> {
  return client.get<ResourceObject>(`${path}/${encodeURIComponent(name)}`, signal)
}

/** One of several that is missing doesn't keep the others from being shown. */
async function getNamed(
  context: VerbContext,
  asking: Asking,
): Promise<{ readonly items: readonly ResourceObject[]; readonly missing: readonly ServerError[] }> {
  const answers = await Promise.all(
    asking.names.map((name) =>
      getOne(context, asking, name).catch((error: unknown) => {
        if (asking.names.length > 1 && error instanceof ServerError && error.reason === 'NotFound')
          return error
        throw error
      }),
    ),
  )
  return {
    items: answers.flatMap((answer) => (answer instanceof ServerError ? [] : [answer])),
    missing: answers.flatMap((answer) => (answer instanceof ServerError ? [answer] : [])),
  }
}

/** What is there, then what changes from then on. */
async function* watchObjects(context: VerbContext, asking: Asking): AsyncGenerator<Listing, void> {
  const { client, signal, notify } = context
  const { kind, names, listing } = asking
  for (const note of await notesOn(kind, context)) notify(note)
  const isWanted = ({ metadata }: ResourceObject): boolean =>
    names.length === 0 || names.includes(metadata.name)
  const { items, metadata } = await client.getList<ResourceList>(withQuery(asking, {}), signal)
  yield listing(items.filter((object) => isWanted(object)))
  const path = withQuery(asking, { watch: 'true', resourceVersion: metadata.resourceVersion })
  for await (const { type, object } of client.watch<WatchEvent<ResourceObject>>(path, signal)) {
    if (isWanted(object) && !(kind.expires && type === 'DELETED')) yield listing([object])
  }
}

type CustomOutput =
  | { readonly kind: 'columns'; readonly list: (objects: readonly ResourceObject[]) => Listing }
  | { readonly kind: 'jsonPath'; readonly print: (value: unknown) => string }

/** What `-o` says of how objects look; undefined for the formats that every verb has. Throws UsageError. */
async function readCustomOutput(text: string | undefined): Promise<CustomOutput | undefined> {
  const [, name, rest = ''] = /^(custom-columns|jsonpath)=(.*)$/su.exec(text ?? '') ?? []
  if (name === undefined) {
    const [word = ''] = (text ?? '').split('=')
    if (text !== undefined && !isOutputFormat(text))
      throw unknownFormat(word, ['jsonpath=TEMPLATE', 'custom-columns=TITLE:PATH,…'])
    return undefined
  }
  // A wrong one is known before anybody is asked.
  if (name === 'jsonpath') {
    const { printTemplate, readTemplate } = await import('../json-path/print-template.ts')
    const template = readTemplate(rest)
    return { kind: 'jsonPath', print: (value) => printTemplate(template, value) }
  }
  const { customListing, readCustomColumns } = await import('../json-path/custom-columns.ts')
  const columns = readCustomColumns(rest)
  return { kind: 'columns', list: (objects) => customListing(columns, objects) }
}

async function sorted<T>(objects: readonly T[], path: string): Promise<readonly T[]> {
  const [{ sortObjects }, { readJsonPath }] = await Promise.all([
    import('../json-path/sort-objects.ts'),
    import('../json-path/select-path.ts'),
  ])
  return sortObjects(objects, readJsonPath(path), path)
}

function withQuery({ path, fields = [], labels }: Asking, params: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(params)
  if (fields.length > 0) query.set('fieldSelector', fields.join(','))
  if (labels !== undefined) query.set('labelSelector', labels)
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

/** Asked after the pods: a podd that has just been started takes its time to answer for them, and knows more then. */
async function notesOn(kind: ServedKind, { client, signal }: VerbContext): Promise<readonly string[]> {
  if (kind.resource !== 'pods') return []
  return daemonNotes(await client.get<DaemonStatus>('/podd/v1/status', signal))
}

/** For what pods wait whose containers are being created: how far the pull of an image is, say. */
function creationNotes(objects: readonly ResourceObject[]): readonly string[] {
  const notes = objects
    .filter((object) => isPod(object))
    .flatMap(({ metadata: { namespace, name }, status }) =>
      [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap(({ state }) => {
        const { reason = '', message = '' } = state.waiting ?? {}
        return created.has(reason) && message !== '' ? [`${namespace}/${name}: ${message}`] : []
      }),
    )
  return [...new Set(notes)]
}

function isPod(object: ResourceObject): object is PodObject {
  return object.kind === 'Pod'
}
