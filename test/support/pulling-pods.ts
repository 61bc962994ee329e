import type { PodObject } from '../../src/api/resource.ts'
import type { Fault, RegistryCall } from './hostile-registry.ts'
import type { PoddRig } from './podd-rig.ts'
import { shellPod } from './shell-pods.ts'

/** What its only container waits for. */
export function waitingOf(pod: PodObject): { readonly reason?: string; readonly message?: string } {
  return pod.status.containerStatuses?.[0]?.state.waiting ?? {}
}

/** In words; empty where it waits for nothing. */
export function messageOf(pod: PodObject): string {
  return waitingOf(pod).message ?? ''
}

/** A pod of an image, which says `up`. */
export function dropPulling(
  podd: PoddRig,
  name: string,
  image: string,
  imagePullPolicy = 'IfNotPresent',
): void {
  podd.drop(name, shellPod(name, podd.shared, 'say up; stay', { container: { image, imagePullPolicy } }))
}

/** A fault for the newest layer of an image alone. */
export function onBlob(digest: string | undefined, fault: Fault): (call: RegistryCall) => Fault | undefined {
  return ({ kind, reference }) => (kind === 'blob' && reference === digest ? fault : undefined)
}

/** What is let go one by one. */
export class Gates {
  readonly #opened = new Map<string, { readonly until: Promise<void>; readonly open: () => void }>()

  of(name: string): { readonly until: Promise<void>; readonly open: () => void } {
    const known = this.#opened.get(name)
    if (known !== undefined) return known
    const { promise, resolve } = Promise.withResolvers<void>()
    const gate = { until: promise, open: () => resolve() }
    this.#opened.set(name, gate)
    return gate
  }
}
