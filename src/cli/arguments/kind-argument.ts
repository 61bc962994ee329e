import type { ServedKind } from '../../api/served-kind.ts'
import { findKind, namesOfKind, servedKinds } from '../../api/served-kinds.ts'
import { nearestOr, UsageError } from './parse-arguments.ts'

/** Objects of one kind: all, where no names are given. */
export interface KindArgument {
  readonly kind: ServedKind
  readonly names: readonly string[]
}

/** What podd has in place of kinds that people look for out of habit: their names, and a sentence. */
const elsewhere: readonly (readonly [names: string, hint: string])[] = [
  ['endpoints ep', '`podd get endpointslices` shows the addresses of the pods behind Services.'],
  [
    'ingress ingresses ing gateway gateways httproute httproutes',
    'podd routes nothing to pods: a proxy that runs in a pod with hostPort or hostNetwork does.',
  ],
  [
    'networkpolicy networkpolicies netpol',
    'podd filters nothing between pods: the firewall of the host does.',
  ],
  [
    'replicationcontroller replicationcontrollers rc horizontalpodautoscaler horizontalpodautoscalers hpa',
    '`podd get deployments` shows what replaces and scales pods here.',
  ],
  [
    'persistentvolume persistentvolumes pv volumeattachment volumeattachments',
    '`podd get pvc` shows the claims, whose directories podd makes itself.',
  ],
  ['componentstatus componentstatuses cs', '`podd status` shows how podd and its runtime are.'],
]

export function requireKind(word: string): ServedKind {
  const kind = findKind(word)
  if (kind !== undefined) return kind
  throw new UsageError(`podd knows no resource ${JSON.stringify(word)}`, hintOn(word))
}

function hintOn(word: string): string {
  const plain = word.toLowerCase().replace(/\..*$/u, '')
  const instead = elsewhere.find(([names]) => names.split(' ').includes(plain))
  if (instead !== undefined) return instead[1]
  const names = servedKinds.flatMap((each) => namesOfKind(each))
  const resources = servedKinds.map(({ resource }) => resource)
  const all = `There are ${resources.slice(0, -1).join(', ')} and ${resources.at(-1)}.`
  return nearestOr(word, names, `${all} A pod is named with its kind: pod ${word}`)
}

/**
 * Objects as kubectl names them: `pods`, `pods,cm`, `pods web db`, `pod/web cm/settings`, and `all` for the kinds of that
 * category. Throws UsageError.
 * @param verb the word of the verb, for the message
 */
export function readKindArguments(words: readonly string[], verb: string): readonly KindArgument[] {
  const [first = '', ...names] = words
  if (first.includes('/')) return mergeNeighbours(words.map((word) => readPair(word, verb)))
  const paired = names.find((name) => name.includes('/'))
  if (paired !== undefined)
    throw new UsageError(`${JSON.stringify(paired)} names a kind again`, `Try podd ${verb} ${paired}`)
  const kinds = first.split(',').flatMap((word) => kindsOf(word))
  return [...new Set(kinds)].map((kind) => ({ kind, names }))
}

function kindsOf(word: string): readonly ServedKind[] {
  if (findKind(word) !== undefined) return [requireKind(word)]
  const ofCategory = servedKinds.filter(({ categories }) => categories.includes(word.toLowerCase()))
  return ofCategory.length > 0 ? ofCategory : [requireKind(word)]
}

function readPair(word: string, verb: string): KindArgument {
  const [kind = '', name, extra] = word.split('/')
  if (name === undefined || name === '' || extra !== undefined)
    throw new UsageError(`${verb} what?`, 'Each word must be KIND/NAME where the first one is.')
  return { kind: requireKind(kind), names: [name] }
}

function mergeNeighbours(pairs: readonly KindArgument[]): readonly KindArgument[] {
  const merged: KindArgument[] = []
  for (const { kind, names } of pairs) {
    const last = merged.at(-1)
    if (last?.kind === kind) merged.splice(-1, 1, { kind, names: [...last.names, ...names] })
    else merged.push({ kind, names })
  }
  return merged
}
