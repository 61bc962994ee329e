import type { Json, JsonObject } from '../../src/base/json.ts'
import type { StatusFacts, PodFacts, ProbeVerdict, ProbeVerdicts } from '../../src/decide/plan/pod-facts.ts'
import type { PodPlan, Waiting } from '../../src/decide/plan/pod-action.ts'
import { containerRetry, noRetries, withRetry, backoffLimits } from '../../src/decide/plan/backoff.ts'
import type { Retry, RetryKey } from '../../src/decide/plan/backoff.ts'
import { containerSpecHash } from '../../src/pod/values/hash.ts'
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../../src/pod/state/observed.ts'
import { podFromManifest } from '../../src/pod/schema/default-pod.ts'
import type { EndedContainer, PodRecord } from '../../src/pod/state/pod-record.ts'
import type { ContainerSpec } from '../../src/pod/schema/container-schema.ts'
import type { Pod } from '../../src/pod/schema/pod-schema.ts'
import type { ResourceFacts } from '../../src/translate/resources.ts'

/** When the things of a test came to be; they are looked at an hour later, at `nowMs`. */
export const bornMs = Date.UTC(2026, 0, 1)
export const nowMs = bornMs + 3_600_000
export const bootId = 'boot-1'

type ContainerChanges = string | { readonly name: string; readonly [field: string]: Json }

export interface PodChanges {
  readonly name?: string
  readonly metadata?: JsonObject
  readonly spec?: JsonObject
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never'
  /** By default `a`, `b` and `c`. A string is a container's name. */
  readonly containers?: readonly ContainerChanges[]
  readonly init?: readonly ContainerChanges[]
  readonly ephemeral?: readonly ContainerChanges[]
}

const image = 'busybox:1'

/** A pod with its defaults, changed where a test cares. */
export function makePod(changes: PodChanges = {}): Pod {
  const specs = (list: readonly ContainerChanges[]): Json =>
    list.map((container) =>
      typeof container === 'string' ? { name: container, image } : { image, ...container },
    )
  return podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: changes.name ?? 'web', ...changes.metadata },
    spec: {
      containers: specs(changes.containers ?? ['a', 'b', 'c']),
      initContainers: specs(changes.init ?? []),
      ephemeralContainers: specs(changes.ephemeral ?? []),
      restartPolicy: changes.restartPolicy ?? 'Always',
      ...changes.spec,
    },
  })
}

/** An init container that runs beside the main ones. */
export function sidecar(
  name: string,
  fields: JsonObject = {},
): { readonly name: string; readonly [field: string]: Json } {
  return { name, restartPolicy: 'Always', ...fields }
}

/** An exec probe, as a field of a container. */
export const probe: JsonObject = { exec: { command: ['true'] } }

/** A container that has run in the first sandbox since the beginning. */
export function observedContainer(name: string, changes: Partial<ObservedContainer> = {}): ObservedContainer {
  const restartCount = changes.restartCount ?? 0
  const state = changes.state ?? 'running'
  const createdAtMs = changes.createdAtMs ?? bornMs + restartCount * 10_000
  return {
    id: `${name}-${restartCount}`,
    sandboxId: 'sandbox-0',
    name,
    restartCount,
    state,
    createdAtMs,
    startedAtMs: state === 'created' ? undefined : createdAtMs,
    finishedAtMs: state === 'exited' ? createdAtMs + 5000 : undefined,
    exitCode: state === 'exited' ? 0 : undefined,
    reason: '',
    message: '',
    image,
    imageId: 'sha256:1',
    specHash: containerSpecHash({ name, image }),
    annotations: {},
    ...changes,
  }
}

/** One that ended with `exitCode`, five seconds after its start. */
export function exitedContainer(
  name: string,
  exitCode: number,
  changes: Partial<ObservedContainer> = {},
): ObservedContainer {
  const reason = exitCode === 0 ? 'Completed' : 'Error'
  return observedContainer(name, { state: 'exited', exitCode, reason, ...changes })
}

