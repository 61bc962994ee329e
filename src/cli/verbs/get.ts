import type { PodObject, ResourceList, ResourceObject } from '../../api/resource.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { escapeControls } from '../../base/text.ts'
import { podKey } from '../../pod/values/ids.ts'
import { readKindArguments } from '../arguments/kind-argument.ts'
import type { KindArgument } from '../arguments/kind-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import {
  allNamespacesFlag,
  listPath,
  namedInAll,
  namespaceFlag,
  readNamespace,
  selectorFlag,
  withQuery,
} from '../arguments/pod-argument.ts'
import {
  isOutputFormat,
  outputFlag,
  readOutputFormat,
  readTableStyle,
  tableFlags,
  unknownFormat,
} from '../arguments/verb.ts'
import type { Listing, OutputFormat, TableStyle, Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import { gatherTroubles } from '../local/pod-troubles.ts'
import { daemonSummary, listObjects, listOf } from '../output/print.ts'
import { counted, shorten } from '../output/table.ts'

/** What `podd get` takes for the sources, which are no Kubernetes kind. */
const sourceWords: readonly string[] = ['sources', 'source']

export const getVerb: Verb = {
  usage:
    'get KIND[,KIND...] [NAME...] | KIND/NAME... [-o FORMAT] [-l SELECTOR] [-L KEY] [-w] [-n NAMESPACE | -A]',
  help: `Lists objects, as kubectl does: pods, events, the objects that pods refer to (configmaps, secrets, pvc), and the other
kinds of the API. Tables of ConfigMaps and Secrets show only
keys; -o json and yaml show the values too, in base64 those of Secrets. Manifests with errors, and problems of the
container runtime, follow on standard error.`,
  flags: [
    {
      ...outputFlag,
      label: 'FORMAT',
      doc: 'wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE or custom-columns=TITLE:PATH,…; by default a table.',
    },
    selectorFlag,
    {
      name: 'field-selector',
      label: 'SELECTOR',
      doc: 'Only with these fields (status.phase=Running,metadata.name!=web).',
    },
    { name: 'sort-by', label: 'PATH', doc: 'Sort by the value at this JSONPath (.status.startTime).' },
    ...tableFlags,
    { name: 'watch', short: 'w', doc: 'After listing, watch for changes until Ctrl-C.' },
    { name: 'watch-only', doc: 'Watch for changes, without listing first.' },
    { name: 'ignore-not-found', doc: 'A NAME that nothing bears is no error.' },
    namespaceFlag,
    allNamespacesFlag,
    { name: 'raw', label: 'PATH', doc: 'What the API answers at this path, as it is (/podd/v1/status).' },
  ],
  examples: [
    ['get pods', 'the pods of namespace default'],
    ['get pods -A -o wide', 'all pods, with addresses and manifests'],
    ['get pod web -o yaml', 'one pod with its whole status'],
    ['get pods -w', 'the pods, then each change'],
    ["get pods -l app=web -o jsonpath='{.items[*].status.podIP}'", 'the addresses of some pods'],
    ['get pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName', 'columns of your own'],
    ['get pods --sort-by .status.startTime', 'the oldest first'],
    ['get pods,cm -L app', 'several kinds, with a column for a label'],
    ['get events', 'what happened'],
    ['get sources', 'where manifests come from, and how that goes'],
    ['get secrets', 'their keys; `-o yaml` shows their values in base64'],
    ['get pvc', 'claims, and how much is in them'],
  ],
  async run(context) {
    const raw = context.args.value('raw')
    if (raw !== undefined) return getRaw(context, raw)
    const [first, ...rest] = context.args.positionals
    if (first === undefined) throw new UsageError('get what?', 'Try `podd get pods` or `podd get events`.')
    if (sourceWords.includes(first)) {
      const { getSources } = await import('./get-sources.ts')
      return getSources(context, rest)
    }
    const kinds = readKindArguments(context.args.positionals, 'get')
    const { args } = context
    const labels = args.value('selector')
    const fields = args.value('field-selector')
    if (kinds.some(({ names }) => names.length > 0) && (labels !== undefined || fields !== undefined))
      throw new UsageError('name cannot be provided when a selector is specified')
    return getObjects(context, { kinds, labels, ...(fields !== undefined && { fields: [fields] }) })
  },
}

function getRaw({ args, client, signal }: VerbContext, path: string): VerbResult {
  if (args.positionals.length > 0) throw new UsageError('arguments may not be passed when --raw is specified')
  if (!path.startsWith('/'))
    throw new UsageError('--raw must be a path', 'Try podd get --raw /podd/v1/status')
  const escaped = path.replaceAll(/[^!-~]+/gu, (text) => encodeURIComponent(text))
  if (escaped !== path)
    throw new UsageError(
      `--raw ${JSON.stringify(path)} is no path of a request`,
      `Escape what stands in no URL: podd get --raw ${JSON.stringify(escaped)}`,
    )
  return { kind: 'chunks', chunks: client.stream(path, signal) }
}

/** What a container that is being created is shown as. */
const created: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])

