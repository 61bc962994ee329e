import { basename, dirname, join, resolve } from 'node:path'
import { readFile, stat } from 'node:fs/promises'
import type { AppliedReply } from '../../api/applied.ts'
import { PoddError, errorCode } from '../../base/errors.ts'
import { isPodDocument } from '../../pod/objects/document.ts'
import type { SourceDocument } from '../../pod/objects/document.ts'
import { isManifestName } from '../../sources/manifest-name.ts'
import { appliedKey } from './plan-manifests.ts'
import type { ReadManifest } from './read-manifests.ts'

/** A manifest and the file of the manifest directory that it stands in, or is to stand in. */
export interface ManifestTarget {
  readonly manifest: ReadManifest
  readonly path: string
}

/** The directory that manifests are written to. Throws PoddError NO_MANIFEST_DIRECTORY. */
export async function findManifestDirectory({ manifestDirectory }: AppliedReply): Promise<string> {
  const hint = 'Set staticPodPath (--pod-manifest-path) to a directory; see docs/OPTIONS.md.'
  if (manifestDirectory === undefined)
    throw new PoddError('NO_MANIFEST_DIRECTORY', 'podd reads no directory of manifests', { hint })
  const found = await stat(manifestDirectory).catch(() => undefined)
  if (found?.isDirectory() === true) return manifestDirectory
  const what = found === undefined ? 'does not exist' : 'is a single file'
  throw new PoddError('NO_MANIFEST_DIRECTORY', `the manifest directory ${manifestDirectory} ${what}`, {
    hint,
  })
}

/** Where a manifest goes: under its own name; standard input under that of its first object. */
export function targetOf(manifest: ReadManifest, directory: string): ManifestTarget {
  const path = manifest.path === '-' ? undefined : resolve(manifest.path)
  if (path !== undefined && dirname(path) === resolve(directory)) return { manifest, path }
  const name = path === undefined ? undefined : basename(path)
  if (name !== undefined && isManifestName(name)) return { manifest, path: join(directory, name) }
  const first = manifest.documents[0]
  const own = first === undefined ? 'manifest' : objectName(first)
  return { manifest, path: join(directory, `${own}.yaml`) }
}

function objectName(document: SourceDocument): string {
  if (isPodDocument(document)) return document.pod.metadata.name
  const { kind, metadata } = document.object
  return `${kind.toLowerCase()}-${metadata.name}`
}

/** What stands in a file now, by its key: all that the daemon has of it. */
export function objectsIn(path: string, applied: AppliedReply): readonly string[] {
  return [...applied.pods, ...applied.objects].flatMap((each) => (each.path === path ? [each.key] : []))
}

/**
 * Why a manifest can't be written to its file: another file, or the URL, has one of its objects, or the file has objects
 * that the manifest lacks and that would end. Undefined where nothing stands against it.
 */
export function targetProblem(
  { manifest, path }: ManifestTarget,
  applied: AppliedReply,
  { overwrite }: { readonly overwrite: boolean },
): PoddError | undefined {
  const keys = manifest.documents.map((document) => appliedKey(document, applied))
  const elsewhere = [...applied.pods, ...applied.objects].find(
    (each) => keys.includes(each.key) && each.path !== path,
  )
  if (elsewhere !== undefined) {
    return new PoddError('MANIFEST_ELSEWHERE', `${elsewhere.key} stands in ${elsewhere.path}`, {
      hint: 'Change it there, or remove it there first.',
    })
  }
  const lost = objectsIn(path, applied).filter((key) => !keys.includes(key))
  if (lost.length === 0 || overwrite) return undefined
  return new PoddError('MANIFEST_ELSEWHERE', `${path} also has ${lost.join(', ')}, which would end`, {
    hint: 'Rename your file, or confirm with --overwrite.',
  })
}

/** Whether a file has this very text. */
export async function hasText(path: string, text: Uint8Array | string): Promise<boolean> {
  try {
    return (await readFile(path)).equals(Buffer.from(text))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}
