import type { JsonObject } from '../../base/json.ts'
import { podKey } from '../values/ids.ts'
import type { LocalObject } from './local-object.ts'
import { keyOfObject } from './local-object.ts'
import type { FaultReason } from '../schema/field-path.ts'
import type { Pod } from '../schema/pod-schema.ts'
import type { SourceName } from '../values/source-name.ts'

export type { SourceName } from '../values/source-name.ts'

/** Where a document stands. Lines and columns count from 1. */
export interface Place {
  /** A file's path, or the URL without its credentials. */
  readonly path: string
  readonly line?: number | undefined
  readonly column?: number | undefined
}

/** Something wrong, or worth a warning, in what a source gave. */
export interface Problem {
  readonly severity: 'error' | 'warning'
  readonly place: Place
  /** The field's path in its document (`spec.containers[0].image`), where one is to blame. */
  readonly field?: string | undefined
  /** What kind of fault an error about a field is. */
  readonly reason?: FaultReason | undefined
  readonly message: string
  readonly hint?: string | undefined
  /** `namespace/name` of the object, where it could be read. */
  readonly object?: string | undefined
}

/** The document that a pod was expanded from, of the pod's own namespace: a workload's. */
export interface PodOwner {
  readonly kind: string
  readonly name: string
}

/** What the API keeps of an object that was written over it. */
export interface KeptObject {
  readonly uid: string
  /** Wall time in milliseconds. */
  readonly createdAtMs: number
  /** As it was written, with what the server says of it. */
  readonly metadata: JsonObject
}

/** One pod of a source, decoded and defaulted, with the manifest it came from. */
export interface PodDocument {
  readonly pod: Pod
  /** The manifest as it was written (ignored fields dropped, no defaults): what is recorded, compared and hashed. */
  readonly manifest: JsonObject
  readonly place: Place
  /** Absent where the document is a Pod itself. */
  readonly owner?: PodOwner | undefined
  /** Absent of what comes from elsewhere. */
  readonly kept?: KeptObject | undefined
}

/** One object that pods refer to, decoded and defaulted, with the manifest it came from. */
export interface ObjectDocument {
  readonly object: LocalObject
  /** As it was written; ignored fields dropped, no defaults. */
  readonly manifest: JsonObject
  readonly place: Place
  /** Absent of what comes from elsewhere. */
  readonly kept?: KeptObject | undefined
}

/** Any document that a source takes. */
export type SourceDocument = PodDocument | ObjectDocument

export function isPodDocument(document: SourceDocument): document is PodDocument {
  return 'pod' in document
}

export function isObjectDocument(document: SourceDocument): document is ObjectDocument {
  return 'object' in document
}

/** What a document is about: a PodKey, or an ObjectKey, which no PodKey equals. */
export function documentKey(document: SourceDocument): string {
  return isPodDocument(document) ? podKey(document.pod.metadata) : keyOfObject(document.object)
}

/**
 * All that a source wants, and all that is wrong with it. Documents that turned bad are in it in their
 * last good form, so that `pods` is always what shall run.
 */
export interface SourceSnapshot {
  readonly source: SourceName
  /** The directory, or the URL without its credentials. */
  readonly location: string
  /** Read at least once, or stood in for by its last good copy. No pod is removed while a source isn't. */
  readonly ready: boolean
  readonly pods: readonly PodDocument[]
  /** What the pods refer to; in their last good form too. */
  readonly objects: readonly ObjectDocument[]
  readonly problems: readonly Problem[]
  /** Files of which nothing can be read: what is on record as theirs stays. */
  readonly unreadable?: readonly string[]
}
