import { sameData } from '../../base/json.ts'
import { explainHidden, selectVisibleObjects } from '../../decide/sources/merge-snapshots.ts'
import type { ObjectRules, SourcedObject } from '../../decide/sources/merge-snapshots.ts'
import type { ObjectDocument, Problem } from '../../pod/objects/document.ts'
import {
  keyOfObject,
  objectKey,
  podReferences,
  pullSecretReferences,
} from '../../pod/objects/local-object.ts'
import type { ObjectKey, ObjectReader } from '../../pod/objects/local-object.ts'
import type { LocalObject, ObjectKind, ObjectOf } from '../../pod/objects/object-kinds.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { sourceKinds } from '../../pod/values/ids.ts'
import type { SourceName } from '../../pod/values/ids.ts'

/** A pod, and the source whose objects it reads. */
export interface SourcedPod {
  readonly pod: Pod
  readonly source: SourceName
}

/** The objects that the pods of each source see. */
export interface ObjectViews {
  readonly rules: ObjectRules
  seenBy(source: SourceName): ObjectReader
}

/** The keys of added, changed or removed objects, for the pods of each source. */
export type ChangedObjects = ReadonlyMap<SourceName, ReadonlySet<ObjectKey>>

/**
 * The ConfigMaps, Secrets, claims and classes that the sources want now. One writer: the handler of snapshots. Objects
 * stay until a source changes or removes them.
 */
export class ObjectStore implements ObjectViews {
  readonly rules: ObjectRules
  #held: ReadonlyMap<string, SourcedObject> = new Map()
  /** The views of all sources that give objects or whose pods have requested any. */
  readonly #views = new Map<SourceName, ReadonlyMap<ObjectKey, SourcedObject>>(
    sourceKinds.map((kind) => [kind, new Map()]),
  )
  #problems: readonly Problem[] = []
  readonly #followers: (() => void)[] = []

  constructor(rules: ObjectRules) {
    this.rules = rules
  }

  /** The view follows later changes. */
  seenBy(source: SourceName): ObjectReader {
    return {
      get: (kind, namespace, name) => {
        const object = this.#viewOf(source).get(objectKey(kind, namespace, name))?.document.object
        return object !== undefined && isOfKind(object, kind) ? object : undefined
      },
      list: (kind) => {
        const seen = [...this.#viewOf(source)].sort(([a], [b]) => (a < b ? -1 : 1))
        return seen.flatMap(([, { document }]) => (isOfKind(document.object, kind) ? [document.object] : []))
      },
      sourceOf: (key) => this.#viewOf(source).get(key)?.source,
      explainMissing: (key) => {
        const hidden = this.documents().find(({ document }) => keyOfObject(document.object) === key)
        return hidden === undefined ? undefined : explainHidden(source, hidden.source)
      },
    }
  }

  /** All of them, in the order of their keys. */
  documents(): readonly SourcedObject[] {
    return [...this.#held].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, held]) => held)
  }

  /** The source of an object; `asking` itself where it has one. */
  holder(
    key: ObjectKey,
    asking: SourceName,
  ): { readonly source: SourceName; readonly path: string } | undefined {
    const held =
      this.#held.get(heldKey(key, asking)) ??
      [...this.#held.values()].find(({ document }) => keyOfObject(document.object) === key)
    return held === undefined ? undefined : { source: held.source, path: held.document.place.path }
  }

  /** Documents that are not followed, and why. */
  problems(): readonly Problem[] {
    return this.#problems
  }

  /** Calls `listener` after each change of the objects. */
  follow(listener: () => void): void {
    this.#followers.push(listener)
  }

  /** Replaces the content by the given objects, in the order of the sources. */
  replace(wanted: readonly SourcedObject[]): ChangedObjects {
    const before = this.#held
    const problems: Problem[] = []
    this.#held = new Map(
      wanted.map((fresh) => {
        const objectsKey = keyOfObject(fresh.document.object)
        const key = heldKey(objectsKey, fresh.source)
        const known = before.get(key)
        if (known === undefined || !isFrozen(known.document.object, fresh.document.object))
          return [key, fresh]
        problems.push(frozenProblem(objectsKey, fresh.document))
        return [key, known]
      }),
    )
    this.#problems = problems
    const held = [...this.#held.values()]
    const sources = new Set([...this.#views.keys(), ...held.map(({ source }) => source)])
    const changed = new Map<SourceName, ReadonlySet<ObjectKey>>()
    for (const source of sources) {
      const seen = selectVisibleObjects(held, source, this.rules.policies)
      changed.set(source, changedKeys(this.#views.get(source), seen))
      this.#views.set(source, seen)
    }
    for (const follower of this.#followers) follower()
    return changed
  }

  #viewOf(source: SourceName): ReadonlyMap<ObjectKey, SourcedObject> {
    const known = this.#views.get(source)
    if (known !== undefined) return known
    const seen = selectVisibleObjects([...this.#held.values()], source, this.rules.policies)
    this.#views.set(source, seen)
    return seen
  }
}

/** Whether a pod refers to any of these. */
export function refersTo({ pod, source }: SourcedPod, changed: ChangedObjects): boolean {
  const keys = changed.get(source)
  if (keys === undefined || keys.size === 0) return false
  return [...podReferences(pod)].some((key) => keys.has(key))
}

/** Whether any of these is a Secret that a pod names for its image pulls. */
export function pullsWith({ pod, source }: SourcedPod, changed: ChangedObjects): boolean {
  const keys = changed.get(source)
  return keys !== undefined && pullSecretReferences(pod).some((key) => keys.has(key))
}

function heldKey(key: ObjectKey, source: SourceName): string {
  return `${key} ${source}`
}

function changedKeys(
  before: ReadonlyMap<ObjectKey, SourcedObject> = new Map(),
  after: ReadonlyMap<ObjectKey, SourcedObject> = new Map(),
): ReadonlySet<ObjectKey> {
  const keys = new Set([...before.keys(), ...after.keys()])
  return new Set(
    [...keys].filter((key) => !sameData(before.get(key)?.document.object, after.get(key)?.document.object)),
  )
}

function isOfKind<Kind extends ObjectKind>(object: LocalObject, kind: Kind): object is ObjectOf<Kind> {
  return object.kind === kind
}

/** An immutable object stays unchanged until it is removed; its labels and annotations may change. */
function isFrozen(before: LocalObject, after: LocalObject): boolean {
  if (!('immutable' in before) || !before.immutable) return false
  return !sameData({ ...before, metadata: undefined }, { ...after, metadata: undefined })
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