interface Selection {
  /** At least one. */
  readonly kinds: readonly KindArgument[]
  /** Terms of a field selector. */
  readonly fields?: readonly string[]
  /** A label selector. */
  readonly labels?: string | undefined
}

interface KindQuery extends KindArgument {
  /** Undefined for all. */
  readonly namespace: string | undefined
  /** The path of the collection, without its query. */
  readonly path: string
  readonly selectors: Readonly<Record<string, string>>
}

interface Found extends KindQuery {
  readonly items: readonly ResourceObject[]
  readonly missing: readonly ServerError[]
}

interface Rendering {
  readonly format: OutputFormat
  readonly custom: CustomOutput | undefined
  readonly isTable: boolean
  readonly style: TableStyle
  readonly withNamespace: boolean
  /** Whether a single requested object is shown without a list. */
  readonly isSingle: boolean
}

/** Objects of some kinds, all or by name, once or with each change. */
export async function getObjects(context: VerbContext, selection: Selection): Promise<VerbResult> {
  const { args } = context
  const rendering = await readRendering(args, selection)
  const sort = await readSorting(args.value('sort-by'))
  const queries = selection.kinds.map((each) => toQuery(args, each, selection, rendering))
  if (args.has('watch') || args.has('watch-only')) {
    const [first, second] = queries
    if (first === undefined || second !== undefined)
      throw new UsageError('you may only specify a single resource type', 'A watch is of one kind.')
    if (sort !== undefined) throw new UsageError('a watch cannot be sorted')
    return watchOne(context, first, rendering)
  }
  const isLenient = args.has('ignore-not-found')
  const found: Found[] = []
  for (const query of queries) found.push(await findObjects(context, query, isLenient || !rendering.isSingle))
  const all = found.flatMap((each) => each.items)
  const items = sort === undefined ? all : sort(all)
  const missing = isLenient ? [] : found.flatMap((each) => each.missing)
  const notes = missing.map((error) => `podd: ${error.message}`)
  const isOfAll = queries.every(({ names }) => names.length === 0)
  if (rendering.isTable && items.length === 0 && isOfAll)
    notes.push(noneFound(queries, queries.find(({ kind }) => kind.namespaced)?.namespace))
  const { lines, others } = rendering.isTable ? await podNotes(context, items) : nothingToNote
  notes.push(...lines)
  if (selection.kinds.some(({ kind }) => kind.resource === 'pods'))
    notes.push(...(await notesOn(context, others)))
  const result = { format: rendering.format, notes, exitCode: missing.length === 0 ? 0 : 1 }
  const isNothing = rendering.isSingle || (isLenient && !rendering.isTable)
  if (isNothing && items.length === 0) return { kind: 'text', text: '', ...result }
  if (rendering.custom?.kind === 'jsonPath') {
    const value = rendering.isSingle ? items[0] : listOf(items)
    return { kind: 'text', text: rendering.custom.print(value), ...result }
  }
  return { kind: 'listing', listings: listFound(context, found, rendering, items), ...result }
}

/** A listing for each kind; one of all where they aren't tables of their kinds. */
function listFound(
  context: VerbContext,
  found: readonly Found[],
  rendering: Rendering,
  items: readonly ResourceObject[],
): readonly Listing[] {
  const [first, second] = found
  if (first !== undefined && second === undefined) return [listOne(context, first.kind, rendering, items)]
  if (rendering.custom?.kind === 'columns') return [{ ...rendering.custom.list(items), ...rendering.style }]
  if (!rendering.isTable) return [{ columns: [], rows: [], objects: items, listKind: 'List' }]
  const isMixed = new Set(items.map(({ kind }) => kind)).size > 1
  const style = { ...rendering.style, showKind: rendering.style.showKind || isMixed }
  return found.map((each) => {
    // In the order of all, which may be sorted.
    const own = items.filter((object) => each.items.includes(object))
    return listOne(context, each.kind, { ...rendering, style }, own)
  })
}

function listOne(
  { clock }: VerbContext,
  kind: ServedKind,
  rendering: Rendering,
  items: readonly ResourceObject[],
): Listing {
  const { custom, style, withNamespace, isSingle } = rendering
  return custom?.kind === 'columns'
    ? { ...custom.list(items), noHeaders: style.noHeaders }
    : listObjects(kind, items, style, { withNamespace, nowMs: clock.wallMs(), isSingle })
}

