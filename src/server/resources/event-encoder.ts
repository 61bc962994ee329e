import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import type { Bookmark, Representation } from './representation.ts'
import { encodeLine } from './watch-lines.ts'
import type { WatchLines } from './watch-lines.ts'

/** Writes the events of one watch in the form that its client asked for. */
export class EventEncoder {
  readonly #form: Representation
  readonly #lines: WatchLines
  #hasColumns = false

  constructor(form: Representation, lines: WatchLines) {
    this.#form = form
    this.#lines = lines
  }

  encodeChange(change: ResourceChange<ResourceObject>): Uint8Array {
    return this.#form.isPlain ? this.#lines.lineOf(change) : this.encode(change.type, change.object)
  }

  encode(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ResourceObject): Uint8Array {
    const shown = this.#form.single(object)
    return encodeLine({
      type,
      object: this.#isFurtherTable(shown) ? { ...shown, columnDefinitions: null } : shown,
    })
  }

  encodeBookmark(bookmark: Bookmark): Uint8Array {
    return encodeLine({ type: 'BOOKMARK', object: this.#form.bookmark(bookmark) })
  }

  /** Only the first table of a watch has the column definitions. */
  #isFurtherTable(shown: unknown): shown is { readonly columnDefinitions: unknown } {
    if (typeof shown !== 'object' || shown === null || !('columnDefinitions' in shown)) return false
    const isFurther = this.#hasColumns
    this.#hasColumns = true
    return isFurther
  }
}
