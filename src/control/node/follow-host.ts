import type { Clock } from '../../base/clock.ts'
import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { readNodeAddress } from '../../host/addresses.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import { podResolvConf } from '../../translate/network.ts'
import type { PodEnv } from '../pod/env.ts'
import type { PodWorker } from '../pod/worker.ts'
import type { NodeJob } from './node-jobs.ts'

const deadlineMs = 60_000

/** The longest delay before a new address is noticed. */
const addressPeriodMs = 10_000

/**
 * Updates running pods after changes of the host's addresses: pods on the host's network are shown and probed at its
 * current address. A new address wakes the job that follows the resolver, as a new DHCP lease usually brings a new
 * resolver.
 */
export function followAddressJob(options: {
  readonly hostIps: () => readonly string[]
  readonly workers: () => Iterable<PodWorker>
  readonly onChange: () => void
  readonly periodMs: number
  readonly events: NodeEventRecorder
}): NodeJob {
  const { hostIps, workers, onChange, periodMs, events } = options
  let addresses: readonly string[] | undefined
  return {
    name: 'follow-address',
    periodMs: Math.min(periodMs, addressPeriodMs),
    deadlineMs,
    runsAtStart: true,
    async run() {
      const before = addresses
      addresses = hostIps()
      if (before === undefined || sameData(addresses, before)) return
      const message = `The host's address is ${addresses.join(', ')} now; it was ${before.join(', ')}`
      events.recordNode({ type: 'Normal', reason: 'NodeAddressChanged', message })
      for (const worker of workers()) worker.notice()
      onChange()
    },
  }
}

/** Updates running pods after changes of the host's resolver. Wake it when the resolver's files change. */
export function followHostJob(
  env: Pick<PodEnv, 'readResolver' | 'volumes' | 'logger'>,
  workers: () => Iterable<PodWorker>,
  periodMs: number,
): NodeJob {
  const { readResolver, volumes, logger } = env
  return {
    name: 'follow-host',
    periodMs,
    deadlineMs,
    runsAtStart: true,
    async run() {
      const conf = await readResolver()
      for (const { ref, state } of workers()) {
        try {
          await volumes.refreshResolvConf(ref.uid, podResolvConf(state.classedPod, conf))
        } catch (error) {
          const { name: pod, uid } = ref
          logger.warn({ pod, uid, err: error }, 'cannot update the resolver configuration of a pod')
        }
      }
    },
  }
}

const periodMs = 10_000
/** How long a name must be stable: a host that gets its name from the network may have several in a row. */
const settleMs = 15_000

/**
 * Restarts podd after a change of the host's name, so that the node gets the new one; the pods keep running. Variables
 * with `spec.nodeName` keep the old name until their container is restarted.
 */
export function followNameJob(options: {
  readonly readName: () => string
  /** The node's name: the host's name when podd started. */
  readonly nodeName: string
  /** A restart now would interrupt podd's work, such as a drain. */
  readonly isBusy: () => boolean
  readonly restart: () => void
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}): NodeJob {
  const { readName, nodeName, isBusy, restart, events, clock, logger } = options
  let seen = nodeName
  let sinceMs = 0
  return {
    name: 'follow-name',
    periodMs,
    deadlineMs: periodMs,
    async run() {
      const name = readName()
      if (name !== seen) {
        seen = name
        sinceMs = clock.monotonicMs()
        if (name === nodeName) return
        const message = `The host was renamed from ${nodeName} to ${name}: podd restarts itself to take the name, and the pods keep running`
        events.recordNode({ type: 'Warning', reason: 'NodeRenamed', message })
        logger.warn({ reason: message }, 'the host was renamed')
      }
      if (name === nodeName || isBusy() || clock.monotonicMs() - sinceMs < settleMs) return
      restart()
    },
  }
}

/** To list the interfaces takes 1.5 ms of CPU with fifty pods. */
const maxAgeMs = 5_000

/** The host's addresses, cached for a short time. */
export function nodeAddresses(clock: Clock): () => readonly string[] {
  let addresses: readonly string[] = []
  let readAtMs = -Infinity
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - readAtMs > maxAgeMs) {
      addresses = [readNodeAddress()]
      readAtMs = nowMs
    }
    return addresses
  }
}

const networkDeadlineMs = 120_000
/** The usual time from the request of a sandbox until its rules exist. */
const networkSettleMs = 2000
/** How long a check waits at most while sandboxes keep being requested. */
const longestSettleMs = 10_000
/** The longest delay before a change from outside is noticed. */
const networkPeriodMs = 30_000
/**
 * The least pause after a check, as a multiple of its duration but no longer than the period: a firewall with many rules takes
 * long to read.
 */
const restPerCheck = 20

/**
 * Restores the pods' network where it was changed from outside. Wake it when a sandbox was made: it is checked some time
 * later, as a reload of the firewall would remove rules that no check has seen.
 */
export function podNetworkJob(options: {
  readonly network: {
    /** Resolves with false where nothing could be checked, because containerd does not run. */
    check(): Promise<boolean>
  }
  /** How many calls to make a sandbox have ended so far. */
  readonly sandboxes: () => number
  /** Whether some may still be in creation: a check does not see their rules. */
  readonly isMaking: () => boolean
  readonly periodMs: number
  readonly clock: Clock
}): NodeJob {
  const { network, sandboxes, isMaking, periodMs, clock } = options
  /** How many there were at the last check; undefined before it. */
  let seen: number | undefined
  let wasMaking = false

  /** A check runs programs and lists sandboxes: many pods that start together need only one, after their start. */
  async function settle(signal: AbortSignal): Promise<void> {
    const untilMs = clock.monotonicMs() + longestSettleMs
    do {
      seen = sandboxes()
      await clock.sleep(networkSettleMs, signal)
    } while (sandboxes() !== seen && clock.monotonicMs() < untilMs)
  }

  return {
    name: 'keep-network',
    periodMs: Math.min(networkPeriodMs, periodMs),
    deadlineMs: networkDeadlineMs,
    runsAtStart: true,
    async run(signal) {
      if (sandboxes() !== seen || wasMaking) await settle(signal)
      const startMs = clock.monotonicMs()
      wasMaking = isMaking()
      if (!(await network.check())) seen = undefined
      return Math.min(networkPeriodMs, (clock.monotonicMs() - startMs) * restPerCheck)
    },
  }
}
