import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { appliedPod } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { podManifestHash } from '../../pod/values/hash.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { podDns, podResolvConf } from '../../translate/network.ts'
import { toSandboxConfig } from '../../translate/runtime-config.ts'
import { warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { foreseeImages } from './images.ts'
import type { ForeseenImages } from './images.ts'
import type { Pass, StartAction } from './pass.ts'

/** What a sandbox that is about to be made needs. */
interface SandboxNeeds {
  readonly volumes: Promise<ReadonlyMap<string, HostVolume>>
  readonly config: Promise<cri.Sent<cri.PodSandboxConfig>>
}

/**
 * What the first steps of a plan need. Images are looked for while the pod's record is written; what is made on the host is
 * begun once the record is on disk, beside what else is under way. Nothing of it changes what the runtime has. The code that
 * needs a part handles its failure.
 */
export class AheadWork {
  readonly images: ForeseenImages
  /** Where it begins with a container in the sandbox that is there. */
  readonly sandboxConfig: Promise<cri.Sent<cri.PodSandboxConfig>> | undefined
  readonly #env: PodEnv
  readonly #pass: Pass
  readonly #first: StartAction | undefined
  readonly #isFirstThere: Promise<boolean>
  #newSandbox: SandboxNeeds | undefined
  #files: Promise<ContainerFiles | undefined> | undefined
  readonly #begun: Promise<unknown>[] = []

  constructor(env: PodEnv, pass: Pass, actions: readonly PodAction[]) {
    this.#env = env
    this.#pass = pass
    const [head] = actions
    const isStart = head?.kind === 'create-sandbox' || head?.kind === 'start-container'
    const starts = isStart ? actions.filter((action) => action.kind === 'start-container') : []
    const own = starts.filter(({ awaitedImage }) => awaitedImage === undefined)
    this.images = foreseeImages(env, pass, own)
    this.#first = own[0]
    this.#isFirstThere = this.#isThere()
    if (head?.kind === 'create-sandbox') this.needsOfSandbox(head.attempt)
    const sandbox = pass.observed.sandboxes[0]
    if (head?.kind === 'start-container' && sandbox !== undefined) {
      this.sandboxConfig = this.#begin(() => buildSandboxConfig(env, pass, sandbox.attempt))
      this.beginFiles()
    }
  }

  /** Begins what a new sandbox needs, where it wasn't begun yet. */
  needsOfSandbox(attempt: number): SandboxNeeds {
    this.#newSandbox ??= {
      volumes: this.#begin(() => prepareVolumes(this.#env, this.#pass)),
      config: this.#begin(() => buildSandboxConfig(this.#env, this.#pass, attempt)),
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
    return prepareContainerFiles(this.#env, this.#pass, this.#first, volumes)
  }

  /** A pod that podd doesn't know after a power cut must have nothing on the host. */
  #begin<T>(make: () => Promise<T>): Promise<T> {
    const work = this.#pass.recorded.then(make)
    // The code that needs it handles its failure.
    work.catch(() => undefined)
    this.#begun.push(work)
    return work
  }
}

/** A container's files on the host that don't depend on the pod's addresses. */
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
  env: PodEnv,
  pass: Pass,
  { spec, restartCount: knownCount }: StartAction,
  volumes?: ReadonlyMap<string, HostVolume>,
): Promise<ContainerFiles> {
  const { pod, ref } = pass
  const restartCount = await prepareLog(env, pass, spec, knownCount)
  const [prepared, resolvConfPath, terminationLogPath] = await Promise.all([
    volumes ?? env.volumes.prepare({ uid: ref.uid, pod, source: pass.record.source }),
    env.readResolver().then((conf) => env.volumes.writeResolvConf(ref.uid, podResolvConf(pod, conf))),
    env.volumes.makeTerminationLog(ref.uid, spec.name, restartCount),
  ])
  return { restartCount, volumes: prepared, resolvConfPath, terminationLogPath }
}

/**
 * Makes the directory of a container's logs. Where neither record nor runtime know of a container before it and yet there
 * are logs of one, it counts on from the newest of them (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * calcRestartCountByLogDir, Kubernetes 1.36).
 */
async function prepareLog(
  env: PodEnv,
  pass: Pass,
  { name }: ContainerSpec,
  knownCount: number,
): Promise<number> {
  const { logs } = env
  const isNew = await logs.prepare(pass.ref, name)
  const isKnown = knownCount > 0 || pass.observed.containers.some((container) => container.name === name)
  if (isNew || isKnown) return knownCount
  const newest = await logs.newestInstance(pass.ref, name)
  return newest === undefined ? 0 : newest + 1
}

/** The config of a sandbox. Makes the pod's cgroup, too. */
export async function buildSandboxConfig(
  env: PodEnv,
  pass: Pass,
  attempt: number,
): Promise<cri.Sent<cri.PodSandboxConfig>> {
  const { pod, ref } = pass
  const cgroupParent = await env.cgroups.ensure(ref.uid, pod, appliedPod(pass))
  const dns = podDns(pod, await env.readResolver())
  for (const { reason, message } of dns.warnings) warn(env, ref, reason, message)
  return toSandboxConfig({
    pod,
    uid: ref.uid,
    attempt,
    instance: env.instance,
    manifestHash: podManifestHash(pass.record.manifest),
    cgroupParent,
    logDirectory: env.logs.directory(ref),
    dns: dns.config,
    resources: env.resources,
    userRange: pod.spec.hostUsers === false ? env.volumes.userRange(ref.uid) : undefined,
    seccompPath: env.sandboxSeccompPath(),
  })
}

function prepareVolumes(env: PodEnv, pass: Pass): Promise<ReadonlyMap<string, HostVolume>> {
  return env.volumes.prepare({
    uid: pass.ref.uid,
    pod: pass.pod,
    source: pass.record.source,
    warn: (message) => warn(env, pass.ref, 'VolumeOwnershipNotChanged', message),
  })
}
