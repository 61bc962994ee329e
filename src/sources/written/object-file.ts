import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { judgeUpdate } from '../../decide/writing/judge-update.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import { decodeKept, nameOfManifest, recoverKept } from './kept-document.ts'
import type { KeptManifest, ObjectName } from './kept-document.ts'

/** `Kind/namespace/name`; the namespace is empty for kinds without one. */
export function keyOf({ kind, namespace, name }: ObjectName): string {
  return `${kind}/${namespace}/${name}`
}

/** The longest that every file system takes, less what an atomic write adds. */
const longestFileName = 200

/** The name of an object's file. */
export function fileNameOf(object: ObjectName & { readonly uid: string }): string {
  const { kind, namespace, name } = object
  const parts = [kind.toLowerCase(), ...(namespace === '' ? [] : [namespace]), name]
  const file = `${parts.join('.')}.json`
  // No name that leaves the directory gets past validation; what does gets none here.
  const isPlain = file.length <= longestFileName && /^[\w.:-]+$/u.test(file)
  return isPlain ? file : otherFileNameOf(object)
}

/** The name of an object's file where it can't have the other one. */
export function otherFileNameOf({ kind, uid }: Pick<ObjectName, 'kind'> & { readonly uid: string }): string {
  return `${kind.toLowerCase()}.${uid}.json`
}

/** Whether a file of this name is an object's; others are ignored. */
export function isObjectFile(name: string): boolean {
  return name.endsWith('.json') && !name.startsWith('.')
}

/**
 * Reads the text of an object's file, which may have been edited by hand.
 * @param before the object of this file so far
 * @returns the object to follow from now on, if it changes; and why the text isn't followed, if it isn't
 */
export function readObjectFile(
  text: string,
  path: string,
  before: KeptManifest | undefined,
): { readonly kept?: KeptManifest; readonly refusal?: string } {
  const manifest = parse(text)
  const named = manifest === undefined ? undefined : nameOfManifest(manifest)
  if (manifest === undefined || named === undefined)
    return { refusal: 'not an object as the API keeps them: JSON with kind, metadata.name and metadata.uid' }
  if (before !== undefined && (keyOf(before) !== keyOf(named) || before.uid !== named.uid))
    return {
      refusal: 'another object than before: its kind, name, namespace and uid cannot be changed',
    }
  const { document, problems } = decodeKept(manifest, path)
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (before !== undefined) errors.push(...judgeUpdate(before.manifest, manifest, 'object'))
  const [first] = errors
  if (first === undefined) return { kept: { ...named, manifest, path, document } }
  const refusal = `${formatFieldPath(first.path)}: ${first.message}`
  const recovered = before === undefined ? recoverKept(manifest, path) : undefined
  if (recovered === undefined) return { refusal }
  return { refusal, kept: { ...named, manifest, path, document: recovered } }
}

/** Whether the text is an object's of another name. */
export function isOfAnother(text: string, object: ObjectName): boolean {
  const manifest = parse(text)
  const named = manifest === undefined ? undefined : nameOfManifest(manifest)
  return named !== undefined && keyOf(named) !== keyOf(object)
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: Json = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    // It is not JSON.
    return undefined
  }
}
