import { sameData } from '../../base/json.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { resizableNames } from '../../pod/schema/pod-resources.ts'
import { diffPod, makesNewPod } from './diff-pod.ts'

/** The effect of a set of manifests on one pod. */
export interface PodChange {
  /**
   * `create`: it starts. `update`: it changes in place. `replace`: a new pod replaces it. `end`: it ends. `unchanged`:
   * nothing happens.
   */
  readonly verdict: 'create' | 'update' | 'replace' | 'end' | 'unchanged'
  /** What happens in place, or which fields need a new pod; a clause each. */
  readonly details: readonly string[]
}

/** The current state of a pod. */
export interface AppliedPod {
  readonly pod: Pod
  /** It was rejected, has finished, or is terminating: see makesNewPod. */
  readonly isPastChange: boolean
}

/** Decides as the daemon does, and says why. */
export function explainChange(before: AppliedPod | undefined, after: Pod | undefined): PodChange {
  if (after === undefined) return { verdict: before === undefined ? 'unchanged' : 'end', details: [] }
  if (before === undefined) return { verdict: 'create', details: [] }
  if (makesNewPod(before.pod, after, before.isPastChange))
    return { verdict: 'replace', details: replacingFields(before.pod, after) }
  if (diffPod(before.pod, after) === 'same') return { verdict: 'unchanged', details: [] }
  return { verdict: 'update', details: inPlaceChanges(before.pod, after) }
}

function inPlaceChanges(before: Pod, after: Pod): readonly string[] {
  const all = (pod: Pod): readonly ContainerSpec[] => [...pod.spec.initContainers, ...pod.spec.containers]
  const known = new Map(all(before).map((container) => [container.name, container]))
  const containers = all(after).flatMap((container) => {
    const old = known.get(container.name)
    if (old === undefined) return []
    const { name, image } = container
    const restart = old.image === image ? [] : [`container ${name} restarts: image ${old.image} -> ${image}`]
    return restart.concat(resizes(`container ${name}`, old, container))
  })
  const added = after.spec.ephemeralContainers
    .filter(({ name }) => !before.spec.ephemeralContainers.some((each) => each.name === name))
    .map(({ name }) => `ephemeral container ${name} starts`)
  const fields = [
    ...(['labels', 'annotations'] as const).map((key) => `metadata.${key}`),
    'spec.activeDeadlineSeconds',
    'spec.tolerations',
  ].filter((path) => !sameData(valueAt(before, path), valueAt(after, path)))
  return [
    ...containers,
    ...resizes('the pod', before.spec, after.spec),
    ...added,
    ...fields.map((path) => `${path} changes`),
  ]
}

interface Resourced {
  readonly resources?: ContainerSpec['resources'] | Pod['spec']['resources']
  readonly resizePolicy?: ContainerSpec['resizePolicy']
}

function resizes(what: string, before: Resourced, after: Resourced): readonly string[] {
  return resizableNames.flatMap((resource) => {
    const changes = (['requests', 'limits'] as const).flatMap((list) => {
      const [old, now] = [before.resources?.[list][resource], after.resources?.[list][resource]]
      return old === now ? [] : [`${list}.${resource} ${old ?? 'unset'} -> ${now ?? 'unset'}`]
    })
    const restarts = after.resizePolicy?.some(
      (policy) => policy.resourceName === resource && policy.restartPolicy === 'RestartContainer',
    )
    const verb = restarts === true ? 'restarts, resized' : 'is resized'
    return changes.length === 0 ? [] : [`${what} ${verb}: ${changes.join(', ')}`]
  })
}

/** The most fields that are named. */
const mostFields = 8

/** The fields that differ and can't change in place; all differing fields where only their combination can't. */
function replacingFields(before: Pod, after: Pod): readonly string[] {
  const differing = [...differences(before.spec, after.spec, 'spec')]
  const frozen = differing.filter((path) => !mayChange(path))
  const named = frozen.length > 0 ? frozen : differing
  const rest = named.length - mostFields
  return [...named.slice(0, mostFields), ...(rest > 0 ? [`${rest} more fields`] : [])]
}

const mutable =
  /^spec\.(?:activeDeadlineSeconds|tolerations(?:\[.*)?|(?:init)?[cC]ontainers\[\d+\]\.(?:image|imagePullPolicy|resources\.(?:limits|requests)\.(?:cpu|memory)))$/u

function mayChange(path: string): boolean {
  return mutable.test(path)
}

/** The paths of the deepest values that differ, as Kubernetes writes paths. */
function* differences(before: unknown, after: unknown, path: string): Generator<string> {
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [at, item] of before.entries()) yield* differences(item, after[at], `${path}[${at}]`)
    return
  }
  if (isMapping(before) && isMapping(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* differences(before[key], after[key], `${path}.${key}`)
    return
  }
  if (!Object.is(before, after) && JSON.stringify(before) !== JSON.stringify(after)) yield path
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function valueAt(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (isMapping(value) ? value[key] : undefined), object)
}
