import { readKindArguments } from '../arguments/kind-argument.ts'
import { allNamespacesFlag, namespaceFlag } from '../arguments/namespace.ts'
import { outputFlag } from '../arguments/output-format.ts'
import { tableFlags } from '../arguments/table-flags.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { getObjects } from './get-objects.ts'

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
    {
      name: 'selector',
      short: 'l',
      label: 'SELECTOR',
      doc: 'Only with these labels (app=web,tier!=db,env in (a,b),!old).',
    },
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
