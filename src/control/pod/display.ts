import type { PodObject } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { goesAwayAfter } from '../../decide/plan/ending.ts'
import type { ProbeVerdicts, StatusFacts } from '../../decide/plan/pod-facts.ts'
import { deriveStatus, podGeneration } from '../../decide/status/derive-status.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodStatus } from '../../pod/state/status.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { PassDeps } from './execute.ts'
import type { PodHost } from './host.ts'
import type { PodState } from './state.ts'

export interface PodDisplayDeps {
  readonly host: Pick<PodHost, 'hostIps' | 'hostName'>
  /** The newest probe verdicts of this pod. */
  readonly probes: () => ProbeVerdicts
  /** Undefined takes the pod out of what is shown. Throws what a subscriber throws. */
  readonly publish: (uid: PodUid, object: PodObject | undefined) => void
  readonly clock: Clock
  /** `containerd` */
  readonly runtimeName: () => string
  readonly recursiveReadOnly: PassDeps['recursiveReadOnly']
  /** Why the runtime can't take calls; undefined while it can. */
  readonly runtimeProblem: () => string | undefined
  readonly images: ImagePuller
  readonly logger: Logger
}

/** How long a hanging disk may delay a status. */
const showAnywayMs = 1000

/** Derives the status of one pod, and shows it. */
export class PodDisplay {
  readonly #deps: PodDisplayDeps
  readonly #state: PodState
  #hidden = false
  #derived = 0
  /** The number of the status that is shown. */
  #shown = 0

  constructor(deps: PodDisplayDeps, state: PodState) {
    this.#deps = deps
    this.#state = state
  }

  /**
   * Derives the pod's status as it is now; what the next status depends on goes into the record. Returns the function
   * that shows it, which logs what a subscriber throws.
   */
  derive(): () => void {
    if (this.#hidden) return () => undefined
    const { clock, host, images, probes, recursiveReadOnly, runtimeName } = this.#deps
    const { memory, pod, observed, waiting, resize, postStarts } = this.#state
    const verdicts = probes()
    memory.rememberProbes(observed, verdicts)
    const { status, recordChange } = deriveStatus({
      pod,
      record: memory.record,
      observed,
      probes: verdicts,
      waiting,
      pulling: images.pulling(this.#state.ref.uid),
      blocked: this.#whyNotStarted(),
      runtimeName: runtimeName(),
      hostIps: host.hostIps(),
      recursiveReadOnly: recursiveReadOnly(memory.record.classes?.runtimeHandler ?? ''),
      resize,
      postStarts,
      nowMs: clock.wallMs(),
    })
    const object = toPodObject(this.#state.classedPod, memory.record, { status, nodeName: host.hostName })
    if (recordChange !== undefined) memory.change(recordChange)
    this.#derived += 1
    const number = this.#derived
    return () => this.#show(number, object)
  }

  /** Shows the pod's current status once the record behind it is on disk. */
  publish(): void {
    const show = this.derive()
    if (this.#state.memory.isAhead) void this.showRecorded(show, this.#state.memory.save('best-effort'))
    else show()
  }

  /**
   * Shows a status once the record behind it is on disk, so that the next podd doesn't revert it if this one is killed.
   * Where the disk can't be written the status is shown nevertheless. Resolves when it is shown.
   * @param show what `derive` gave
   * @param recorded settles when the record of that status is written, or can't be
   */
  async showRecorded(show: () => void, recorded: Promise<void>): Promise<void> {
    if (this.#state.memory.isAhead) {
      const shown = Promise.withResolvers<void>()
      const timer = this.#deps.clock.startTimer(showAnywayMs, shown.resolve)
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
      this.#deps.publish(uid, object)
    } catch (error) {
      this.#deps.logger.error({ pod, uid, err: error }, 'cannot publish the status of the pod')
    }
  }

  /** Removes the pod from what is shown: it is gone, or another pod has its name. */
  hide(): void {
    this.#hidden = true
    this.#deps.publish(this.#state.ref.uid, undefined)
  }

  #whyNotStarted(): StatusFacts['blocked'] {
    const { admission, lastError } = this.#state
    if (admission?.kind === 'blocked') {
      const { reason, message, isForbidden = false } = admission
      return { reason, message, isForbidden }
    }
    const problem = this.#deps.runtimeProblem()
    if (problem !== undefined) return { reason: 'RuntimeNotReady', message: problem }
    return lastError === undefined ? undefined : { reason: 'FailedSync', message: lastError }
  }
}

/** A pod as the API shows it: the manifest's spec as written with what its classes added, podd's metadata, the derived status. */
export function toPodObject(
  pod: Pod,
  record: PodRecord,
  { status, nodeName }: { readonly status: PodStatus; readonly nodeName: string },
): PodObject {
  const { metadata } = pod
  const spec = record.manifest['spec']
  const { ending } = record
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: record.uid,
      generation: podGeneration(record),
      creationTimestamp: formatTime(record.acceptedAtMs),
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
    },
    spec: {
      ...(isJsonObject(spec) ? spec : {}),
      ...(pod.spec.overhead === undefined ? {} : { overhead: pod.spec.overhead }),
      ...(pod.spec.priority === undefined ? {} : { priority: pod.spec.priority }),
      nodeName,
    },
    status,
  }
}
