import type { PodObject } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock, ClockReading } from '../../base/clock.ts'
import { listOrEmpty, objectOrEmpty } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { showTime } from '../../decide/plan/clock-set.ts'
import { goesAwayAfter } from '../../decide/plan/ending.ts'
import type { ProbeVerdicts, StatusFacts } from '../../decide/plan/pod-facts.ts'
import { deriveStatus, podGeneration } from '../../decide/status/derive-status.ts'
import type { DerivedStatus } from '../../decide/status/derive-status.ts'
import { defaultManifest } from '../../decide/writing/prepare-object.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodStatus } from '../../pod/state/status.ts'
import { ownerReference } from '../../translate/volume-files.ts'
import { recursiveReadOnly } from './env.ts'
import type { PodEnv } from './env.ts'
import type { PodState } from './state.ts'

/** How long a hanging disk may delay a status. */
const showAnywayMs = 1000

/** Derives the status of one pod, and shows it. */
export class PodDisplay {
  readonly #env: PodEnv
  readonly #state: PodState
  #hidden = false
  #made = 0
  /** The number of the status that is shown. */
  #shown = 0

  constructor(env: PodEnv, state: PodState) {
    this.#env = env
    this.#state = state
  }

  /**
   * Makes the pod's status as it is now; what the next one depends on goes into the record. Returns the function that shows
   * it, which logs what a subscriber throws.
   */
  prepare(): () => void {
    if (this.#hidden) return () => undefined
    const state = this.#state
    const probes = this.#env.prober.verdicts(state.ref.uid)
    state.memory.rememberProbes(state.observed, probes)
    const { status, recordChange } = derivePodStatus(this.#env, state, probes)
    const { hostName: nodeName, clock } = this.#env
    const object = toPodObject(state.classedPod, state.record, {
      status,
      nodeName,
      clock: readClock(clock, state),
    })
    state.takeStatus(recordChange)
    this.#made += 1
    const number = this.#made
    return () => this.#show(number, object)
  }

  /** Shows the pod's current status once the record behind it is on disk. */
  publish(): void {
    const show = this.prepare()
    if (this.#state.memory.mustBeSaved) void this.showRecorded(show, this.#state.memory.save('best-effort'))
    else show()
  }

  /**
   * Shows a status once the record behind it is on disk, so that the next podd doesn't revert it if this one is killed.
   * Where the disk can't be written the status is shown nevertheless. Resolves when it is shown.
   * @param show what `prepare` gave
   * @param recorded settles when the record of that status is written, or can't be
   */
  async showRecorded(show: () => void, recorded: Promise<void>): Promise<void> {
    if (this.#state.memory.mustBeSaved) {
      const shown = Promise.withResolvers<void>()
      const timer = this.#env.clock.startTimer(showAnywayMs, shown.resolve)
      recorded.then(shown.resolve, shown.resolve)
      await shown.promise
      timer.cancel()
    }
    show()
  }

  /** A status that is older than the one that is shown is dropped. */
  #show(number: number, object: PodObject): void {
    if (this.#hidden || number < this.#shown) return
    this.#shown = number
    const { name: pod, uid } = this.#state.ref
    try {
      this.#env.statuses.publish(uid, object)
    } catch (error) {
      this.#env.logger.error({ pod, uid, err: error }, 'cannot publish the status of the pod')
    }
  }

  /** Removes the pod from what is shown: it is gone, or another pod has its name. */
  hide(): void {
    this.#hidden = true
    this.#env.statuses.remove(this.#state.ref.uid)
  }
}

/** The pod's status, by what is known of it now. */
function derivePodStatus(env: PodEnv, state: PodState, probes: ProbeVerdicts): DerivedStatus {
  const { pod, record, observed, waiting, resize, postStarts } = state
  return deriveStatus({
    pod,
    record,
    observed,
    probes,
    waiting,
    pulling: env.images.pulling(state.ref.uid),
    blocked: whyNotStarted(env, state),
    runtimeName: env.runtimeName(),
    hostIps: env.hostIps(),
    recursiveReadOnly: recursiveReadOnly(env, record),
    outdated: state.updateProblem,
    resize,
    postStarts,
    nowMs: env.clock.wallMs(),
    clock: readClock(env.clock, state),
  })
}

/** By the boot's beginning that the state knows: it stays the same to the millisecond. */
function readClock(clock: Clock, { bootedAtMs }: PodState): ClockReading {
  const wallMs = clock.wallMs()
  return { wallMs, uptimeMs: wallMs - bootedAtMs }
}

function whyNotStarted(env: PodEnv, { admission, lastError }: PodState): StatusFacts['blocked'] {
  if (admission?.kind === 'blocked') {
    const { reason, message, isForbidden = false } = admission
    return { reason, message, isForbidden }
  }
  const problem = env.knowledge.runtimeProblem
  if (problem !== undefined) return { reason: 'RuntimeNotReady', message: problem }
  return lastError === undefined ? undefined : { reason: 'FailedSync', message: lastError }
}

/** A pod as the API shows it: the manifest's spec as written with what its classes added, podd's metadata, the derived status. */
export function toPodObject(
  pod: Pod,
  record: PodRecord,
  {
    status,
    nodeName,
    clock,
  }: { readonly status: PodStatus; readonly nodeName: string; readonly clock: ClockReading },
): PodObject {
  const { metadata } = pod
  const { ending } = record
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: record.uid,
      generation: podGeneration(record),
      creationTimestamp: showTime(record.acceptedAtMs, clock),
      // A pod that was ended but stays as failed isn't being deleted.
      ...(ending === undefined || !goesAwayAfter(ending)
        ? {}
        : {
            deletionTimestamp: formatTime(ending.requestedAtMs + ending.graceSeconds * 1000),
            deletionGracePeriodSeconds: Math.round(ending.graceSeconds),
          }),
      ...(Object.keys(metadata.labels).length === 0 ? {} : { labels: metadata.labels }),
      annotations: {
        ...metadata.annotations,
        'podd.dev/source': record.source,
        'podd.dev/path': record.path,
      },
      ...(record.owner !== undefined && { ownerReferences: [ownerReference(record.owner, record)] }),
    },
    spec: {
      ...shownSpec(record),
      ...(pod.spec.overhead !== undefined && { overhead: pod.spec.overhead }),
      ...(pod.spec.priority !== undefined && { priority: pod.spec.priority }),
      nodeName,
    },
    status,
  }
}

/** The specs of manifests as an API server shows them: with its defaults. A manifest is one object for as long as its pod runs by it. */
const shownSpecs = new WeakMap<JsonObject, JsonObject>()

function shownSpec({ manifest, source, owner, debuggers = [] }: PodRecord): JsonObject {
  // What was written over the API has them already; its generation is counted by comparison with what was written.
  if (source === 'api' && owner === undefined) return objectOrEmpty(manifest['spec'])
  const spec =
    shownSpecs.get(manifest) ?? objectOrEmpty(defaultManifest({ ...manifest, kind: 'Pod' })['spec'])
  shownSpecs.set(manifest, spec)
  if (debuggers.length === 0) return spec
  return { ...spec, ephemeralContainers: [...listOrEmpty(spec['ephemeralContainers']), ...debuggers] }
}
