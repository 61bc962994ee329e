import type { PodListObject, PodObject } from '../../api/resource.ts'
import { findKind } from '../../api/served-kinds.ts'
import { startDeadline } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { parseDuration } from '../../config/option-type.ts'
import {
  namespaceFlag,
  listPath,
  readNamespace,
  isPodWord,
  podsOnly,
  readPodName,
} from '../arguments/pod-argument.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { readJsonPath, selectJsonPath } from '../output/select-path.ts'

export const timeoutFlag = {
  name: 'timeout',
  label: 'DURATION',
  doc: 'How long to wait; by default 30s. 0 checks once, and a negative duration waits for a week.',
} as const

export const waitVerb: Verb = {
  usage: 'wait POD... | --all --for=CONDITION [--timeout DURATION] [-n NAMESPACE]',
  help: `Waits until pods meet a condition, as \`kubectl wait\` does: condition=TYPE[=STATUS] (STATUS is true where nothing is
said), jsonpath={PATH}=VALUE, create, or delete. The exit code is 1 if the time is over before.`,
  flags: [
    {
      name: 'for',
      label: 'CONDITION',
      doc: 'What to wait for: condition=Ready, jsonpath={.status.phase}=Running, create, delete.',
    },
    timeoutFlag,
    { name: 'all', doc: 'All pods of the namespace.' },
    namespaceFlag,
  ],
  examples: [
    ['wait web --for=condition=Ready --timeout=60s', 'until the pod is ready'],
    ['wait pod/job --for=jsonpath={.status.phase}=Succeeded', 'until it has succeeded'],
    ['wait web --for=delete', 'until it is gone'],
  ],
  async run(context) {
    const { args, client, signal } = context
    const condition = readCondition(args)
    const timeoutMs = readTimeout(args)
    const namespace = readNamespace(args)
    const names = readPodNames(args)
    if (names.length === 0 && !args.has('all'))
      throw new UsageError('wait for which pod?', 'podd wait POD --for=…')
    if (names.length > 0 && args.has('all')) throw new UsageError('--all and names exclude each other')
    const { items: pods } = await client.getList<PodListObject>(listPath('pods', namespace), signal)
    const wanted = args.has('all') ? [...new Set(pods.map(({ metadata }) => metadata.name))] : names
    if (args.has('all') && wanted.length === 0 && condition.kind !== 'delete')
      throw new PoddError('WAIT_FAILED', `no pods in namespace ${namespace}`)
    const missing = wanted.find((name) => !pods.some(({ metadata }) => metadata.name === name))
    if (missing !== undefined && condition.kind === 'test')
      throw new PoddError('WAIT_FAILED', `pods "${missing}" not found`, {
        hint: 'To wait for it as well: --for=create',
      })
    await waitForPods(context, namespace, wanted, condition, timeoutMs)
    return { kind: 'text', text: wanted.map((name) => `pod/${name} condition met\n`).join('') }
  },
}

const kubectlHint = 'For other kinds there is `kubectl wait`; kubectl works with podd.'

/** `POD...` or `pod POD...`. Throws UsageError, also where the first word is another kind. */
function readPodNames(args: ParsedArguments): readonly string[] {
  const [first = '', ...rest] = args.positionals
  if (isPodWord(first)) return rest.map((word) => readPodName(word, 'wait', kubectlHint))
  // Alone, such a word is the name of a pod.
  if ((rest.length > 0 || args.has('all')) && findKind(first) !== undefined)
    throw podsOnly(first, 'wait', kubectlHint)
  return args.positionals.map((word) => readPodName(word, 'wait', kubectlHint))
}

type WaitCondition =
  | { readonly kind: 'create' }
  /** @property uids those that are to go, rather than all of the name */
  | { readonly kind: 'delete'; readonly uids?: ReadonlySet<string> }
  | { readonly kind: 'test'; readonly holds: (pod: PodObject) => boolean }

