import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { CgroupDriver } from '../../host/cgroups/layout.ts'
import type { HostInfo } from '../../host/facts/host-info.ts'
import { buildSandboxImage, sandboxImageName } from '../../images/sandbox-image.ts'
import type { EventRecorder, NodeEventRecorder } from '../../pod/state/pod-event.ts'
import { RuntimeConnection } from '../../runtime/connection.ts'
import { ImageRecords } from '../../runtime/containerd/image-records.ts'
import type { ContainerdChannel } from '../../runtime/containerd/records.ts'
import type { HeldImage, ImageUnpacking } from '../../runtime/containerd/unpacked-images.ts'
import type { ImageService, RuntimeService } from '../../runtime/cri-runtime.ts'
import { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'
import { ContainerdEvents } from '../../runtime/events.ts'
import { RememberedCniResults, restoreReservations } from '../../runtime/network/cni-results.ts'
import type { CniResult } from '../../runtime/network/cni-results.ts'
import { restoreNetworkRules } from '../../runtime/network/network-rules.ts'
import { describeRepairs, repairBridge } from '../../runtime/network/pod-bridge.ts'
import { restorePodNetwork } from '../../runtime/network/pod-network.ts'
import type { RuntimeEventSource } from './runtime-observer.ts'

export interface RuntimeEnv {
  readonly config: PoddConfig
  readonly hostInfo: HostInfo
  readonly events: EventRecorder & NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * The embedded containerd as podd's options want it; not started yet.
 * @param calls CRI, for when it answers
 */
export function createEmbedded(
  env: RuntimeEnv,
  cgroupDriver: CgroupDriver,
  calls: () => { readonly runtime: RuntimeService; readonly images: ImageService },
): EmbeddedContainerd {
  const { config, clock, logger, events, hostInfo } = env
  return new EmbeddedContainerd({
    rootDir: config.rootDir,
    runDir: config.runDir,
    cgroupDriver,
    sandboxImage: { name: sandboxImageName, build: () => buildSandboxImage() },
    podCidrs: config.podCidrs,
    registryConfigDir: config.registryConfigDir,
    imageVerifiers: config.imageVerifiers,
    ociRuntimes: config.ociRuntimes,
    // podd's own look at a pull comes first.
    pullStallMs: 3 * config.imagePullProgressTimeoutMs,
    known: {
      list: () => listIds(calls().runtime),
      listSandboxes: () => listSandboxIds(calls().runtime),
    },
    openImageRecords: (socketPath) => openImageRecords(socketPath, clock),
    unpacks: {
      bootId: hostInfo.bootId,
      images: {
        list: () => listImages(calls().images),
        remove: async (id) => void (await calls().images.removeImage({ image: { image: id } })),
      },
      onDiscarded: (image) => reportDiscarded(env, image),
    },
    events,
    clock,
    logger,
  })
}

/** The ids of the sandboxes that CRI lists. */
export async function listSandboxIds(
  runtime: Pick<RuntimeService, 'listPodSandbox'>,
  filter: cri.Sent<cri.PodSandboxFilter> = {},
): Promise<ReadonlySet<string>> {
  const { items } = await runtime.listPodSandbox({ filter })
  return new Set(items.map(({ id }) => id))
}

async function listIds(runtime: RuntimeService): Promise<ReadonlySet<string>> {
  const [sandboxes, { containers }] = await Promise.all([listSandboxIds(runtime), runtime.listContainers({})])
  return new Set([...sandboxes, ...containers.map(({ id }) => id)])
}

async function listImages(service: ImageService): Promise<readonly HeldImage[]> {
  const { images } = await service.listImages({})
  return images.map(({ id, repoTags, repoDigests }) => ({ id, names: [...repoTags, ...repoDigests] }))
}

function reportDiscarded({ events, logger }: RuntimeEnv, { id, names }: HeldImage): void {
  const [image = id] = names
  logger.warn({ image }, 'removed an image that the power failed for while it was unpacked')
  events.recordNode({
    type: 'Warning',
    reason: 'ImageDiscarded',
    message: `removed the image ${image}: the power failed before its layers were on the disk. It is pulled or imported again.`,
  })
}

/** containerd's records of images, over a connection of their own. The first call connects; it fails at once where none listens. */
export function openImageRecords(socketPath: string, clock: Clock): ImageRecords {
  return new ImageRecords(new RuntimeConnection(`unix://${socketPath}`, clock, 0), clock)
}

export type PodNetworkKeeper = ReturnType<typeof createPodNetworkKeeper>

/**
 * Creates the keeper that restores the pods' network after changes from outside: its firewall rules, which a reload of
 * the firewall wipes; its bridge; the forwarding of packets. No pod is touched. Nothing is done while containerd does not run;
 * throws HostCommandError and what the runtime's calls throw.
 * @param listReady the ids of the sandboxes that are ready
 */
export function createPodNetworkKeeper(
  embedded: EmbeddedContainerd,
  listReady: () => Promise<ReadonlySet<string>>,
  { events, clock, logger }: RuntimeEnv,
) {
  const { bridgeName, networkName } = embedded.places
  const results = new RememberedCniResults(networkName, clock)

  function tell(reason: string, message: string, rules: readonly string[] = []): void {
    events.recordNode({ type: 'Warning', reason, message })
    logger.warn({ reason: [message, ...rules].join('; ') }, 'restored the pod network')
  }

  async function reserve(remembered: readonly CniResult[]): Promise<void> {
    const reserved = await restoreReservations(embedded.places, remembered, listReady)
    if (reserved.length > 0)
      tell(
        'PodNetworkRestored',
        `The reservations of pods' addresses were removed from ${embedded.places.cniDataDir}, and podd has restored them: ${reserved.join(', ')}`,
      )
  }

  async function restoreConfig(subnets: readonly string[]): Promise<void> {
    const restored = await restorePodNetwork(embedded.places, subnets)
    if (restored === undefined) return
    tell(
      'PodNetworkRestored',
      `The config of the pod network, ${embedded.places.conflistPath}, was removed or changed, and podd has written it again`,
    )
    // It watches the directory that was there when it started.
    if (restored === 'directory') await embedded.restart('the directory of its network config was removed')
  }

  /** Restores what is missing of the pods' network, for the current sandboxes. */
  async function check(): Promise<void> {
    const { state } = embedded
    if (state.kind !== 'running') return
    await restoreConfig(state.running.podCidrs)
    const ready = await listReady()
    if (ready.size === 0) return
    const remembered = await results.read()
    await reserve(remembered)
    const repairs = await repairBridge(embedded.places, ready, remembered)
    if (repairs.length > 0)
      tell(
        'PodNetworkRestored',
        `The pod network was changed from outside podd, and podd has restored it. It found: ${describeRepairs(bridgeName, repairs)}`,
      )
    const { podCidrs } = state.running
    const restored = await restoreNetworkRules(embedded.places, podCidrs, listReady, remembered)
    if (restored.length > 0)
      tell(
        'FirewallRulesRestored',
        'Firewall rules of the pod network were removed from outside podd, and podd has restored them',
        restored,
      )
  }

  return {
    check,
    /**
     * To be called before each sandbox is made: no address is given that a running one has. Cheap where nothing is missing;
     * never rejects.
     */
    async reserveAddresses(): Promise<void> {
      try {
        await reserve(await results.read())
      } catch (error) {
        // The job looks again, and reports it.
        logger.debug({ err: error }, 'cannot restore the reservations of addresses')
      }
    },
  }
}

/**
 * The image calls of a containerd that leaves unpacked layers in the page cache but records them at once (1.x): after a
 * power cut the files of such an image are empty. An image counts as pulled once it is on the disk; a caller that finds
 * it earlier waits for that.
 * @param unpacking undefined where the runtime syncs layers to the disk before it reports them
 * @param onFailure hears of a pull whose layers were not, or may not have been, written to the disk
 */
export function writeOutPulled(
  images: ImageService,
  unpacking: () => ImageUnpacking | undefined,
  onFailure: (error: unknown) => void,
): ImageService {
  // One that is pulled again and again (`Always`) is written once. That CRI listed it before proves nothing: its layers
  // may have been removed since, or never have been unpacked.
  const written = new Set<string>()
  return {
    ...images,
    pullImage: async (request, options) => {
      const unpack = unpacking()
      if (unpack === undefined) return images.pullImage(request, options)
      await unpack.begin()
      const reply = await images.pullImage(request, options).catch(async (error: unknown) => {
        await unpack.end([])
        throw error
      })
      try {
        if (!written.has(reply.imageRef)) await unpack.writeOut()
        written.add(reply.imageRef)
        await unpack.end([reply.imageRef])
      } catch (error) {
        // It stays on record that a power cut may damage it.
        onFailure(error)
      }
      return reply
    },
    removeImage: (request, options) => {
      // It is unpacked again when it comes back.
      written.clear()
      return images.removeImage(request, options)
    },
    imageStatus: async (request, options) => {
      const reply = await images.imageStatus(request, options)
      const unpack = unpacking()
      if (reply.image !== null && unpack?.isUnwritten(reply.image.id) === true)
        await unpack.writeOut().catch(onFailure)
      return reply
    },
  }
}

/** The delay before an event stream that failed is opened again. */
const eventsRetryMs = 500

/** containerd's own events. Whether the runtime serves them is asked when they are first listened to, for then it is there. */
export function createEventSource(
  channel: ContainerdChannel,
  clock: Clock,
  logger: Logger,
): RuntimeEventSource {
  return {
    async run(onEvent, signal) {
      const events = new ContainerdEvents(channel, clock)
      let failure: string | undefined
      while (!signal.aborted) {
        try {
          if (!(await events.isServed(signal))) return onEvent({ kind: 'unserved' })
          return await events.run(onEvent, signal)
        } catch (error) {
          if (signal.aborted) return
          const message = errorMessage(error)
          if (message !== failure) logger.warn({ err: error }, 'cannot listen to the events of the runtime')
          failure = message
          await sleepUnlessAborted(clock, eventsRetryMs, signal)
        }
      }
    },
  }
}
