/* Names of pods, containers and sources. */

/** A branded string, which the compiler distinguishes from other strings. */
type Brand<Name extends string> = string & { readonly __brand?: Name }

/** The UID podd gave a pod when it first accepted it. */
export type PodUid = Brand<'PodUid'>
export type ContainerId = Brand<'ContainerId'>
export type SandboxId = Brand<'SandboxId'>
/** `namespace/name`: identifies a pod across UIDs. */
export type PodKey = Brand<'PodKey'>

/** A reference to one pod. */
export interface PodRef {
  readonly namespace: string
  readonly name: string
  readonly uid: PodUid
}

export function podKey(object: { readonly namespace: string; readonly name: string }): PodKey {
  return `${object.namespace}/${object.name}`
}

/**
 * The kinds of sources: a manifest directory (or a single manifest), a URL, and the objects written over podd's API.
 * `podSecurity` has a policy for each.
 */
export type SourceKind = 'file' | 'http' | 'api'

/**
 * The name of a source. The one of `staticPodPath` or `staticPodURL` is named as its kind; one of the list `sources`
 * bears its kind and the name that it has there: `file:edge`.
 */
export type SourceName = SourceKind | `${SourceKind}:${string}`

export const sourceKinds: readonly SourceKind[] = ['file', 'http', 'api']

export function kindOfSource(source: SourceName): SourceKind {
  return sourceKinds.find((kind) => source === kind || source.startsWith(`${kind}:`)) ?? 'http'
}

/** Undefined for an invalid name. */
export function parseSourceName(text: string): SourceName | undefined {
  return isSourceName(text) ? text : undefined
}

function isSourceName(text: string): text is SourceName {
  return sourceKinds.some(
    (kind) => text === kind || (text.startsWith(`${kind}:`) && text.length > kind.length + 1),
  )
}

/** The configuration's name for the sources of a kind: `podSecurity.<name>`. */
export const configNames: Readonly<Record<SourceKind, string>> = {
  file: 'file',
  http: 'url',
  api: 'api',
}

const kindWords: Readonly<Record<SourceKind, string>> = {
  file: 'the manifest directory',
  http: 'the URL',
  api: 'the API',
}

/** A source as users call it. */
export function sourceWords(source: SourceName): string {
  const kind = kindOfSource(source)
  return source === kind ? kindWords[kind] : `the source ${source.slice(kind.length + 1)}`
}

/** The name of its policies in the configuration: `podSecurity.url`. */
export function policySettings(source: SourceName): string {
  return `podSecurity.${configNames[kindOfSource(source)]}`
}
