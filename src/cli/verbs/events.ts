import { eventKind } from '../../api/served-kinds.ts'
import { allNamespacesFlag, namespaceFlag } from '../arguments/namespace.ts'
import { outputFlag } from '../arguments/output-format.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { noHeadersFlag } from '../arguments/table-flags.ts'
import type { Verb } from '../arguments/verb.ts'
import { getObjects } from './get-objects.ts'

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
    noHeadersFlag,
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
    const fields = [...aboutFields(context.args.value('for')), ...typeFields(context.args)]
    return getObjects(context, { kinds: [{ kind: eventKind, names: [] }], fields })
  },
}

function aboutFields(about: string | undefined): readonly string[] {
  if (about === undefined) return []
  const kind = /^nodes?\//u.test(about) ? 'Node' : 'Pod'
  const name = about.replace(/^(?:pod|node)s?\//u, '')
  return [
    `involvedObject.kind=${kind}`,
    `involvedObject.name=${name.replaceAll(/[\\,=]/gu, String.raw`\$&`)}`,
  ]
}

const eventTypes: readonly string[] = ['Normal', 'Warning']

/** What leaves out the types that are not asked for. Throws UsageError. */
function typeFields(args: ParsedArguments): readonly string[] {
  const text = args.value('types') ?? ''
  if (text === '') return []
  const types = text.split(',').map((type) => type.toLowerCase())
  const unknown = text
    .split(',')
    .find((type) => !eventTypes.some((known) => known.toLowerCase() === type.toLowerCase()))
  if (unknown !== undefined) {
    throw new UsageError(
      `there are no events of type ${JSON.stringify(unknown)}`,
      `Valid --types are ${eventTypes.join(' and ')}.`,
    )
  }
  return eventTypes.flatMap((type) => (types.includes(type.toLowerCase()) ? [] : [`type!=${type}`]))
}
