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
/** The longest delay before a change from outside is noticed. */
const networkPeriodMs = 30_000

/** Restores the pods' network where it was changed from outside. */
export function podNetworkJob(check: () => Promise<void>, periodMs: number): NodeJob {
  return {
    name: 'keep-network',
    periodMs: Math.min(networkPeriodMs, periodMs),
    deadlineMs: networkDeadlineMs,
    runsAtStart: true,
    run: check,
  }
}
