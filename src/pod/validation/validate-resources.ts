import type { FieldPath } from '../schema/issues.ts'
import type { ResourceList } from '../schema/pod-resources.ts'
import { podRequests } from '../schema/pod-resources.ts'
import { compareQuantities, isWholeQuantity, parseQuantity, quantityValue } from '../values/quantity.ts'
import type { ResourceRequirements } from '../schema/container-schema.ts'
import type { PodSpec } from '../schema/pod-schema.ts'
import { Issues } from '../schema/issues.ts'
import { qualifiedName } from './name-rules.ts'

const supported = ['cpu', 'memory']
const hugePages = 'hugepages-'

/** Whether a resource may be named there. */
type CheckName = (name: string, path: FieldPath, issues: Issues, isDefaulted: boolean) => void

/** Source: pkg/apis/core/validation (ValidateContainerResourceRequirements), 1.36. */
export function validateResources(requirements: ResourceRequirements, path: FieldPath, issues: Issues): void {
  validateRequirements(requirements, { path, issues, checkName: validateResourceName })
}

/** Source: pkg/apis/core/validation (validateResourceRequirements), 1.36. */
function validateRequirements(
  { limits, requests }: ResourceRequirements,
  { path, issues, checkName }: { path: FieldPath; issues: Issues; checkName: CheckName },
): void {
  for (const [list, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    for (const name of Object.keys(amounts)) {
      // A request that was defaulted from its limit stands there.
      const isDefaulted = list === 'requests' && limits[name] === amounts[name]
      checkName(name, [...path, list, name], issues, isDefaulted)
    }
    validateAmounts(amounts, [...path, list], issues, list === 'requests' ? limits : {})
  }
  for (const [name, limit] of Object.entries(limits)) {
    const request = requests[name]
    const isPages = name.startsWith(hugePages) || !isNative(name)
    const difference = compareQuantities(request ?? limit, limit)
    if (difference === 0 || (difference < 0 && !isPages)) continue
    const detail = `must be ${isPages ? 'equal to' : 'less than or equal to'} ${name} limit of ${limit}`
    issues.invalid([...path, 'requests'], request, detail, [...path, 'requests', name])
  }
  for (const name of Object.keys(requests)) {
    if ((!name.startsWith(hugePages) && isNative(name)) || limits[name] !== undefined) continue
    const detail = 'Limit must be set for non overcommitable resources'
    issues.required([...path, 'limits'], detail, [...path, 'requests', name])
  }
  const names = Object.keys({ ...limits, ...requests })
  if (names.some((name) => name.startsWith(hugePages)) && !supported.some((name) => names.includes(name))) {
    issues.forbidden(path, 'HugePages require cpu or memory')
  }
}

/** One of Kubernetes itself, and not of a device. */
function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/')
}

/** What a RuntimeClass adds to its pods. Source: pkg/apis/core/validation (validateOverhead), 1.36. */
export function validateOverhead(
  overhead: ResourceList | undefined,
  path: FieldPath,
  issues: Issues,
  near: FieldPath,
): void {
  const found = new Issues()
  // The API server calls them limits.
  const at = [...path, 'limits']
  for (const name of Object.keys(overhead ?? {})) {
    validateResourceName(name, [...at, name], found, false)
  }
  validateAmounts(overhead ?? {}, at, found)
  for (const problem of found.problems) {
    issues.problems.push({ ...problem, near: [...near, ...problem.path.slice(at.length)] })
  }
}

/** `warned`: what was complained of elsewhere, and gets no second warning. */
function validateAmounts(
  amounts: ResourceList,
  path: FieldPath,
  issues: Issues,
  warned: ResourceList = {},
): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const at = [...path, name]
    const isBytes = name === 'memory' || name === 'ephemeral-storage'
    if (isBytes && warned[name] !== amount) issues.wholeBytes(at, amount)
    if (compareQuantities(amount, '0') < 0) {
      issues.invalid(at, amount, 'must be greater than or equal to 0')
    } else if (!isNative(name) && !isWholeQuantity(amount)) {
      issues.invalid(at, amount, 'must be an integer')
    } else validatePages(name, amount, at, issues)
  }
}

