/*
 * What a changed manifest means for the pod that runs: it stays, changes in place, or makes a new pod; and why, in
 * words.
 */
import { canonicalJson, sameData } from '../../base/json.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { computeQosClass, isResizableInit, resizableNames } from '../../pod/schema/pod-resources.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { withPodResources, withResizable } from '../plan/resize.ts'

/** The effect of a new manifest on the existing pod. */
export type PodDiff = 'same' | 'in-place' | 'replace'

/**
 * Compares two manifests of one pod, both with their defaults. Kubernetes lets a container's image, its cpu and memory
 * and those of the pod, labels, annotations, tolerations and activeDeadlineSeconds change in place, and ephemeral
 * containers be added (`pkg/apis/core/validation` ValidatePodUpdate, ValidatePodResize and
 * ValidatePodEphemeralContainersUpdate, Kubernetes 1.36); anything else, including a changed or removed ephemeral
 * container, makes a new pod. imagePullPolicy may change with the image: its default follows the tag, and it acts only
 * when a container starts. So does enableServiceLinks, which records of podds that knew no Services don't have.
 */
export function diffPod(before: Pod, after: Pod): PodDiff {
  if (sameData(before, after)) return 'same'
  const mayResize = isResize(before, after)
  const { ephemeralContainers: debuggers } = before.spec
  const known = (container: ContainerSpec): boolean => debuggers.some(({ name }) => name === container.name)
  const frozen = (pod: Pod): string =>
    canonicalJson({
      ...(mayResize ? withPodResources(pod.spec, { limits: {}, requests: {} }) : pod.spec),
      activeDeadlineSeconds: undefined,
      tolerations: undefined,
      // Of no effect.
      preemptionPolicy: undefined,
      enableServiceLinks: undefined,
      initContainers: pod.spec.initContainers.map((c) => frozenContainer(c, mayResize && isResizableInit(c))),
      containers: pod.spec.containers.map((c) => frozenContainer(c, mayResize)),
      ephemeralContainers: pod.spec.ephemeralContainers.filter((c) => known(c)).toSorted(byName),
    })
  return frozen(before) === frozen(after) ? 'in-place' : 'replace'
}

/**
 * Whether a manifest makes a new pod. As with static pods of the kubelet, any change of the spec does where the pod can
 * no longer change in place: it was rejected, has ended or is terminating.
 */
export function makesNewPod(before: Pod, after: Pod, isPastChange: boolean): boolean {
  return (isPastChange && !isSameSpec(before, after)) || diffPod(before, after) === 'replace'
}

/** But for what older records don't have: a pod that has ended is not to run again for an update of podd. */
function isSameSpec(before: Pod, after: Pod): boolean {
  const { enableServiceLinks } = after.spec
  return sameData({ ...before.spec, enableServiceLinks }, after.spec)
}

function byName(a: ContainerSpec, b: ContainerSpec): number {
  return a.name < b.name ? -1 : 1
}

function frozenContainer(container: ContainerSpec, mayResize: boolean): object {
  const resources = mayResize
    ? withResizable(container.resources, { limits: {}, requests: {} })
    : container.resources
  return { ...container, resources, image: undefined, imagePullPolicy: undefined }
}

/**
 * Whether cpu and memory may change as they do, of containers and of the pod: the QoS class stays, and nothing that was
 * set is removed.
 */
function isResize(before: Pod, after: Pod): boolean {
  if (computeQosClass(before.spec) !== computeQosClass(after.spec)) return false
  if (before.spec.resources !== undefined && !keepsAll(before.spec.resources, after.spec.resources))
    return false
  const all = (pod: Pod): readonly ContainerSpec[] => [...pod.spec.initContainers, ...pod.spec.containers]
  const successors = new Map(all(after).map((container) => [container.name, container.resources]))
  return all(before).every(({ name, resources }) => keepsAll(resources, successors.get(name)))
}

/** Whether each limit and request of cpu and memory is still set. */
function keepsAll(before: ResourceLists, after: ResourceLists | undefined): boolean {
  return (['limits', 'requests'] as const).every((list) =>
    resizableNames.every(
      (resource) => before[list][resource] === undefined || after?.[list][resource] !== undefined,
    ),
  )
}

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
    'spec.enableServiceLinks',
    'spec.tolerations',
  ].flatMap((path) => formatDifferences(valueAt(before, path), valueAt(after, path), path))
  return [...containers, ...resizes('the pod', before.spec, after.spec), ...added, ...named(fields)]
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
const maxFields = 8

/** The fields that differ and can't change in place; all differing fields where only their combination can't. */
function replacingFields(before: Pod, after: Pod): readonly string[] {
  const differing = [...differences(before.spec, after.spec, 'spec')]
  const frozen = differing.filter(({ path }) => !mutable.test(path))
  return named((frozen.length > 0 ? frozen : differing).map((difference) => formatDifference(difference)))
}

function named(fields: readonly string[]): readonly string[] {
  const rest = fields.length - maxFields
  return rest > 0 ? [...fields.slice(0, maxFields), `${rest} more fields`] : fields
}

const mutable =
  /^spec\.(?:activeDeadlineSeconds|enableServiceLinks|tolerations(?:\[.*)?|(?:init)?[cC]ontainers\[\d+\]\.(?:image|imagePullPolicy|resources\.(?:limits|requests)\.(?:cpu|memory)))$/u

interface Difference {
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

/** Where two values differ, with both, a line each: `spec.hostNetwork false -> true`. */
export function formatDifferences(before: unknown, after: unknown, path: string): readonly string[] {
  return [...differences(before, after, path)].map((difference) => formatDifference(difference))
}

/** The deepest values that differ, with their paths as Kubernetes writes them. */
function* differences(before: unknown, after: unknown, path: string): Generator<Difference> {
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [at, item] of before.entries()) yield* differences(item, after[at], `${path}[${at}]`)
    return
  }
  if (isMapping(before) && isMapping(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* differences(before[key], after[key], isPlainKey.test(key) ? `${path}.${key}` : `${path}[${key}]`)
    return
  }
  if (!Object.is(before, after)) yield { path, before, after }
}

const isPlainKey = /^\w+$/u

function formatDifference({ path, before, after }: Difference): string {
  return `${path} ${formatValue(before)} -> ${formatValue(after)}`
}

/** Of a longer one, how it begins is not what differs. */
const maxValueLetters = 48

function formatValue(value: unknown): string {
  if (value === undefined) return 'unset'
  const text = typeof value === 'string' && /^[!-~]+$/u.test(value) ? value : JSON.stringify(value)
  if (text.length <= maxValueLetters) return text
  if (Array.isArray(value)) return `${value.length} items`
  return isMapping(value) ? `${Object.keys(value).length} fields` : `${text.length} characters`
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function valueAt(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (isMapping(value) ? value[key] : undefined), object)
}
