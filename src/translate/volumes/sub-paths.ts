import { PoddError } from '../../base/errors.ts'
import type { VolumeSpec } from '../../pod/schema/volume-schema.ts'
import { cleanPath } from '../../base/text.ts'
import { expandReferences, splitReferences } from '../environment/environment.ts'
import type { Environment } from '../environment/environment.ts'
import type { VolumeMountView } from '../spec/spec-view.ts'

/** PATH_MAX, without its NUL. */
const longestPath = 4095

/**
 * The path inside its volume that a mount shows; undefined: all of the volume. A subPathExpr is expanded with
 * the container's environment, in which all its references have to stand
 * (`pkg/kubelet/kubelet_pods.go` makeMounts, `container/helpers.go` ExpandContainerVolumeMounts, 1.36).
 * @throws PoddError SUB_PATH
 */
export function computeSubPath(
  { subPath, subPathExpr }: Pick<VolumeMountView, 'subPath' | 'subPathExpr'>,
  environment: Environment,
): string | undefined {
  if (subPathExpr === undefined || subPathExpr === '') return subPath === '' ? undefined : subPath
  for (const part of splitReferences(subPathExpr)) {
    if (part.kind === 'text' || environment.has(part.name)) continue
    throw new PoddError('SUB_PATH', `missing value for "${part.name}"`)
  }
  const path = expandReferences(subPathExpr, environment, longestPath)
  if (path === undefined) {
    throw new PoddError('SUB_PATH', `subPathExpr gives a path of more than ${longestPath} bytes`)
  }
  if (path.startsWith('/')) {
    throw new PoddError('SUB_PATH', `error SubPath "${path}" must not be an absolute path`)
  }
  if (path.split('/').includes('..')) {
    throw new PoddError('SUB_PATH', `unable to provision SubPath "${path}": must not contain '..'`)
  }
  return path === '' ? undefined : path
}

/** What a mount shows where nothing is at its path: a directory that is made in the volume, an empty one, or nothing. */
export type MissingSubPath =
  | { readonly kind: 'make' }
  | { readonly kind: 'empty' }
  /** The container waits. */
  | { readonly kind: 'fail'; readonly message: string }

/**
 * A kubelet makes a directory in every volume (`pkg/kubelet/kubelet_pods.go` makeMounts, 1.36). Where podd writes the
 * files, that directory would stand in the way of the file for good, so the container waits for the file instead. What
 * is optional may be missing: the container gets an empty directory, as from a kubelet, and the file when it starts
 * again.
 */
export function whenSubPathMissing(volume: VolumeSpec, subPath: string): MissingSubPath {
  const { configMap, secret, downwardAPI, projected } = volume
  if ((configMap ?? secret ?? downwardAPI ?? projected) === undefined) return { kind: 'make' }
  const path = cleanPath(subPath)
  const objects = sourcesOf(volume).filter(({ items }) => mayGive(items, path))
  if (objects.some(({ optional }) => optional)) return { kind: 'empty' }
  const [name, key] = [volume.name, path].map((text) => JSON.stringify(text))
  const owners = objects.filter(({ items }) => items.length === 0).map(({ object }) => object)
  const remedy =
    owners.length === 0
      ? 'give one of the items of the volume that path'
      : `add the key ${key} to ${owners.join(' or ')}`
  return {
    kind: 'fail',
    message: `volume ${name} has no file ${key}: ${remedy}, or correct the subPath; the container starts by itself then`,
  }
}

interface ObjectSource {
  /** `ConfigMap "settings"` */
  readonly object: string
  readonly items: readonly { readonly path: string }[]
  readonly optional: boolean
}

function sourcesOf({ configMap, secret, projected }: VolumeSpec): readonly ObjectSource[] {
  const own = { configMap, secret: secret && { ...secret, name: secret.secretName } }
  return (projected?.sources ?? [own]).flatMap(({ configMap, secret }) =>
    [
      configMap && { ...configMap, object: `ConfigMap ${JSON.stringify(configMap.name)}` },
      secret && { ...secret, object: `Secret ${JSON.stringify(secret.name)}` },
    ].filter((source) => source !== undefined),
  )
}

/** Keys become files at the top of the volume, unless items give them other paths. */
function mayGive(items: readonly { readonly path: string }[], wanted: string): boolean {
  if (items.length === 0) return !wanted.includes('/')
  const paths = items.map(({ path }) => cleanPath(path))
  return paths.some((path) => path === wanted || path.startsWith(`${wanted}/`))
}
