import type { JsonObject } from '../../../src/base/json.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { Pod, PodSpec } from '../../../src/pod/schema/pod-schema.ts'
import type { ResourceFacts } from '../../../src/translate/resources.ts'
import type { ContainerSpec } from '../../../src/pod/schema/container-schema.ts'

/** A pod with one container `app`, changed by what the test is about. */
export function testPod(spec: JsonObject = {}, metadata: JsonObject = {}): Pod {
  return podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', ...metadata },
    spec: { containers: [{ name: 'app', image: 'example.org/app:1' }], ...spec },
  })
}

/** A pod with fields that the schema refuses as yet. */
export function podWith(pod: Pod, spec: Partial<PodSpec>): Pod {
  return { ...pod, spec: { ...pod.spec, ...spec } }
}

/** The first main container. */
export function appOf(pod: Pod): ContainerSpec {
  const [container] = pod.spec.containers
  if (container === undefined) throw new Error('the pod has no container')
  return container
}

/** One container's resources, as a manifest has them. */
export function resources(requests: JsonObject, limits: JsonObject = {}): JsonObject {
  return { resources: { requests, limits } }
}

export const gib = 1024 ** 3

/** A host with 8 GiB, cgroup v2, all rights and no huge pages. */
export const hostFacts: ResourceFacts = {
  cgroupVersion: 2,
  memoryCapacityBytes: 8 * gib,
  minOomScoreAdj: -1000,
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodUs: 100_000,
  swapController: false,
  swapBytes: 0,
  oomKillsGroup: true,
  hugePageSizes: [],
}