function readCondition(args: ParsedArguments): WaitCondition {
  const text = args.value('for') ?? ''
  if (text === 'create' || text === 'delete') return { kind: text }
  const [, type, , status = 'true'] = /^condition=([^=]+)(=(.*))?$/su.exec(text) ?? []
  if (type !== undefined) return { kind: 'test', holds: (pod) => hasCondition(pod, type, status) }
  const [, path, , value] = /^jsonpath=(\{.*?\}|[^={}]+)(=(.*))?$/su.exec(text) ?? []
  if (path === undefined) {
    throw new UsageError(
      text === '' ? 'wait for what?' : `cannot wait for ${JSON.stringify(text)}`,
      '--for=condition=Ready, --for=jsonpath={.status.phase}=Running, --for=create or --for=delete',
    )
  }
  const steps = readJsonPath(path)
  return {
    kind: 'test',
    holds: (pod) => {
      const found = selectJsonPath(pod, steps)
      return value === undefined ? found.length > 0 : found.some((each) => String(each) === value)
    },
  }
}

export function hasCondition({ status }: PodObject, type: string, wanted: string): boolean {
  const found = status.conditions.find((condition) => condition.type.toLowerCase() === type.toLowerCase())
  return found?.status.toLowerCase() === wanted.toLowerCase()
}

const weekMs = 604_800_000

/** Milliseconds. Throws UsageError. */
export function readTimeout(args: ParsedArguments, otherwiseMs = 30_000): number {
  const text = args.value('timeout')
  if (text === undefined) return otherwiseMs
  try {
    const timeoutMs = parseDuration(text)
    return timeoutMs < 0 ? weekMs : timeoutMs
  } catch {
    // parseDuration throws for malformed text alone.
    throw new UsageError(`--timeout must be a duration such as 30s or 5m, not ${JSON.stringify(text)}`)
  }
}

/** Resolves when all pods meet the condition. Throws PoddError WAIT_TIMEOUT, and what the client throws. */
export async function waitForPods(
  { client, clock, signal }: VerbContext,
  namespace: string,
  names: readonly string[],
  condition: WaitCondition,
  timeoutMs: number,
): Promise<void> {
  const open = new Set(names)
  const isMeant = ({ metadata: { uid } }: PodObject): boolean =>
    condition.kind !== 'delete' || condition.uids?.has(uid) !== false
  const there = new Map<string, Set<string | undefined>>()
  const note = (name: string, uid: string | undefined, pod: PodObject | undefined): void => {
    const uids = there.get(name) ?? new Set()
    if (pod === undefined) uids.delete(uid)
    else uids.add(uid)
    there.set(name, uids)
    const isMet =
      condition.kind === 'delete'
        ? uids.size === 0
        : pod !== undefined && (condition.kind === 'create' || condition.holds(pod))
    if (isMet) open.delete(name)
  }
  using late = startDeadline(clock, timeoutMs)
  try {
    const path = listPath('pods', namespace)
    const { items, metadata: list } = await client.getList<PodListObject>(path, signal)
    for (const name of names) {
      const found = items.filter((pod) => pod.metadata.name === name && isMeant(pod))
      if (found.length === 0) note(name, undefined, undefined)
      for (const pod of found) note(name, pod.metadata.uid, pod)
    }
    if (open.size === 0) return
    // From the list's revision, so that no change is missed.
    const until = AbortSignal.any([signal, late.signal])
    for await (const { type, object } of client.changes<PodObject>(path, list.resourceVersion, until)) {
      const { name, uid } = object.metadata
      if (!open.has(name) || !isMeant(object)) continue
      note(name, uid, type === 'DELETED' ? undefined : object)
      if (open.size === 0) return
    }
    signal.throwIfAborted()
    throw tooLate(namespace, open)
  } catch (error) {
    // The timeout has passed.
    if (late.signal.aborted && !signal.aborted) throw tooLate(namespace, open)
    throw error
  }
}

function tooLate(namespace: string, open: ReadonlySet<string>): PoddError {
  const [first = ''] = open
  return new PoddError('WAIT_TIMEOUT', `timed out waiting for the condition on pods/${first}`, {
    hint: `\`podd describe pod ${first} -n ${namespace}\` shows its state.`,
  })
}
