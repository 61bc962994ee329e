import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import type { BackoffLimits } from '../../decide/plan/restart-policy.ts'
import { withHold } from '../../decide/plan/hold.ts'
import { endingDeadlineMs } from '../../decide/plan/termination-order.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import { OutdatedView } from '../actions/interrupted.ts'
import type { PodContext } from '../actions/pod-context.ts'
import type { PodState } from './pod-state.ts'

/** What a pass of a pod's worker takes from its surroundings. */
export interface PodPassDeps extends Pick<PodContext, 'host' | 'images' | 'events' | 'clock' | 'logger'> {
  /** The newest of this pod. */
  readonly probes: () => ProbeVerdicts
  readonly limits: BackoffLimits
  /** Whether this runtime handler can make mounts read-only all the way down. */
  readonly recursiveReadOnly: (runtimeHandler: string) => boolean
  /** How often the runtime or podd itself was away so far: what was seen before the last time may not hold any more. */
  readonly runtimeLosses: () => number
  /** Whether all is known that pods refer to: what isn't there now is missing, and not just not read yet. */
  readonly objectsKnown: () => boolean
}

/** What the actions of a pass are carried out with. */
export function makePodContext(
  deps: PodPassDeps,
  state: PodState,
  pass: Pick<PodContext, 'signal' | 'manifestSignal' | 'lifeSignal' | 'onContainersStopped' | 'lookSoon'>,
): PodContext {
  const { host, images, events, clock, logger, recursiveReadOnly } = deps
  const { memory, ref, observed, fresh } = state
  const { ending, classes, manifest, source } = memory.record
  const runtimeHandler = classes?.runtimeHandler ?? ''
  return {
    ...pass,
    checkSeen: () => {
      if (deps.runtimeLosses() !== state.lossesWhenSeen) throw new OutdatedView()
    },
    ref,
    pod: state.allocatedPod,
    source,
    runtimeHandler,
    recursiveReadOnly: recursiveReadOnly(runtimeHandler),
    manifestHash: podManifestHash(manifest),
    observed,
    host,
    images,
    events,
    clock,
    logger,
    deadlineMs: ending === undefined ? undefined : endingDeadlineMs(ending, clock.wallMs()),
    freeSandboxAttempt: (attempt) => memory.freeSandboxAttempt(attempt),
    charge: async (action) => {
      memory.charge(action)
      await memory.save('required')
    },
    claimRestart: (id) => memory.claimRestart(id),
    claimPreStop: (id) => memory.claimPreStop(id, state.observed),
    releasePreStop: (id) => memory.releasePreStop(id),
    preStops: state.preStops,
    hold: (key, hold) => {
      state.holds = withHold(state.holds, key, hold)
    },
    fetchAhead: (container, fetch) => {
      state.aheadFetches.begin(container, fetch)
    },
    endFetch: (container) => {
      state.aheadFetches.cancel(container)
    },
    noteFresh: (image) => {
      fresh.add(image)
    },
    takeFresh: (image) => fresh.delete(image),
    appliedPod: () => state.appliedPod,
    noteResized: ({ container: { id, name }, to }) =>
      memory.changeContainer(name, { resized: { containerId: id, resources: to } }),
    noteResizedPod: (podResources) => memory.change({ podResources }),
    postStarts: state.postStarts,
    linkedLogs: state.linkedLogs,
    foreseen: new Map(),
    sandbox: undefined,
  }
}
