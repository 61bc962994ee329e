import { findKind, namesOfKind, servedKinds } from '../../api/kinds/served-kinds.ts'
import type { ServedKind } from '../../api/kinds/served-kind.ts'
import { nearestName } from '../../pod/values/nearest-name.ts'
import { getObjects } from './get-objects.ts'
import { allNamespacesFlag, namespaceFlag } from '../arguments/namespace.ts'
import { outputFlag } from '../arguments/output-format.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'

/** What `podd get` takes for the sources, which are no Kubernetes kind. */
const sourceWords: readonly string[] = ['sources', 'source']

export const getVerb: Verb = {
  usage:
    'get pods|events|configmaps|secrets|pvc [NAME...] [-o FORMAT] [-l SELECTOR] [-w] [-n NAMESPACE | -A]',
  help: `Lists pods, events or the objects that pods refer to, as kubectl does. Tables of ConfigMaps and Secrets show only
keys; -o json and yaml show the values too, in base64 those of Secrets. Manifests with errors, and problems of the
container runtime, follow on standard error.`,
  flags: [
    {
      ...outputFlag,
      label: 'FORMAT',
      doc: 'wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…; by default a table.',
    },
    { name: 'selector', short: 'l', label: 'SELECTOR', doc: 'Only with these labels (app=web,tier!=db).' },
    {
      name: 'field-selector',
      label: 'SELECTOR',
      doc: 'Only with these fields (status.phase=Running,metadata.name!=web).',
    },
    { name: 'sort-by', label: 'PATH', doc: 'Sort by the value at this JSONPath (.status.startTime).' },
    { name: 'watch', short: 'w', doc: 'After listing, watch for changes until Ctrl-C.' },
    namespaceFlag,
    allNamespacesFlag,
  ],
  examples: [
    ['get pods', 'the pods of namespace default'],
    ['get pods -A -o wide', 'all pods, with addresses and manifests'],
    ['get pod web -o yaml', 'one pod with its whole status'],
    ['get pods -w', 'the pods, then each change'],
    ["get pods -l app=web -o jsonpath='{.items[*].status.podIP}'", 'the addresses of some pods'],
    ['get pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName', 'columns of your own'],
    ['get pods --sort-by .status.startTime', 'the oldest first'],
    ['get events', 'what happened'],
    ['get sources', 'where manifests come from, and how that goes'],
    ['get secrets', 'their keys; `-o yaml` shows their values in base64'],
    ['get pvc', 'claims, and how much is in them'],
  ],
  async run(context) {
    const [first, ...rest] = context.args.positionals
    if (first === undefined) throw new UsageError('get what?', 'Try `podd get pods` or `podd get events`.')
    if (sourceWords.includes(first)) {
      const { getSources } = await import('./get-sources.ts')
      return getSources(context, rest)
    }
    const slash = first.indexOf('/')
    const kind = requireKind(slash === -1 ? first : first.slice(0, slash))
    const names = [...(slash === -1 ? [] : [first]), ...rest].map((name) => name.replace(/^[a-z]+\//u, ''))
    const { args } = context
    const labels = args.value('selector')
    const fields = args.value('field-selector')
    if (names.length > 0 && (labels !== undefined || fields !== undefined))
      throw new UsageError('name cannot be provided when a selector is specified')
    const sortBy = args.value('sort-by')
    return getObjects(context, {
      kind,
      names,
      labels,
      sortBy,
      ...(fields !== undefined && { fields: [fields] }),
    })
  },
}

/** The kind that a word names. Throws UsageError. */
export function requireKind(word: string): ServedKind {
  const kind = findKind(word)
  if (kind !== undefined) return kind
  const near = nearestName(
    word,
    servedKinds.flatMap((each) => namesOfKind(each)),
  )
  const resources = servedKinds.map(({ resource }) => resource)
  throw new UsageError(
    `podd knows no resource ${JSON.stringify(word)}`,
    near === undefined
      ? `There are ${resources.slice(0, -1).join(', ')} and ${resources.at(-1)}.`
      : `Did you mean ${near}?`,
  )
}