/** Of the whole pod. Source: pkg/apis/core/validation (validatePodResources), 1.36. */
export function validatePodResources(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const { resources } = spec
  if (resources === undefined) return
  validateRequirements(resources, { path, issues, checkName: validatePodResourceName })
  const { resources: _own, ...withoutOwn } = spec
  const asked = podRequests(withoutOwn, 'without-overhead')
  for (const [name, request] of Object.entries(resources.requests)) {
    const sum = asked[name]
    if (sum === undefined || compareQuantities(sum, request) <= 0) continue
    const detail = `must be greater than or equal to aggregate container requests of ${sum}`
    issues.invalid([...path, 'requests', name], request, detail)
  }
  // A limit of an init container, a sidecar's too, may be above the pod's: the pod's cgroup holds it down.
  for (const [index, container] of spec.containers.entries()) {
    validateAgainstPod(container.resources.limits, resources.limits, index, path, issues)
  }
}

/** Source: pkg/apis/core/validation (validatePodResourceName), 1.36. */
function validatePodResourceName(name: string, path: FieldPath, issues: Issues, isDefaulted: boolean): void {
  if (isDefaulted || supported.includes(name) || name.startsWith(hugePages)) return
  if (!name.includes('/') && !isStandard(name)) issues.invalid(path, name, notStandard)
  else issues.unsupported(path, name, ['cpu', hugePages, 'memory'])
}

/** Source: pkg/apis/core/validation (validatePodResourceConsistency), 1.36. */
function validateAgainstPod(
  container: ResourceList,
  pod: ResourceList,
  index: number,
  path: FieldPath,
  issues: Issues,
): void {
  for (const [name, limit] of Object.entries(container)) {
    const most = pod[name]
    if (most === undefined || compareQuantities(limit, most) <= 0) continue
    const detail = `must be less than or equal to pod limits of ${most}`
    const near = ['spec', 'containers', index, 'resources', 'limits', name]
    issues.invalid([...path, 'containers', index, `[${name}]`, 'limits'], limit, detail, near)
  }
}

function validatePages(name: string, amount: string, path: FieldPath, issues: Issues): void {
  if (!name.startsWith(hugePages)) return
  const size = name.slice(hugePages.length)
  const sizeBytes = parseQuantity(size) === undefined ? 0 : quantityValue(size)
  if (sizeBytes <= 0 || quantityValue(amount) % sizeBytes !== 0)
    issues.invalid(path, amount, `${amount} is not positive integer multiple of ${name}`)
}

function validateResourceName(name: string, path: FieldPath, issues: Issues, isDefaulted: boolean): void {
  if (supported.includes(name) || name.startsWith(hugePages)) return
  issues.name(path, name, qualifiedName)
  if (!isNative(name) && (name.startsWith('requests.') || qualifiedName(`requests.${name}`).length > 0)) {
    issues.invalid(path, name, "doesn't follow extended resource name standard")
  }
  if (name === 'ephemeral-storage') return
  if (name.includes('/')) {
    if (!isDefaulted)
      issues.warn(path, 'podd hands out no devices: the status of the node must say that it has them')
    return
  }
  if (!isStandard(name) && qualifiedName(name).length === 0) issues.invalid(path, name, notStandard)
  issues.invalid(path, name, 'must be a standard resource for containers')
}

const notStandard = 'must be a standard resource type or fully qualified'

/** Those of quotas too. Source: pkg/apis/core/helper (IsStandardResourceName), 1.36. */
function isStandard(name: string): boolean {
  return standard.has(name) || name.startsWith(`requests.${hugePages}`)
}

const standard: ReadonlySet<string> = new Set([
  ...['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'storage',
  'requests.storage',
  'services.nodeports',
  'services.loadbalancers',
])
