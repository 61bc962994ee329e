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
