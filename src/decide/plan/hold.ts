import type { Waiting } from './pod-action.ts'

/** A failed start: it is not retried before `untilMs`, and `waiting` is shown until then. */
export interface Hold {
  readonly untilMs: number
  readonly waiting: Waiting
  /** The image that is unavailable, where that is why. */
  readonly image?: string
  /** The path of the host that is missing, where that is why: it is over when something is there. */
  readonly awaitedPath?: string
}

/**
 * What a hold applies to. `next-image`: the image that a running container's manifest was changed to; `previous-image`:
 * the one that the container had before.
 */
export type HoldKey =
  | { readonly kind: 'sandbox' | 'resize' }
  | { readonly kind: ContainerHoldKind; readonly container: string }

type ContainerHoldKind = 'container' | 'next-image' | 'previous-image'

/** All holds of one pod. */
export interface Holds {
  readonly sandbox?: Hold | undefined
  readonly resize?: Hold | undefined
  /** By container name. */
  readonly containers: Readonly<Record<string, { readonly [Kind in ContainerHoldKind]?: Hold | undefined }>>
}

export const noHolds: Holds = { containers: {} }

export const sandboxHold: HoldKey = { kind: 'sandbox' }
export const resizeHold: HoldKey = { kind: 'resize' }

export function containerHold(container: string): HoldKey {
  return { kind: 'container', container }
}

export function nextImageHold(container: string): HoldKey {
  return { kind: 'next-image', container }
}

export function previousImageHold(container: string): HoldKey {
  return { kind: 'previous-image', container }
}

/** The hold under this key, which may have expired. */
export function holdOf(holds: Holds, key: HoldKey): Hold | undefined {
  return 'container' in key ? holds.containers[key.container]?.[key.kind] : holds[key.kind]
}

/** `holds` with another hold under this key, or none. */
export function withHold(holds: Holds, key: HoldKey, hold: Hold | undefined): Holds {
  if (!('container' in key)) return { ...holds, [key.kind]: hold }
  const { containers } = holds
  const changed = { ...containers[key.container], [key.kind]: hold }
  return { ...holds, containers: { ...containers, [key.container]: changed } }
}

/** `holds` without those on the container and its images. */
export function withoutContainer({ containers, ...others }: Holds, container: string): Holds {
  const { [container]: _, ...left } = containers
  return { ...others, containers: left }
}

/**
 * The holds that a changed object does not end. It ends the hold on the sandbox, which waits for volumes, and those on
 * containers that could not be configured.
 */
export function withoutReferenceHolds(holds: Holds): Holds {
  return withoutReasons({ ...holds, sandbox: undefined }, (reason) => reason === 'CreateContainerConfigError')
}

/** `holds` without those on containers and their images whose waiting reason `isEnded`. */
export function withoutReasons(
  { containers, ...others }: Holds,
  isEnded: (reason: string) => boolean,
): Holds {
  const isKept = (hold: Hold | undefined): boolean => hold === undefined || !isEnded(hold.waiting.reason)
  const left = Object.entries(containers).map(([name, holds]) => [
    name,
    Object.fromEntries(Object.entries(holds).filter(([, hold]) => isKept(hold))),
  ])
  return { ...others, containers: Object.fromEntries(left) }
}

/** The longest hold (the cap of the image backoff); a longer one dates from before the clock was set back. */
const longestHoldMs = 300_000

/** The hold under this key that has not expired. */
export function activeHold(
  { holds, nowMs }: { readonly holds: Holds; readonly nowMs: number },
  key: HoldKey,
): Hold | undefined {
  const hold = holdOf(holds, key)
  if (hold === undefined || nowMs >= hold.untilMs) return undefined
  return hold.untilMs - nowMs > longestHoldMs ? undefined : hold
}
