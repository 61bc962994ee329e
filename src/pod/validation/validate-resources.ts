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
type CheckName = (name: string, issues: Issues, isDefaulted: boolean) => void

/** Source: pkg/apis/core/validation (ValidateContainerResourceRequirements), 1.36. */
export function validateResources(requirements: ResourceRequirements, issues: Issues): void {
  validateRequirements(requirements, validateResourceName, issues)
}

/** Source: pkg/apis/core/validation (validateResourceRequirements), 1.36. */
function validateRequirements(
  { limits, requests }: ResourceRequirements,
  checkName: CheckName,
  issues: Issues,
): void {
  for (const [list, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    for (const name of Object.keys(amounts)) {
      // A request that was defaulted from its limit stands there.
      const isDefaulted = list === 'requests' && limits[name] === amounts[name]
      checkName(name, issues.of(list, name), isDefaulted)
    }
    validateAmounts(amounts, issues.of(list), list === 'requests' ? limits : {})
  }
  for (const [name, limit] of Object.entries(limits)) {
    const request = requests[name]
    const isPages = name.startsWith(hugePages) || !isNative(name)
    const difference = compareQuantities(request ?? limit, limit)
    if (difference === 0 || (difference < 0 && !isPages)) continue
    const detail = `must be ${isPages ? 'equal to' : 'less than or equal to'} ${name} limit of ${limit}`
    issues.of('requests').invalid(request, detail, issues.of('requests', name))
  }
  for (const name of Object.keys(requests)) {
    if ((!name.startsWith(hugePages) && isNative(name)) || limits[name] !== undefined) continue
    const detail = 'Limit must be set for non overcommitable resources'
    issues.of('limits').required(detail, issues.of('requests', name))
  }
  const names = Object.keys({ ...limits, ...requests })
  if (names.some((name) => name.startsWith(hugePages)) && !supported.some((name) => names.includes(name))) {
    issues.forbidden('HugePages require cpu or memory')
  }
}

/** One of Kubernetes itself, and not of a device. */
function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/')
}

/** What a RuntimeClass adds to its pods. Source: pkg/apis/core/validation (validateOverhead), 1.36. */
export function validateOverhead(overhead: ResourceList | undefined, issues: Issues, near: Issues): void {
  // The API server calls them limits.
  const found = new Issues([...issues.path, 'limits'])
  for (const name of Object.keys(overhead ?? {})) validateResourceName(name, found.of(name), false)
  validateAmounts(overhead ?? {}, found)
  for (const problem of found.problems) {
    issues.problems.push({ ...problem, near: [...near.path, ...problem.path.slice(found.path.length)] })
  }
}

/** `warned`: what was complained of elsewhere, and gets no second warning. */
function validateAmounts(amounts: ResourceList, issues: Issues, warned: ResourceList = {}): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const at = issues.of(name)
    const isBytes = name === 'memory' || name === 'ephemeral-storage'
    if (isBytes && warned[name] !== amount) at.wholeBytes(amount)
    if (compareQuantities(amount, '0') < 0) {
      at.invalid(amount, 'must be greater than or equal to 0')
    } else if (!isNative(name) && !isWholeQuantity(amount)) {
      at.invalid(amount, 'must be an integer')
    } else validatePages(name, amount, at)
  }
}

/** Of the whole pod. Source: pkg/apis/core/validation (validatePodResources), 1.36. */
export function validatePodResources(spec: PodSpec, issues: Issues): void {
  const { resources } = spec
  if (resources === undefined) return
  validateRequirements(resources, validatePodResourceName, issues)
  const { resources: _own, ...withoutOwn } = spec
  const asked = podRequests(withoutOwn, 'without-overhead')
  for (const [name, request] of Object.entries(resources.requests)) {
    const sum = asked[name]
    if (sum === undefined || compareQuantities(sum, request) <= 0) continue
    const detail = `must be greater than or equal to aggregate container requests of ${sum}`
    issues.of('requests', name).invalid(request, detail)
  }
  // A limit of an init container, a sidecar's too, may be above the pod's: the pod's cgroup holds it down.
  for (const [index, container] of spec.containers.entries()) {
    validateAgainstPod(container.resources.limits, resources.limits, index, issues)
  }
}

/** Source: pkg/apis/core/validation (validatePodResourceName), 1.36. */
function validatePodResourceName(name: string, issues: Issues, isDefaulted: boolean): void {
  if (isDefaulted || supported.includes(name) || name.startsWith(hugePages)) return
  if (!name.includes('/') && !isStandard(name)) issues.invalid(name, notStandard)
  else issues.unsupported(name, ['cpu', hugePages, 'memory'])
}

/** Source: pkg/apis/core/validation (validatePodResourceConsistency), 1.36. */
function validateAgainstPod(container: ResourceList, pod: ResourceList, index: number, issues: Issues): void {
  const spec = new Issues(['spec'])
  for (const [name, limit] of Object.entries(container)) {
    const most = pod[name]
    if (most === undefined || compareQuantities(limit, most) <= 0) continue
    const detail = `must be less than or equal to pod limits of ${most}`
    const near = spec.of('containers', index, 'resources', 'limits', name)
    issues.of('containers', index, `[${name}]`, 'limits').invalid(limit, detail, near)
  }
}

function validatePages(name: string, amount: string, issues: Issues): void {
  if (!name.startsWith(hugePages)) return
  const size = name.slice(hugePages.length)
  const sizeBytes = parseQuantity(size) === undefined ? 0 : quantityValue(size)
  if (sizeBytes <= 0 || quantityValue(amount) % sizeBytes !== 0)
    issues.invalid(amount, `${amount} is not positive integer multiple of ${name}`)
}

function validateResourceName(name: string, issues: Issues, isDefaulted: boolean): void {
  if (supported.includes(name) || name.startsWith(hugePages)) return
  issues.name(name, qualifiedName)
  if (!isNative(name) && (name.startsWith('requests.') || qualifiedName(`requests.${name}`).length > 0)) {
    issues.invalid(name, "doesn't follow extended resource name standard")
  }
  if (name === 'ephemeral-storage') return
  if (name.includes('/')) {
    if (!isDefaulted)
      issues.warn('podd hands out no devices: the status of the node must say that it has them')
    return
  }
  if (!isStandard(name) && qualifiedName(name).length === 0) issues.invalid(name, notStandard)
  issues.invalid(name, 'must be a standard resource for containers')
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
