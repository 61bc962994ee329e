import type { ContainerFacts, PodFacts } from '../../decide/plan/pod-facts.ts'
import { selectRecreations } from '../../decide/plan/start-order.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { computeSpecHash, findMissingReference } from '../../translate/config-hash.ts'
import type { PassDeps } from './pod-executor.ts'
import type { PodState } from './pod-state.ts'

type FactsDeps = Pick<PassDeps, 'host' | 'objectsKnown' | 'probes' | 'limits' | 'containerPolicy' | 'clock'>

/** All facts that a pass of a live pod decides by. */
export function gatherFacts(deps: FactsDeps, state: Readonly<PodState>): PodFacts {
  const { host, probes, limits, clock } = deps
  const pod = state.allocatedPod
  const { holds, resizeRefusal } = state
  const facts = { ...state.restartFacts, pod }
  const { initContainers, containers, ephemeralContainers } = pod.spec
  const specs = [...initContainers, ...containers, ...ephemeralContainers]
  const hashes = new Map(specs.map((spec) => [spec.name, specHashOf(deps, state, spec)]))
  const recreations = selectRecreations(facts, (name) => hashes.get(name))
  const blocked = state.startBlock
  const missingOf = (spec: ContainerSpec): string | undefined =>
    blocked?.containers.includes(spec.name) === true
      ? blocked.message
      : findMissingReference(host, { pod, source: state.record.source }, spec)
  const row = (spec: ContainerSpec): ContainerFacts => ({
    specHash: hashes.get(spec.name),
    imageReady: state.fresh.has(spec.image),
    isFetching: state.aheadFetches.has(spec.name),
    missing: recreations.has(spec.name) ? missingOf(spec) : undefined,
  })
  return {
    ...facts,
    probes: probes(),
    containerFacts: Object.fromEntries(specs.map((spec) => [spec.name, row(spec)])),
    holds,
    ...(blocked === undefined ? {} : { blocked }),
    ...(state.isCgroupRemoved ? { isCgroupRemoved: true } : {}),
    resizeRefusal,
    containerPolicy: deps.containerPolicy,
    ...(state.condemned.size === 0 ? {} : { condemned: [...state.condemned] }),
    nowMs: clock.wallMs(),
    bootId: host.bootId,
    limits,
  }
}

/** The hash that a container created now would get; undefined where there is no running one to compare it with. */
function specHashOf(
  { host, objectsKnown }: FactsDeps,
  { allocatedPod: pod, record: { source }, observed }: Readonly<PodState>,
  container: ContainerSpec,
): string | undefined {
  const running = observed.containers.filter(({ name }) => name === container.name)
  const [newest] = running
  if (newest === undefined || !running.some(({ state }) => state === 'running')) return undefined
  return computeSpecHash({
    host,
    pod,
    source,
    container,
    running: newest.specHash,
    objectsKnown: objectsKnown(),
  })
}
