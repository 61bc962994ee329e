import { sameData } from '../base/json.ts'
import type { SourcedDocument } from '../decide/merge-snapshots.ts'
import type { ObjectDocument, Problem } from '../pod/document.ts'
import type { LocalObject, ObjectKey, ObjectKind, ObjectOf, ObjectReader } from '../pod/local-object.ts'
import { objectKey } from '../pod/local-object.ts'
import { podReferences } from '../pod/pod-references.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'

/**
 * The ConfigMaps, Secrets, claims and classes that the sources want now. One writer: the handler of
 * snapshots. What it takes over it keeps until a source says otherwise.
 */
export class ObjectStore implements ObjectReader {
  #held: ReadonlyMap<ObjectKey, SourcedDocument<ObjectDocument>> = new Map()
  #problems: readonly Problem[] = []

  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string): ObjectOf<Kind> | undefined {
    const object = this.#held.get(objectKey(kind, namespace, name))?.document.object
    return object !== undefined && isOfKind(object, kind) ? object : undefined
  }

  list<Kind extends ObjectKind>(kind: Kind): readonly ObjectOf<Kind>[] {
    return this.documents().flatMap(({ document }) =>
      isOfKind(document.object, kind) ? [document.object] : [],
    )
  }

  /** All of them, in the order of their keys. */
  documents(): readonly SourcedDocument<ObjectDocument>[] {
    return [...this.#held].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, held]) => held)
  }

  /** Whose document an object is. */
  holder(
    key: ObjectKey,
  ): { readonly source: SourcedDocument<unknown>['source']; readonly path: string } | undefined {
    const held = this.#held.get(key)
    return held === undefined ? undefined : { source: held.source, path: held.document.place.path }
  }

  /** Documents that are not followed, and why. */
  problems(): readonly Problem[] {
    return this.#problems
  }

  /** Takes over what is wanted now; gives the keys of what came, changed or went. */
  replace(wanted: ReadonlyMap<ObjectKey, SourcedDocument<ObjectDocument>>): ReadonlySet<ObjectKey> {
    const before = this.#held
    const problems: Problem[] = []
    const held = new Map(
      [...wanted].map(([key, fresh]) => {
        const known = before.get(key)
        if (known === undefined || !isFrozen(known.document.object, fresh.document.object))
          return [key, fresh]
        problems.push(frozenProblem(key, fresh.document))
        return [key, known]
      }),
    )
    this.#held = held
    this.#problems = problems
    const keys = new Set([...before.keys(), ...held.keys()])
    return new Set(
      [...keys].filter((key) => !sameData(before.get(key)?.document.object, held.get(key)?.document.object)),
    )
  }
}

/** Whether a pod refers to any of these. */
export function refersTo(pod: Pod, changed: ReadonlySet<ObjectKey>): boolean {
  return changed.size > 0 && [...podReferences(pod)].some((key) => changed.has(key))
}

function isOfKind<Kind extends ObjectKind>(object: LocalObject, kind: Kind): object is ObjectOf<Kind> {
  return object.kind === kind
}

/** An immutable object stays as it is until it is removed; its labels and annotations may change. */
function isFrozen(before: LocalObject, after: LocalObject): boolean {
  if (before.kind !== 'ConfigMap' && before.kind !== 'Secret') return false
  return before.immutable && !sameData({ ...before, metadata: undefined }, { ...after, metadata: undefined })
}

function frozenProblem(key: ObjectKey, { place }: ObjectDocument): Problem {
  return {
    severity: 'error',
    place,
    object: key,
    field: 'data',
    message: 'Forbidden: field is immutable when `immutable` is set; the old content stays',
    hint: 'Give the changed object another name, or remove the old one first.',
  }
}
