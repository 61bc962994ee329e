/* What a source gives: documents with their places, and problems. */
import type { Json, JsonObject } from '../../base/json.ts'
import { podKey } from '../values/ids.ts'
import type { LocalObject } from './local-object.ts'
import { keyOfObject } from './local-object.ts'
import type { FaultReason } from '../schema/issues.ts'
import type { Pod } from '../schema/pod-schema.ts'
import type { SourceName } from '../values/ids.ts'

export type { SourceName } from '../values/ids.ts'

/** The place of a document. Lines and columns count from 1. */
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
  /** The path of the faulty field in its document (`spec.containers[0].image`), if any. */
  readonly field?: string | undefined
  /** The type of an error about a field. */
  readonly reason?: FaultReason | undefined
  readonly message: string
  readonly hint?: string | undefined
  /** `namespace/name` of the object, where it could be read. */
  readonly object?: string | undefined
  /** Of a warning about documents that are taken without effect: `ServiceAccount web`. */
  readonly idle?: readonly string[] | undefined
}

/** An error about what stands in a place, as a whole. */
export function errorAt(path: string, message: string, hint?: string): Problem {
  return { severity: 'error', place: { path }, message, hint }
}

export function warningAt(path: string, message: string, hint?: string): Problem {
  return { severity: 'warning', place: { path }, message, hint }
}

/** How many documents such a warning names. */
const maxIdleNamed = 8

/** The warning that documents have no effect. */
export function idleWarning(place: Place, idle: readonly string[]): Problem {
  const named = idle.slice(0, maxIdleNamed).join(', ')
  const more = idle.length > maxIdleNamed ? ` and ${idle.length - maxIdleNamed} more` : ''
  const message = `taken without effect, as nothing on one host goes by it: ${named}${more}`
  return { severity: 'warning', place, message, idle }
}

/** The problems of a source's texts, with one such warning for all of them, at the place of the first. */
export function joinIdleWarnings(problems: readonly Problem[]): readonly Problem[] {
  const warnings = problems.filter(({ idle }) => idle !== undefined)
  const [first] = warnings
  if (first === undefined || warnings.length === 1) return problems
  const joined = idleWarning(
    first.place,
    warnings.flatMap(({ idle = [] }) => idle),
  )
  return problems.flatMap((problem) =>
    problem.idle === undefined ? [problem] : problem === first ? [joined] : [],
  )
}

/** The workload's document from which a pod was expanded, in the pod's namespace. */
export interface PodOwner {
  readonly kind: string
  readonly name: string
  /** Of one that was written over the API; that of others follows from its name (`objectUid`). */
  readonly uid?: string | undefined
}

/** The metadata of an object that was written over the API. */
export interface WrittenMetadata {
  readonly uid: string
  /** Wall time in milliseconds. */
  readonly createdAtMs: number
  /** The manifest as written, with the server's metadata. */
  readonly metadata: JsonObject
  /** Of a workload: its spec as it was written, with what has no effect, so that clients read what they wrote. */
  readonly spec?: Json | undefined
}

/** One pod of a source, decoded and defaulted, with the manifest it came from. */
export interface PodDocument {
  readonly pod: Pod
  /** The manifest as it was written (ignored fields dropped, no defaults): what is recorded, compared and hashed. */
  readonly manifest: JsonObject
  readonly place: Place
  /** See `SourceDocument`. */
  readonly written?: string | undefined
  readonly signedBy?: string | undefined
  /** Absent where the document is a Pod itself. */
  readonly owner?: PodOwner | undefined
  /** How long it has to be Ready to be healthy, and may take for that; what is left out follows podd's settings. */
  readonly progress?: { readonly minReadyMs?: number; readonly deadlineMs?: number } | undefined
  /** Absent of what comes from elsewhere. */
  readonly kept?: WrittenMetadata | undefined
}

/** One object that pods refer to, decoded and defaulted, with the manifest it came from. */
export interface ObjectDocument {
  readonly object: LocalObject
  /** As it was written; ignored fields dropped, no defaults. */
  readonly manifest: JsonObject
  readonly place: Place
  /** See `SourceDocument`. */
  readonly written?: string | undefined
  readonly signedBy?: string | undefined
  /** The CronJob that has started it, or the StatefulSet whose claim it is; absent where the document is the object itself. */
  readonly owner?: PodOwner | undefined
  /** The newest manifest, where an earlier one counts than what was written over the API. */
  readonly newest?: JsonObject | undefined
  /** Absent of what comes from elsewhere. */
  readonly kept?: WrittenMetadata | undefined
}

/**
 * Any document of a source. `written`: a digest of all good documents of the text that it stood in, as they were written, so
 * that it stays what it is when podd understands more of them, or less; absent of what an older podd has kept. `signedBy`: the
 * ID of the key that has signed the text, where its source demands a signature.
 */
export type SourceDocument = PodDocument | ObjectDocument

export function isPodDocument(document: SourceDocument): document is PodDocument {
  return 'pod' in document
}

export function isObjectDocument(document: SourceDocument): document is ObjectDocument {
  return 'object' in document
}

/** Documents by what they are, in their order. */
export function groupDocuments(
  documents: readonly SourceDocument[],
): Pick<SourceSnapshot, 'pods' | 'objects'> {
  return {
    pods: documents.filter((document) => isPodDocument(document)),
    objects: documents.filter((document) => isObjectDocument(document)),
  }
}

/** Of the workload that owns a pod or Job of this namespace. */
export function keyOfOwner({ kind, name }: PodOwner, namespace: string): string {
  return `${kind}/${namespace}/${name}`
}

/** The key of a document's object: a PodKey, or an ObjectKey, which never equals a PodKey. */
export function documentKey(document: SourceDocument): string {
  return isPodDocument(document) ? podKey(document.pod.metadata) : keyOfObject(document.object)
}

/**
 * The full content of a source, with its problems. Invalid documents are in it in their last good form, so that `pods`
 * is always what shall run.
 */
export interface SourceSnapshot {
  readonly source: SourceName
  /** The directory, or the URL without its credentials. */
  readonly location: string
  /**
   * Whether it was read at least once, or replaced by its last good copy. While a source isn't ready, only pods are
   * removed that another one is seen to drop: given in one answer (`isAnswer`) and not in the next.
   */
  readonly ready: boolean
  /** Whether it was given by the source itself since podd started, rather than by its last good copy. */
  readonly isAnswer?: boolean
  /** What the source itself calls this content: an ETag. */
  readonly revision?: string | undefined
  /** SHA-256 of the answer that it is of, as the server sent it; left out where there is none or that is not known. */
  readonly digest?: string | undefined
  /**
   * Why it runs in place of what the source gives: somebody holds the source, or podd crashed on that, of which the snapshot says
   * nothing then.
   */
  readonly standsIn?: 'held' | 'crashed'
  /** It is, at least in part, a copy that was kept without Secrets. */
  readonly lacksSecrets?: boolean
  readonly pods: readonly PodDocument[]
  /** The objects that pods refer to; invalid ones in their last good form. */
  readonly objects: readonly ObjectDocument[]
  readonly problems: readonly Problem[]
  /** Files that can't be read at all: pods recorded as theirs stay. */
  readonly unreadable?: readonly string[]
  /** The paths of documents of an earlier revision, which counts in place of what the source gives there. */
  readonly earlier?: readonly string[]
}