async function readRendering(args: ParsedArguments, { kinds }: Selection): Promise<Rendering> {
  const output = args.value('output')
  const custom = await readCustomOutput(output)
  const format = custom === undefined ? readOutputFormat(args) : 'table'
  return {
    format,
    custom,
    isTable: custom === undefined && (format === 'table' || format === 'wide'),
    style: readTableStyle(args, custom === undefined ? format : (output?.replace(/=.*/su, '') ?? '')),
    withNamespace: args.has('all-namespaces'),
    isSingle: kinds.length === 1 && kinds[0]?.names.length === 1,
  }
}

async function readSorting(
  text: string | undefined,
): Promise<((objects: readonly ResourceObject[]) => readonly ResourceObject[]) | undefined> {
  if (text === undefined || text === '') return undefined
  const [{ sortObjects }, { readJsonPath }] = await Promise.all([
    import('../output/print-template.ts'),
    import('../output/select-path.ts'),
  ])
  const path = readJsonPath(text)
  return (objects) => sortObjects(objects, path, text)
}

function toQuery(
  args: ParsedArguments,
  { kind, names }: KindArgument,
  { fields = [], labels }: Selection,
  rendering: Rendering,
): KindQuery {
  const namespace = args.has('all-namespaces') || !kind.namespaced ? undefined : readNamespace(args)
  if (names.length > 0 && namespace === undefined && kind.namespaced) throw namedInAll(kind.singular)
  const isPrinted = rendering.isTable || rendering.format === 'name'
  return {
    kind,
    names,
    namespace,
    path: listPath(kind.resource, namespace, isPrinted ? kind.tableRoot : kind.root),
    selectors: {
      ...(fields.length > 0 && { fieldSelector: fields.join(',') }),
      ...(labels !== undefined && { labelSelector: labels }),
    },
  }
}

/** @param isLenient whether what is missing by name doesn't keep the others from being shown */
async function findObjects(context: VerbContext, query: KindQuery, isLenient: boolean): Promise<Found> {
  if (query.names.length === 0) {
    const { items } = await context.client.getList<ResourceList>(listTarget(query), context.signal)
    return { ...query, items, missing: [] }
  }
  const answers = await Promise.all(
    query.names.map((name) =>
      getOne(context, query, name).catch((error: unknown) => {
        if (isLenient && error instanceof ServerError && error.reason === 'NotFound') return error
        throw error
      }),
    ),
  )
  return {
    ...query,
    items: answers.flatMap((answer) => (answer instanceof ServerError ? [] : [answer])),
    missing: answers.flatMap((answer) => (answer instanceof ServerError ? [answer] : [])),
  }
}

function getOne({ client, signal }: VerbContext, { path }: KindQuery, name: string): Promise<ResourceObject> {
  return client.get<ResourceObject>(`${path}/${encodeURIComponent(name)}`, signal)
}

function listTarget({ path, selectors }: KindQuery): string {
  return withQuery(path, selectors)
}

async function watchOne(context: VerbContext, query: KindQuery, rendering: Rendering): Promise<VerbResult> {
  const { custom, format } = rendering
  // A name that nothing bears would be waited for without a word.
  for (const name of query.names) await getOne(context, query, name)
  const objects = watchObjects(context, query)
  if (custom?.kind === 'jsonPath') return { kind: 'chunks', chunks: printEach(objects, custom.print) }
  return { kind: 'watch', listings: listEach(context, query.kind, objects, rendering), format }
}

/** What is there, then what changes from then on. */
async function* watchObjects(
  context: VerbContext,
  query: KindQuery,
): AsyncGenerator<readonly ResourceObject[], void> {
  const { args, client, signal, notify } = context
  const { kind, names } = query
  if (kind.resource === 'pods') for (const note of await notesOn(context)) notify(note)
  const isWanted = ({ metadata }: ResourceObject): boolean =>
    names.length === 0 || names.includes(metadata.name)
  const { items, metadata } = await client.getList<ResourceList>(listTarget(query), signal)
  if (!args.has('watch-only')) yield items.filter((object) => isWanted(object))
  const changes = client.changes<ResourceObject>(listTarget(query), metadata.resourceVersion, signal)
  for await (const { type, object } of changes) {
    if (isWanted(object) && !(kind.expires && type === 'DELETED')) yield [object]
  }
}

async function* listEach(
  context: VerbContext,
  kind: ServedKind,
  objects: AsyncIterable<readonly ResourceObject[]>,
  rendering: Rendering,
): AsyncGenerator<Listing, void> {
  for await (const items of objects) yield listOne(context, kind, rendering, items)
}

