import { PoddError } from '../../base/errors.ts'
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
