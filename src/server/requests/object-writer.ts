import type { JsonObject } from '../../base/json.ts'

/** The identity of an object of the API. */
export interface ObjectName {
  readonly kind: string
  /** Empty where the kind belongs to none. */
  readonly namespace: string
  readonly name: string
}

/** An object that was written over the API, as it is kept. */
export interface WrittenObject extends ObjectName {
  readonly uid: string
  /** With the API's defaults and the server's metadata, without derived fields. */
  readonly manifest: JsonObject
}

/** Keeps objects that are written over the API, and puts them into effect. */
export interface ObjectWriter {
  /** The name of the node that all pods run on. */
  readonly nodeName: string
  /** Runs a transaction: no other one runs in between. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  get(object: ObjectName): WrittenObject | undefined
  list(): readonly WrittenObject[]
  /**
   * Keeps an object; resolves when it is on disk and shown. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  put(manifest: JsonObject): Promise<void>
  /**
   * Resolves when the object is removed from the disk and no longer shown. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  remove(object: ObjectName): Promise<void>
  /** Removes a namespace that is kept with its `deletionTimestamp`, once nothing is left in it. Within `exclusively`. */
  settleNamespace(name: string): Promise<void>
  /** Ends a pod that is kept with its `deletionTimestamp`; once it has ended it is removed. */
  endPod(uid: string, graceSeconds: number): void
}
