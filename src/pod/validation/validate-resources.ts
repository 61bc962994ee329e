import type { FieldPath } from '../schema/field-path.ts'
import type { ResourceList } from '../spec/pod-resources.ts'
import { podRequests } from '../spec/pod-resources.ts'
import { compareQuantities, parseQuantity, quantityValue } from '../values/quantity.ts'
import type { ResourceRequirements } from '../schema/container-schema.ts'
import type { PodSpec } from '../schema/pod-schema.ts'
import type { Issues } from './issues.ts'
import { qualifiedName } from './name-rules.ts'

const supported = ['cpu', 'memory']
const hugePages = 'hugepages-'

/** Whether a resource may be named there. */
type CheckName = (name: string, path: FieldPath, issues: Issues) => void

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
    // A request that was defaulted from its limit is complained of there.
    const own = Object.fromEntries(
      Object.entries(amounts).filter(([name, amount]) => list !== 'requests' || limits[name] !== amount),
    )
    for (const name of Object.keys(own)) checkName(name, [...path, list, name], issues)
    validateAmounts(own, [...path, list], issues)
  }
  for (const [name, limit] of Object.entries(limits)) {
    const request = requests[name]
    const isPages = name.startsWith(hugePages)
    const difference = compareQuantities(request ?? limit, limit)
    if (difference === 0 || (difference < 0 && !isPages)) continue
    const detail = `must be ${isPages ? 'equal to' : 'less than or equal to'} ${name} limit of ${limit}`
    issues.invalid([...path, 'requests', name], request, detail)
  }
  for (const name of Object.keys(requests)) {
    if (!name.startsWith(hugePages) || limits[name] !== undefined) continue
    issues.required([...path, 'limits', name], 'Limit must be set for non overcommitable resources')
  }
  const names = Object.keys({ ...limits, ...requests })
  if (names.some((name) => name.startsWith(hugePages)) && !supported.some((name) => names.includes(name))) {
    issues.forbidden(path, 'HugePages require cpu or memory')
  }
}

/** What a RuntimeClass adds to its pods. Source: pkg/apis/core/validation (validateOverhead), 1.36. */
export function validateOverhead(overhead: ResourceList | undefined, path: FieldPath, issues: Issues): void {
  for (const name of Object.keys(overhead ?? {})) validateResourceName(name, [...path, name], issues)
  validateAmounts(overhead ?? {}, path, issues)
}

function validateAmounts(amounts: ResourceList, path: FieldPath, issues: Issues): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const at = [...path, name]
    if (name === 'memory' || name === 'ephemeral-storage') issues.wholeBytes(at, amount)
    if (compareQuantities(amount, '0') < 0) {
      issues.invalid(at, amount, 'must be greater than or equal to 0')
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
  for (const container of spec.containers) {
    validateAgainstPod(container.resources.limits, resources.limits, path, issues)
  }
}

/** Source: pkg/apis/core/validation (validatePodResourceName), 1.36. */
function validatePodResourceName(name: string, path: FieldPath, issues: Issues): void {
  if (supported.includes(name) || name.startsWith(hugePages)) return
  issues.unsupported(path, name, ['cpu', hugePages, 'memory'])
}

function validateAgainstPod(
  container: ResourceList,
  pod: ResourceList,
  path: FieldPath,
  issues: Issues,
): void {
  for (const [name, limit] of Object.entries(container)) {
    const most = pod[name]
    if (most === undefined || compareQuantities(limit, most) <= 0) continue
    const detail = `must be greater than or equal to the limit of each container: one has ${limit}`
    issues.invalid([...path, 'limits', name], most, detail)
  }
}

function validatePages(name: string, amount: string, path: FieldPath, issues: Issues): void {
  if (!name.startsWith(hugePages)) return
  const size = name.slice(hugePages.length)
  const sizeBytes = parseQuantity(size) === undefined ? 0 : quantityValue(size)
  if (sizeBytes <= 0) issues.invalid(path, name, 'must be hugepages-<size of a page>, such as hugepages-2Mi')
  else if (quantityValue(amount) % sizeBytes !== 0)
    issues.invalid(path, amount, `is not positive integer multiple of ${name}`)
}

function validateResourceName(name: string, path: FieldPath, issues: Issues): void {
  if (supported.includes(name) || name.startsWith(hugePages)) return
  issues.name(path, name, qualifiedName)
  if (name === 'ephemeral-storage') {
    issues.warn(path, 'has no effect: the disk space of containers is not metered')
  } else if (name.includes('/')) {
    issues.refused(path, 'podd hands out no devices and other extended resources')
  } else issues.invalid(path, name, 'must be a standard resource for containers')
}
