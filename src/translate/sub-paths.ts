import { PoddError } from '../base/errors.ts'
import { expandReferences } from './environment.ts'
import type { Environment } from './environment.ts'
import type { VolumeMountView } from './spec-view.ts'

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
  for (const [, name = ''] of subPathExpr.replaceAll('$$', '').matchAll(/\$\(([^)]*)\)/gu)) {
    if (!environment.has(name)) throw new PoddError('SUB_PATH', `missing value for "${name}"`)
  }
  const path = expandReferences(subPathExpr, environment)
  if (path.startsWith('/')) {
    throw new PoddError('SUB_PATH', `error SubPath "${path}" must not be an absolute path`)
  }
  if (path.split('/').includes('..')) {
    throw new PoddError('SUB_PATH', `unable to provision SubPath "${path}": must not contain '..'`)
  }
  return path === '' ? undefined : path
}
