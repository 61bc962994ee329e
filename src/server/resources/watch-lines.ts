import type { ResourceChange } from '../../api/resource.ts'

/**
 * The lines that watches send. All clients of a change share the bytes of one line, as long as any of them waits for
 * it.
 */
export class WatchLines {
  readonly #lines = new WeakMap<ResourceChange<unknown>, Uint8Array>()

  /** The line of a change; the same bytes for each client. */
  lineOf(change: ResourceChange<unknown>): Uint8Array {
    const known = this.#lines.get(change)
    if (known !== undefined) return known
    const line = encodeLine({ type: change.type, object: change.object })
    this.#lines.set(change, line)
    return line
  }
}

/** A watch's line, in memory of its own: one in a buffer of Node's pool would keep the whole pool alive. */
export function encodeLine(line: { readonly type: string; readonly object: unknown }): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`)
}