async function* printEach(
  objects: AsyncIterable<readonly ResourceObject[]>,
  print: (value: unknown) => string,
): AsyncGenerator<Uint8Array, void> {
  for await (const items of objects)
    for (const object of items) yield Buffer.from(escapeControls(print(object)))
}

/** @param namespace undefined where all were asked for */
export function noneFound(kinds: readonly KindArgument[], namespace: string | undefined): string {
  const [first, second] = kinds
  const what = first === undefined || second !== undefined ? 'resources' : first.kind.resource
  const isIn = namespace !== undefined && kinds.some(({ kind }) => kind.namespaced)
  return isIn ? `No ${what} found in namespace ${namespace}` : `No ${what} found`
}

/** Asked for after the pods: a podd that has just been started takes its time to answer for them, and knows more then. */
async function notesOn(
  { client, signal }: VerbContext,
  pods: ReadonlySet<string> = new Set(),
): Promise<readonly string[]> {
  return daemonSummary(await client.status(signal), pods)
}

/** So many pods of which it is said why they are broken leave the table on a screen of 24 lines. */
const maxTroubles = 5

interface PodNotes {
  readonly lines: readonly string[]
  /** The pods of which nothing is said: `namespace/name`. */
  readonly others: ReadonlySet<string>
}

const nothingToNote: PodNotes = { lines: [], others: new Set() }

/** What pods wait for that are being created, and why others are broken: a line each. */
async function podNotes(
  { client, signal }: VerbContext,
  objects: readonly ResourceObject[],
): Promise<PodNotes> {
  const pods = objects.filter((object): object is PodObject => object.kind === 'Pod')
  const isMixed = new Set(pods.map(({ metadata }) => metadata.namespace)).size > 1
  const label = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
    isMixed ? `${namespace}/${name}` : name
  const troubles = await gatherTroubles(client, pods, signal)
  const broken = new Set(troubles.map(({ pod }) => pod))
  const creating = pods.flatMap(({ metadata, status }) =>
    broken.has(podKey(metadata))
      ? []
      : creationMessages(status).map((message) => `${label(metadata)}: ${message}`),
  )
  const lines = troubles.slice(0, maxTroubles).map((trouble) => shorten(`${label(trouble)}: ${trouble.why}`))
  const rest = troubles.length - lines.length
  const more = rest === 0 ? [] : [`${counted(rest, 'more pod')} with problems: \`podd status\` lists them`]
  const others = pods.map(({ metadata }) => podKey(metadata)).filter((key) => !broken.has(key))
  return { lines: [...new Set(creating), ...lines, ...more], others: new Set(others) }
}

/** What containers wait for that are being created: how far the pull of an image is, say. */
function creationMessages({
  initContainerStatuses = [],
  containerStatuses = [],
}: PodObject['status']): readonly string[] {
  return [...initContainerStatuses, ...containerStatuses].flatMap(({ state }) => {
    const { reason = '', message = '' } = state.waiting ?? {}
    return created.has(reason) && message !== '' ? [message] : []
  })
}

/** What `-o` says of how objects are printed, beside the formats that every verb has. */
type CustomOutput =
  | { readonly kind: 'columns'; readonly list: (objects: readonly ResourceObject[]) => Listing }
  | { readonly kind: 'jsonPath'; readonly print: (value: unknown) => string }

const formats = ['jsonpath=TEMPLATE', 'jsonpath-as-json=TEMPLATE', 'custom-columns=TITLE:PATH,…']
const example =
  "Write -o jsonpath='{.items[*].metadata.name}', or of one object -o jsonpath='{.status.phase}'."

/**
 * The output that a template describes; undefined for the formats that every verb has. A wrong one is refused before
 * the daemon is asked. Throws UsageError.
 */
async function readCustomOutput(text: string | undefined): Promise<CustomOutput | undefined> {
  if (text === undefined || isOutputFormat(text)) return undefined
  const [, name = '', rest = ''] = /^([^=]*)=?(.*)$/su.exec(text) ?? []
  switch (name) {
    case 'jsonpath':
    case 'jsonpath-as-json': {
      if (rest === '') throw new UsageError('template format specified but no template given', example)
      const { printTemplate, printTemplateAsJson, readTemplate } = await import('../output/print-template.ts')
      const template = readTemplate(rest)
      const print = name === 'jsonpath' ? printTemplate : printTemplateAsJson
      return { kind: 'jsonPath', print: (value) => print(template, value) }
    }
    case 'custom-columns': {
      const { customListing, readCustomColumns } = await import('../output/print-template.ts')
      const columns = readCustomColumns(rest)
      return { kind: 'columns', list: (objects) => customListing(columns, objects) }
    }
    case 'template':
    case 'go-template':
      throw new UsageError('podd reads no Go templates', example)
    default:
      throw unknownFormat(name, formats)
  }
}
