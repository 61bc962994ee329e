import { createHash } from 'node:crypto'
import { canonicalJson } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'

/**
 * Hashes that outlive this process: they are stored on sandboxes and containers and compared by later versions of podd.
 * The part before the dash is the version of the recipe; a recipe is never changed, a new one gets the next number and
 * the old one stays here, so that an upgrade restarts nothing.
 */
const recipe = 'v1'

function digest(text: string): string {
  return `${recipe}-${digestText(text)}`
}

/** A hash of a text, sixteen hexadecimal digits. */
export function digestText(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** A UUID (version 8 of RFC 9562) derived from a text. */
export function uuidOfText(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * The hash that shows whether a running container is still the desired one: name and image only, as in the kubelet
 * (pkg/kubelet/container/helpers.go, HashContainer, 1.31 and later).
 */
export function containerSpecHash(container: { readonly name: string; readonly image: string }): string {
  return digest(canonicalJson({ name: container.name, image: container.image }))
}

/** The hash of a manifest as written, without the API's defaults: the order of keys doesn't matter. */
export function podManifestHash(manifest: JsonObject): string {
  return digest(canonicalJson(manifest))
}

/** Whether a hash was made by a recipe this version knows; one that wasn't can't be compared. */
export function isKnownHash(hash: string): boolean {
  return hash.startsWith(`${recipe}-`)
}
