import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { podResolvConf } from '../../translate/network.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { buildSandboxConfig, prepareVolumes } from './create-sandbox.ts'
import { foreseeImages } from './fetch-images.ts'
import type { ForeseenImages } from './fetch-images.ts'
import type { PodContext, SandboxNeeds } from './pod-context.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

/**
 * What the first steps of a plan need. Images are looked for while the pod's record is written; what is made on the host is
 * begun once the record is on disk, beside what else is under way. Nothing of it changes what the runtime has. The code that
 * needs a part handles its failure.
 */
export class AheadWork {
  readonly images: ForeseenImages
  /** Where it begins with a container in the sandbox that is there. */
  readonly sandboxConfig: Promise<cri.PodSandboxConfigInput> | undefined
  readonly #ctx: PodContext
  readonly #first: StartAction | undefined
  readonly #isFirstThere: Promise<boolean>
  #newSandbox: SandboxNeeds | undefined
  #files: Promise<ContainerFiles | undefined> | undefined
  readonly #begun: Promise<unknown>[] = []

  constructor(ctx: PodContext, actions: readonly PodAction[]) {
    this.#ctx = ctx
    const [head] = actions
    const isStart = head?.kind === 'create-sandbox' || head?.kind === 'start-container'
    const starts = isStart ? actions.filter((action) => action.kind === 'start-container') : []
    const own = starts.filter(({ awaitedImage }) => awaitedImage === undefined)
    this.images = foreseeImages(ctx, own)
    this.#first = own[0]
    this.#isFirstThere = this.#isThere()
    if (head?.kind === 'create-sandbox') this.needsOfSandbox(head.attempt)
    const sandbox = ctx.observed.sandboxes[0]
    if (head?.kind === 'start-container' && sandbox !== undefined) {
      this.sandboxConfig = this.#begin(() => buildSandboxConfig(ctx, sandbox.attempt))
      this.beginFiles()
    }
  }

  /** Begins what a new sandbox needs, where it wasn't begun yet. */
  needsOfSandbox(attempt: number): SandboxNeeds {
    this.#newSandbox ??= {
      volumes: this.#begin(() => prepareVolumes(this.#ctx)),
      config: this.#begin(() => buildSandboxConfig(this.#ctx, attempt)),
    }
    return this.#newSandbox
  }

  /** Begins the files of the first container. To be called where its sandbox is made. */
  beginFiles(): void {
    this.#files = this.#begin(() => this.#makeFiles())
  }

  /** The files of this container, where they were begun; for its first start only. */
  takeFiles(spec: ContainerSpec): Promise<ContainerFiles | undefined> | undefined {
    if (spec !== this.#first?.spec) return undefined
    const files = this.#files
    this.#files = undefined
    return files
  }

  /** Nothing is written any more once this has resolved; it never rejects. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#begun)
  }

  /** A pull may take long: what is written before it could be outdated when the container is made. */
  async #isThere(): Promise<boolean> {
    if (this.#first === undefined || this.#first.spec.imagePullPolicy === 'Always') return false
    // The start asks again, and reports why it is unavailable.
    return (await this.images.get(this.#first.spec.image)?.catch(() => undefined)) !== undefined
  }

  async #makeFiles(): Promise<ContainerFiles | undefined> {
    if (this.#first === undefined || !(await this.#isFirstThere)) return undefined
    const volumes = await this.#newSandbox?.volumes
    return prepareContainerFiles(this.#ctx, this.#first, volumes)
  }

  /** A pod that podd doesn't know after a power cut must have nothing on the host. */
  #begin<T>(make: () => Promise<T>): Promise<T> {
    const work = this.#ctx.journal.recorded.then(make)
    // The code that needs it handles its failure.
    work.catch(() => undefined)
    this.#begun.push(work)
    return work
  }
}

/** What a container has on the host that its pod's addresses don't show in. */
export interface ContainerFiles {
  /** Which start of the container this is. */
  readonly restartCount: number
  readonly volumes: ReadonlyMap<string, HostVolume>
  readonly resolvConfPath: string
  readonly terminationLogPath: string
}

/**
 * Makes what a container has on the host.
 * @param volumes those of the pod, where they were prepared a moment ago
 */
export async function prepareContainerFiles(
  ctx: PodContext,
  { spec, restartCount: knownCount }: StartAction,
  volumes?: ReadonlyMap<string, HostVolume>,
): Promise<ContainerFiles> {
  const { pod, ref, host } = ctx
  const restartCount = await prepareLog(ctx, spec, knownCount)
  const [prepared, resolvConfPath, terminationLogPath] = await Promise.all([
    volumes ?? host.volumes.prepare({ uid: ref.uid, pod, source: ctx.record.source }),
    host.readResolver().then((conf) => host.volumes.writeResolvConf(ref.uid, podResolvConf(pod, conf))),
    host.volumes.makeTerminationLog(ref.uid, spec.name, restartCount),
  ])
  return { restartCount, volumes: prepared, resolvConfPath, terminationLogPath }
}

/**
 * Makes the directory of a container's logs. Where neither record nor runtime know of a container before it and yet there
 * are logs of one, it counts on from the newest of them (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * calcRestartCountByLogDir, Kubernetes 1.36).
 */
async function prepareLog(ctx: PodContext, { name }: ContainerSpec, knownCount: number): Promise<number> {
  const { logs } = ctx.host
  const isNew = await logs.prepare(ctx.ref, name)
  const isKnown = knownCount > 0 || ctx.observed.containers.some((container) => container.name === name)
  if (isNew || isKnown) return knownCount
  const newest = await logs.newestInstance(ctx.ref, name)
  return newest === undefined ? 0 : newest + 1
}