/** A ready sandbox with an address; its id follows from its attempt. */
export function observedSandbox(changes: Partial<ObservedSandbox> = {}): ObservedSandbox {
  const attempt = changes.attempt ?? 0
  return {
    id: `sandbox-${attempt}`,
    attempt,
    ready: true,
    createdAtMs: bornMs + attempt * 1000,
    ips: ['10.0.0.10'],
    hostNetwork: false,
    annotations: {},
    ...changes,
  }
}

export const deadSandbox = observedSandbox({ ready: false, ips: [] })

/** What the runtime holds: by default one ready sandbox and nothing in it. */
export function observedPod(changes: Partial<ObservedPod> = {}): ObservedPod {
  return {
    uid: 'uid-web',
    namespace: 'default',
    name: 'web',
    sandboxes: [observedSandbox()],
    containers: [],
    ...changes,
  }
}

/** How a container that the runtime has forgotten ended. */
export function ended(name: string, exitCode: number, changes: Partial<EndedContainer> = {}): EndedContainer {
  const restartCount = changes.restartCount ?? 0
  return {
    containerId: `${name}-${restartCount}`,
    restartCount,
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    message: '',
    startedAtMs: bornMs,
    finishedAtMs: bornMs + 5000,
    image,
    imageId: 'sha256:1',
    ...changes,
  }
}

/** Verdicts by `kind container-id`; where there is none, none has been given yet. */
export function probeVerdicts(verdicts: Readonly<Record<string, ProbeVerdict>>): ProbeVerdicts {
  const byId: Record<string, Record<string, ProbeVerdict>> = {}
  for (const [key, verdict] of Object.entries(verdicts)) {
    const [kind = '', id = ''] = key.split(' ')
    byId[id] = { ...byId[id], [kind]: verdict }
  }
  return byId
}

/** What is known of each container of a pod; by default no new image is present, and nothing else is missing. */
export interface ContainerAnswers {
  readonly specHash?: (container: ContainerSpec) => string
  readonly imageReady?: (container: ContainerSpec) => boolean
  readonly missingFor?: (container: ContainerSpec) => string | undefined
}

/** A row for each container of the pod. */
export function containerFacts({ spec }: Pod, answers: ContainerAnswers = {}): PodFacts['containerFacts'] {
  const { specHash = containerSpecHash, imageReady = () => false, missingFor = () => undefined } = answers
  const containers = [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers]
  const rows = containers.map((container) => [
    container.name,
    {
      specHash: specHash(container),
      imageReady: imageReady(container),
      isFetching: false,
      missing: missingFor(container),
    },
  ])
  return Object.fromEntries(rows)
}

export interface FactsChanges
  extends ContainerAnswers, Partial<Omit<PodFacts, 'pod' | 'observed' | 'probes' | 'retries'>> {
  readonly pod?: PodChanges
  readonly sandboxes?: readonly ObservedSandbox[]
  readonly containers?: readonly ObservedContainer[]
  readonly verdicts?: Readonly<Record<string, ProbeVerdict>>
  /** By container. */
  readonly retries?: Readonly<Record<string, Retry>>
  /** On anything else. */
  readonly otherBackoffs?: readonly (readonly [RetryKey, Retry])[]
}

/** The facts about a pod whose three containers run. */
export function podFacts(changes: FactsChanges = {}): PodFacts {
  const { pod: podChanges, sandboxes, containers, verdicts, retries, otherBackoffs = [], ...more } = changes
  const { specHash, imageReady, missingFor, ...others } = more
  const pod = makePod(podChanges)
  const failed = [
    ...Object.entries(retries ?? {}).map(([name, backoff]) => [containerRetry(name), backoff] as const),
    ...otherBackoffs,
  ]
  return {
    pod,
    observed: observedPod({
      sandboxes: sandboxes ?? [observedSandbox()],
      containers: containers ?? ['a', 'b', 'c'].map((name) => observedContainer(name)),
    }),
    history: {},
    probes: probeVerdicts(verdicts ?? {}),
    containerFacts: containerFacts(pod, {
      ...(specHash === undefined ? {} : { specHash }),
      ...(imageReady === undefined ? {} : { imageReady }),
      ...(missingFor === undefined ? {} : { missingFor }),
    }),
    retries: failed.reduce((all, [key, backoff]) => withRetry(all, key, backoff), noRetries),
    nowMs,
    bootId,
    limits: backoffLimits(),
    ...others,
  }
}

