import { allContainerNames, containerNames } from '../../api/pod-summary.ts'
import type { PodObject } from '../../api/resource.ts'
import { PoddError } from '../../base/errors.ts'
import { dnsLabel } from '../../pod/validation/name-rules.ts'
import { UsageError } from './parse-arguments.ts'
import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'

const podHint = 'Write POD or pod/POD.'

/**
 * The name in a POD argument: `web`, `pod/web`, `pods/web` or `po/web`. Throws UsageError for any other kind.
 * @param verb the word of the verb, for the message
 */
export function readPodName(word: string, verb: string, hint = podHint): string {
  const slash = word.indexOf('/')
  if (slash === -1) return word
  const name = word.slice(slash + 1)
  if (!isPodWord(word.slice(0, slash))) throw podsOnly(word, verb, hint)
  if (name === '' || name.includes('/')) throw new UsageError(`${JSON.stringify(word)} names no pod`, podHint)
  return name
}

/** Whether it is a name of the kind, in whatever case. */
export function isPodWord(word: string): boolean {
  return /^(?:pods?|po)$/iu.test(word)
}

/** `word` names another kind, or an object of one. */
export function podsOnly(word: string, verb: string, hint = podHint): UsageError {
  return new UsageError(`podd ${verb} takes pods only, not ${JSON.stringify(word)}`, hint)
}

export const namespaceFlag: FlagSpec = {
  name: 'namespace',
  short: 'n',
  label: 'NAMESPACE',
  doc: 'In this namespace; by default `default`.',
}

/** @param doc of which container: the verb's own words */
export function containerFlag(doc: string): FlagSpec {
  return { name: 'container', short: 'c', label: 'NAME', doc }
}

export const selectorFlag: FlagSpec = {
  name: 'selector',
  short: 'l',
  label: 'SELECTOR',
  doc: 'Only with these labels (app=web,tier!=db,env in (a,b),!old).',
}
export const allNamespacesFlag: FlagSpec = {
  name: 'all-namespaces',
  short: 'A',
  doc: 'In all namespaces.',
}

/** Throws UsageError for an invalid name of a namespace. */
export function readNamespace(args: ParsedArguments): string {
  const namespace = args.value('namespace') || 'default'
  const [wrong] = dnsLabel(namespace)
  if (wrong !== undefined) throw new UsageError(`no namespace is called ${JSON.stringify(namespace)}`, wrong)
  return namespace
}

/** A name may exist in several namespaces. */
export function namedInAll(singular = 'pod'): UsageError {
  return new UsageError(
    `a ${singular} cannot be asked for by its name in all namespaces`,
    'Name its namespace: -n NAMESPACE',
  )
}

/** `<root>/namespaces/NS/RESOURCE`, or the path over all namespaces. */
export function listPath(resource: string, namespace: string | undefined, root = '/api/v1'): string {
  return namespace === undefined
    ? `${root}/${resource}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}`
}

export function podPath(namespace: string, name: string): string {
  return `${listPath('pods', namespace)}/${encodeURIComponent(name)}`
}

export function poddPodPath(namespace: string, name: string): string {
  return `${listPath('pods', namespace, '/podd/v1')}/${encodeURIComponent(name)}`
}

/** A path with its query, if that holds anything. */
export function withQuery(path: string, query: ConstructorParameters<typeof URLSearchParams>[0]): string {
  const text = new URLSearchParams(query).toString()
  return text === '' ? path : `${path}?${text}`
}

/** The annotation that names the default container; kubectl reads it, the API doesn't. */
const annotation = 'kubectl.kubernetes.io/default-container'

/**
 * The container of a call that names none: the annotation's, else the first (kubectl `cmd/util/podcmd/podcmd.go`
 * FindOrDefaultContainerByName, 1.36). Throws PoddError CONTAINER_NOT_FOUND for an annotation that names none.
 */
export function chooseContainer(pod: PodObject, notify: (line: string) => void): string {
  const annotated = annotatedContainer(pod)
  if (annotated === undefined) return firstContainer(pod, notify)
  requireContainer(
    pod,
    annotated,
    "The pod's annotation kubectl.kubernetes.io/default-container names it; -c names another.",
  )
  return annotated
}

/**
 * The same of a log: an annotation that names no container is passed over with a note (kubectl
 * `polymorphichelpers/logsforobject.go`, 1.36).
 */
export function chooseLoggedContainer(pod: PodObject, notify: (line: string) => void): string {
  const annotated = annotatedContainer(pod)
  if (annotated !== undefined) {
    if (allContainerNames(pod).includes(annotated)) return annotated
    notify(`Default container name ${JSON.stringify(annotated)} not found in pod ${pod.metadata.name}`)
  }
  return firstContainer(pod, notify)
}

/** Throws PoddError CONTAINER_NOT_FOUND where the pod has no container of this name. */
export function requireContainer(pod: PodObject, name: string, hint?: string): void {
  if (allContainerNames(pod).includes(name)) return
  throw new PoddError(
    'CONTAINER_NOT_FOUND',
    `container ${name} is not valid for pod ${pod.metadata.name} out of: ${shownNames(pod)}`,
    { hint },
  )
}

function annotatedContainer({ metadata }: PodObject): string | undefined {
  const name = metadata.annotations?.[annotation]
  return name === '' ? undefined : name
}

/** The first of the pod's main containers, with a note where it has others. */
function firstContainer(pod: PodObject, notify: (line: string) => void): string {
  const [first = ''] = containerNames(pod, 'containers')
  if (allContainerNames(pod).length > 1)
    notify(`Defaulted container ${JSON.stringify(first)} out of: ${shownNames(pod)}`)
  return first
}

/** All containers, as kubectl lists them. */
function shownNames(pod: PodObject): string {
  return [
    ...containerNames(pod, 'containers'),
    ...containerNames(pod, 'ephemeralContainers').map((name) => `${name} (ephem)`),
    ...containerNames(pod, 'initContainers').map((name) => `${name} (init)`),
  ].join(', ')
}
