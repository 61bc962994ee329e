import { sameData } from '../../base/json.ts'
import type { ObjectDocument, Problem, SourceName } from '../../pod/objects/document.ts'
import type { ObjectKey, ObjectPolicies } from '../../pod/objects/local-object.ts'
import { isNamespaced, keyOfObject } from '../../pod/objects/local-object.ts'
import { objectKinds } from '../../pod/objects/object-kinds.ts'
import { configNames, kindOfSource, policySettings, sourceWords } from '../../pod/values/ids.ts'
import type { RuntimeClass } from '../../pod/objects/object-kinds.ts'
import type { RuntimeClassFacts } from '../admission/resolve-classes.ts'
import type { SourcedDocument } from './settle-rivals.ts'

/** An object's document and the source that gave it. */
export type SourcedObject = SourcedDocument<ObjectDocument>

/** The configuration about objects. */
export interface ObjectRules {
  readonly policies: ObjectPolicies
  /** RuntimeClasses of the configuration, by name: documents can't override them. */
  readonly runtimeClasses: ReadonlyMap<string, RuntimeClassFacts>
}

/** Why a document isn't followed, and what to do about it. */
interface Refusal {
  readonly message: string
  readonly hint: string
}

/**
 * The objects that are allowed, before conflicts of names are resolved. RuntimeClasses and the default PriorityClass
 * apply to all pods: they come from the configuration, then from the manifest directory, and from another source only
 * where its policy allows it.
 * @param given in the order of the sources
 */
export function selectAllowedObjects(
  given: readonly SourcedObject[],
  rules: ObjectRules,
): { readonly allowed: readonly SourcedObject[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const allowed = given.filter((held) => {
    const refusal = refuseObject(held, rules) ?? refuseSecondDefault(held, given)
    if (refusal === undefined) return true
    const { place, object } = held.document
    problems.push({ severity: 'error', place, object: keyOfObject(object), ...refusal })
    return false
  })
  return { allowed, problems }
}

/**
 * The identity for which documents compete: each source has ConfigMaps and Secrets of its own; a claim is a directory
 * of the host, and a class applies to all pods.
 */
export function objectIdentity({ source, document }: SourcedObject): string {
  const key = keyOfObject(document.object)
  return objectKinds[document.object.kind].isPerSource ? `${source} ${key}` : key
}

/** Whether the order of the sources decides between two of one name, rather than which came first. */
export function isRankedBySource({ document: { object } }: SourcedObject): boolean {
  return !isNamespaced(object.kind)
}

/** The objects that the pods of a source see, its own first. */
export function selectVisibleObjects(
  held: readonly SourcedObject[],
  source: SourceName,
  policies: ObjectPolicies,
): ReadonlyMap<ObjectKey, SourcedObject> {
  const seen = held.filter((object) => isVisible(object, source, policies))
  const own = seen.filter((object) => object.source === source)
  const others = seen.filter((object) => object.source !== source)
  const byKey = new Map<ObjectKey, SourcedObject>()
  for (const object of [...own, ...others]) {
    const key = keyOfObject(object.document.object)
    if (!byKey.has(key)) byKey.set(key, object)
  }
  return byKey
}

function isVisible(held: SourcedObject, source: SourceName, policies: ObjectPolicies): boolean {
  if (held.source === source) return true
  if (!isNamespaced(held.document.object.kind)) return policies[kindOfSource(held.source)].givesClusterObjects
  return policies[kindOfSource(source)].readsObjectsOf.includes(kindOfSource(held.source))
}

/** The addition to a message about a missing object where `source` may not read an existing one. */
export function explainHidden(source: SourceName, owner: SourceName): string {
  return `${sourceWords(owner)} gives one, which the pods of ${sourceWords(source)} may read only where ${policySettings(source)}.readsObjectsOf in podd's configuration has "${configNames[kindOfSource(owner)]}"`
}

function refuseObject(
  { source, document: { object } }: SourcedObject,
  rules: ObjectRules,
): Refusal | undefined {
  const { givesClusterObjects } = rules.policies[kindOfSource(source)]
  if (object.kind === 'RuntimeClass') {
    return givesClusterObjects
      ? refuseShadowed(object, rules)
      : refuseClusterObject(source, `RuntimeClass ${object.metadata.name}`)
  }
  if (object.kind === 'PriorityClass' && object.globalDefault && !givesClusterObjects)
    return refuseClusterObject(source, `PriorityClass ${object.metadata.name}, which is the default,`)
  return undefined
}

function refuseClusterObject(source: SourceName, what: string): Refusal {
  return {
    message: `${what} holds for all pods, and ${sourceWords(source)} may not give such a class; it is not followed`,
    hint: `Set ${policySettings(source)}.givesClusterObjects in podd's configuration to allow it.`,
  }
}

function refuseShadowed(
  { metadata, handler, overhead }: RuntimeClass,
  { runtimeClasses }: ObjectRules,
): Refusal | undefined {
  const configured = runtimeClasses.get(metadata.name)
  if (configured === undefined) return undefined
  const same = configured.handler === handler && sameData(configured.overhead ?? {}, overhead?.podFixed ?? {})
  if (same) return undefined
  return {
    message: `RuntimeClass ${metadata.name} stands in runtimeClasses of podd's configuration too, which is followed; this one is not`,
    hint: 'Remove one of the two, or give it another name.',
  }
}

/** Of two defaults the first counts (`plugin/pkg/admission/priority`, validatePriorityClass, 1.36). */
function refuseSecondDefault(
  { document: { object } }: SourcedObject,
  given: readonly SourcedObject[],
): Refusal | undefined {
  if (object.kind !== 'PriorityClass' || !object.globalDefault) return undefined
  const first = given.find(({ document }) => isDefaultClass(document))
  if (first === undefined || keyOfObject(first.document.object) === keyOfObject(object)) return undefined
  return {
    message: `PriorityClass ${first.document.object.metadata.name} in ${first.document.place.path} is already marked as default; only one default can exist`,
    hint: 'Remove globalDefault from one of the two.',
  }
}

function isDefaultClass({ object }: ObjectDocument): boolean {
  return object.kind === 'PriorityClass' && object.globalDefault
}