export function podRecord(changes: Partial<PodRecord> = {}): PodRecord {
  return {
    version: 1,
    uid: 'uid-web',
    namespace: 'default',
    name: 'web',
    source: 'file',
    path: 'web.yaml',
    manifest: {},
    acceptedAtMs: bornMs,
    conditions: {},
    containers: {},
    ...changes,
  }
}

/** A plan's actions in short: `start a#1`, `stop b liveness`, `sandbox 1`, `stop-pod`, `fetch c`, `remove a-0`. */
export function actionsOf(plan: Pick<PodPlan, 'actions'>): readonly string[] {
  return plan.actions.map((action) => {
    switch (action.kind) {
      case 'start-container':
        return `start ${action.spec.name}#${action.restartCount}`
      case 'stop-container':
        return `stop ${action.container.name} ${action.cause}`
      case 'create-sandbox':
        return `sandbox ${action.attempt}`
      case 'finish-post-start':
        return `finish ${action.container.name}`
      case 'fetch-image':
        return `fetch ${action.spec.name}`
      case 'stop-pod':
        return 'stop-pod'
      case 'resize-containers':
        return `resize ${action.resizes.map(({ spec }) => spec.name).join(' ')}`
      case 'remove-containers':
      case 'remove-sandboxes':
        return `remove ${action.ids.join(' ')}`
    }
  })
}

export interface StatusChanges extends Partial<
  Omit<StatusFacts, 'pod' | 'observed' | 'probes' | 'waiting' | 'record'>
> {
  readonly pod?: PodChanges
  readonly sandboxes?: readonly ObservedSandbox[]
  readonly containers?: readonly ObservedContainer[]
  readonly history?: PodRecord['containers']
  readonly record?: Partial<PodRecord>
  readonly verdicts?: Readonly<Record<string, ProbeVerdict>>
  readonly waiting?: Readonly<Record<string, Waiting>>
}

/** The facts behind the status of a pod in whose sandbox nothing has been made yet. */
export function statusFacts(changes: StatusChanges = {}): StatusFacts {
  const { pod, sandboxes, containers, history, record, verdicts, waiting, ...others } = changes
  return {
    pod: makePod(pod),
    record: podRecord({ containers: history ?? {}, ...record }),
    observed: observedPod({
      sandboxes: sandboxes ?? [observedSandbox()],
      containers: containers ?? [],
    }),
    probes: probeVerdicts(verdicts ?? {}),
    waiting: new Map(Object.entries(waiting ?? {})),
    blocked: undefined,
    runtimeName: 'containerd',
    hostIps: ['192.168.1.2', 'fd00::2'],
    nowMs,
    clock: { wallMs: Number.MAX_SAFE_INTEGER, uptimeMs: 0 },
    ...others,
  }
}

/** What a host of 1 GiB with cgroup v2 gives pods to share. */
export const plainResources: ResourceFacts = {
  cgroupVersion: 2,
  memoryCapacityBytes: 2 ** 30,
  minOomScoreAdj: -1000,
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodUs: 100_000,
  swapController: true,
  hugePageSizes: [],
  swapBytes: 0,
  oomKillsGroup: true,
}

/** The facts that a decision was made from, as its log entry has them. */
export function factsFromLog(logged: string): PodFacts {
  const { restartRequested, restartsDue, restartAll, ...facts } = JSON.parse(logged)
  return {
    ...facts,
    restartRequested: new Set(restartRequested),
    restartsDue: new Set(restartsDue),
    restartAll: new Set(restartAll),
  }
}
