import type { KeptManifest, ObjectName } from './kept-document.ts'
import { keyOf } from './object-file.ts'

/** The objects that are followed: one for each name, and one for each UID of a kind. */
export class FollowedObjects {
  readonly #byKey = new Map<string, KeptManifest>()
  readonly #byUid = new Map<string, KeptManifest>()
  readonly #byPath = new Map<string, KeptManifest>()

  all(): readonly KeptManifest[] {
    return [...this.#byKey.values()]
  }

  get(object: ObjectName): KeptManifest | undefined {
    return this.#byKey.get(keyOf(object))
  }

  findByUid(kind: string, uid: string): KeptManifest | undefined {
    return this.#byUid.get(uidKeyOf({ kind, uid }))
  }

  findByPath(path: string): KeptManifest | undefined {
    return this.#byPath.get(path)
  }

  /** The one that has the name or the UID of this object, in another file. */
  findRival(kept: KeptManifest): KeptManifest | undefined {
    const rivals = [this.get(kept), this.findByUid(kept.kind, kept.uid)]
    return rivals.find((rival) => rival !== undefined && rival.path !== kept.path)
  }

  set(kept: KeptManifest): void {
    const before = this.get(kept)
    if (before !== undefined) this.#deletePlaces(before)
    this.#byKey.set(keyOf(kept), kept)
    this.#byUid.set(uidKeyOf(kept), kept)
    this.#byPath.set(kept.path, kept)
  }

  delete(kept: KeptManifest): void {
    if (this.get(kept) === kept) this.#byKey.delete(keyOf(kept))
    this.#deletePlaces(kept)
  }

  /** Another object may have them by now. */
  #deletePlaces(kept: KeptManifest): void {
    if (this.findByUid(kept.kind, kept.uid) === kept) this.#byUid.delete(uidKeyOf(kept))
    if (this.findByPath(kept.path) === kept) this.#byPath.delete(kept.path)
  }
}

export function uidKeyOf({ kind, uid }: Pick<KeptManifest, 'kind' | 'uid'>): string {
  return `${kind}/${uid}`
}
