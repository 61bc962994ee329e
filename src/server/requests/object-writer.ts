import type { JsonObject } from '../../base/json.ts'

/** What tells an object of the API from all others. */
export interface ObjectName {
  readonly kind: string
  /** Empty where the kind belongs to none. */
  readonly namespace: string
  readonly name: string
}

/** An object that was written over the API, as it is kept. */
export interface WrittenObject extends ObjectName {
  readonly uid: string
  /** With the API's defaults and the server's metadata; without what is derived. */
  readonly manifest: JsonObject
}

/** Keeps what is written over the API, and puts it into force. */
export interface ObjectWriter {
  /** The name of the node that all pods run on. */
  readonly nodeName: string
  /** Runs work that reads and writes, with no other such work in between. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  get(object: ObjectName): WrittenObject | undefined
  list(): readonly WrittenObject[]
  /**
   * Keeps an object; resolves when it is on disk and shown. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  put(manifest: JsonObject): Promise<void>
  /**
   * Resolves when the object is off the disk and shown no more. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  remove(object: ObjectName): Promise<void>
  /** Removes a namespace that is kept with its `deletionTimestamp`, once nothing is left in it. Within `exclusively`. */
  settleNamespace(name: string): Promise<void>
  /** Ends a pod that is kept with its `deletionTimestamp`; once it has ended it is removed. */
  endPod(uid: string, graceSeconds: number): void
}
