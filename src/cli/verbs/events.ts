import type { EventListObject, EventObject } from '../../api/objects.ts'
import type { WatchEvent } from '../../api/resource.ts'
import { listEvents } from '../output/event-listing.ts'
import { allNamespacesFlag, listPath, namespaceFlag, readNamespace } from '../arguments/namespace.ts'
import { outputFlag, readOutputFormat } from '../arguments/output-format.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Listing, Verb, VerbContext, VerbResult } from '../arguments/verb.ts'

export const eventsVerb: Verb = {
  usage: 'events [--for POD] [--types Normal,Warning] [-w] [-n NAMESPACE | -A] [-o json|yaml]',
  help: 'Lists the events of pods and of the node, the oldest first. podd keeps only the latest events.',
  flags: [
    { name: 'for', label: 'POD|node/NAME', doc: 'Only events of this pod, or of the node.' },
    {
      name: 'types',
      label: 'TYPES',
      doc: 'Only events of these types, separated by commas: Normal, Warning.',
    },
    { name: 'watch', short: 'w', doc: 'After listing, watch for new events until Ctrl-C.' },
    namespaceFlag,
    allNamespacesFlag,
    outputFlag,
  ],
  examples: [
    ['events', 'events in namespace default'],
    ['events --for web -w', 'events of one pod, then new ones'],
    ['events -A --types Warning', 'all warnings'],
  ],
  run(context) {
    const [extra] = context.args.positionals
    if (extra !== undefined)
      throw new UsageError(`events takes no argument ${JSON.stringify(extra)}`, `Try --for ${extra}.`)
    const about = context.args.value('for')
    const kind = about !== undefined && /^nodes?\//u.test(about) ? 'Node' : 'Pod'
    const name = about?.replace(/^(?:pod|node)s?\//u, '')
    return getEvents(
      context,
      [],
      ({ involvedObject }) =>
        name === undefined || (involvedObject.name === name && involvedObject.kind === kind),
    )
  },
}

/** Events, all or by their own names, once or as they come. */
export async function getEvents(
  context: VerbContext,
  names: readonly string[],
  accepts: (event: EventObject) => boolean = () => true,
): Promise<VerbResult> {
  const { args, client, signal } = context
  const format = readOutputFormat(args)
  const withNamespace = args.has('all-namespaces')
  const namespace = withNamespace ? undefined : readNamespace(args)
  const types = readTypes(args)
  const isWanted = (event: EventObject): boolean =>
    accepts(event) &&
    (types === undefined || types.includes(event.type.toLowerCase())) &&
    (names.length === 0 || names.includes(event.metadata.name))
  const listing = (events: readonly EventObject[]): Listing =>
    listEvents(events, { withNamespace, nowMs: context.clock.wallMs() })
  if (args.has('watch')) {
    const path = `${listPath('events', namespace)}?watch=true`
    return { kind: 'watch', listings: watchEvents(context, path, isWanted, listing), format }
  }
  const { items } = await client.get<EventListObject>(listPath('events', namespace), signal)
  const events = items.filter((event) => isWanted(event))
  const nothing = namespace === undefined ? 'No events found' : `No events found in namespace ${namespace}`
  return { kind: 'listing', listing: listing(events), format, notes: events.length === 0 ? [nothing] : [] }
}

const eventTypes: readonly string[] = ['Normal', 'Warning']

/** In lower case; undefined for all. Throws UsageError. */
function readTypes(args: ParsedArguments): readonly string[] | undefined {
  const text = args.value('types') ?? ''
  if (text === '') return undefined
  const known = eventTypes.map((type) => type.toLowerCase())
  const types = text.split(',')
  const unknown = types.find((type) => !known.includes(type.toLowerCase()))
  if (unknown === undefined) return types.map((type) => type.toLowerCase())
  throw new UsageError(
    `there are no events of type ${JSON.stringify(unknown)}`,
    `Valid --types are ${eventTypes.join(' and ')}.`,
  )
}

async function* watchEvents(
  { client, signal }: VerbContext,
  path: string,
  isWanted: (event: EventObject) => boolean,
  listing: (events: readonly EventObject[]) => Listing,
): AsyncGenerator<Listing, void> {
  for await (const { type, object } of client.watch<WatchEvent<EventObject>>(path, signal)) {
    if (type !== 'DELETED' && isWanted(object)) yield listing([object])
  }
}
