import { noObjects } from '../support/object-rules.ts'
import { existsSync, readdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { CriClient } from '../../src/runtime/cri-client.ts'
import type * as cri from '../../src/cri-types/cri-v1.ts'
import { CgroupfsPodCgroups } from '../../src/host/cgroups/cgroupfs.ts'
import type { PodCgroups } from '../../src/host/cgroups/layout.ts'
import { readHostInfo } from '../../src/host/facts/host-info.ts'
import { mountsBelow, readMounts } from '../../src/host/mounts.ts'
import { podFromManifest } from '../../src/pod/schema/default-pod.ts'
import { computeQosClass } from '../../src/pod/schema/pod-resources.ts'
import { toContainerConfig, toSandboxConfig } from '../../src/translate/runtime-config.ts'
import { podDns, hostNetworkHostsFile, podHostsFile, podHostname } from '../../src/translate/network.ts'
import { execLimits, expandCommand } from '../../src/translate/environment.ts'
import { containerMounts } from '../../src/translate/mounts.ts'
import { observePods } from '../../src/translate/observe.ts'
import { podCgroupResources } from '../../src/translate/resources.ts'
import type { ResourceFacts } from '../../src/translate/resources.ts'
import { resolveEnvironment } from '../../src/translate/resolve-environment.ts'
import { writeEtcHosts, prepareTerminationLog, readTerminationLog } from '../../src/volumes/pod-directory.ts'
import { volumeContext } from '../support/volume-context.ts'
import { prepareVolumes, teardownVolumes } from '../../src/volumes/prepare-volumes.ts'
import { ContainerdRig } from '../support/containerd-rig.ts'
import { chooseContainerds } from '../support/containerd-versions.ts'
import type { ContainerdInstall } from '../support/containerd-versions.ts'
import { shellImageName } from '../support/oci-image.ts'
import type { Pod, PodSpec } from '../../src/pod/schema/pod-schema.ts'

/*
 * Pods as translate/, volumes/ and the cgroup tree make them, on real containerd, seen from inside their
 * containers: fields that the schema doesn't take yet are put into the typed pod directly.
 */

const host = readHostInfo()
const resources: ResourceFacts = {
  cgroupVersion: host.cgroups?.version ?? 1,
  memoryCapacityBytes: host.memoryBytes,
  minOomScoreAdj: host.minOomScoreAdj,
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodUs: 100_000,
  swapController: host.swapController,
  swapBytes: 0,
  oomKillsGroup: true,
  hugePageSizes: host.hugePageSizes,
}
const resolver = { servers: ['192.0.2.53'], searches: ['lan'], options: ['timeout:1'] }

function podOf(name: string, spec: JsonObject, more: Partial<PodSpec> = {}): Pod {
  const pod = podFromManifest({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec })
  return { ...pod, spec: { ...pod.spec, ...more } }
}

/** One pod at a time, from its volumes to its removal. */
class PodRun {
  readonly #client: CriClient
  readonly #cgroups: PodCgroups
  readonly #rootDir: string
  readonly uid: string
  readonly pod: Pod
  sandboxId = ''
  containerId = ''

  constructor(rig: ContainerdRig, client: CriClient, cgroups: PodCgroups, pod: Pod) {
    this.#client = client
    this.#cgroups = cgroups
    this.#rootDir = join(rig.dir, 'podd')
    this.uid = `uid-${pod.metadata.name}`
    this.pod = pod
  }

  get container() {
    const [container] = this.pod.spec.containers
    if (container === undefined) throw new Error('no container')
    return container
  }

  /** With the sandbox's cgroup, network and processes in place. */
  async start(): Promise<void> {
    const { pod, uid, container } = this
    const volumes = await prepareVolumes(
      pod.spec.volumes,
      volumeContext({ uid, rootDir: this.#rootDir, memoryBytes: 64 << 20 }),
    )
    const cgroup = { uid, qosClass: computeQosClass(pod.spec) }
    await this.#cgroups.ensurePod(cgroup, podCgroupResources(pod.spec, resources, undefined))
    const sandboxConfig = toSandboxConfig({
      pod,
      uid,
      attempt: 0,
      instance: 'test',
      manifestHash: 'v1-manifest',
      cgroupParent: this.#cgroups.parentOf(cgroup),
      logDirectory: join(this.#rootDir, 'logs', uid),
      dns: podDns(pod, resolver).config,
      resources,
    })
    this.sandboxId = (await this.#client.runtime.runPodSandbox({ config: sandboxConfig })).podSandboxId
    const { status } = await this.#client.runtime.podSandboxStatus({ podSandboxId: this.sandboxId })
    const hosts = pod.spec.hostNetwork
      ? hostNetworkHostsFile({ hostFile: '127.0.0.1 box\n', aliases: [], services: '' })
      : podHostsFile({
          ips: [status?.network?.ip ?? ''],
          hostname: podHostname(pod),
          aliases: [],
          services: '',
        })
    const limits = execLimits(host.pageBytes)
    const environment = resolveEnvironment({
      container,
      fields: { pod, uid, nodeName: 'box', hostIps: [], podIps: [] },
      capacity: {},
      objects: noObjects,
      limits,
      services: new Map(),
      fileValue: () => undefined,
    })
    const config = toContainerConfig({
      pod,
      uid,
      container,
      restartCount: 3,
      instance: 'test',
      specHash: 'v1-spec',
      imageRef: shellImageName,
      imageUser: { uid: 0 },
      environment,
      command: expandCommand(container, environment, limits),
      mounts: containerMounts({
        container,
        volumes,
        etcHostsPath: await writeEtcHosts(this.#rootDir, uid, hosts),
        terminationLogPath: await prepareTerminationLog(this.#log()),
        selinux: false,
      }),
      resources,
      security: { seccompRoot: '/nowhere', seccompDefault: false, appArmor: host.appArmor },
    })
    const request = { podSandboxId: this.sandboxId, config, sandboxConfig }
    this.containerId = (await this.#client.runtime.createContainer(request)).containerId
    await this.#client.runtime.startContainer({ containerId: this.containerId })
  }

  /** What a shell command says in the container. */
  async run(command: string): Promise<string> {
    const { stdout, stderr, exitCode } = await this.#client.runtime.execSync({
      containerId: this.containerId,
      cmd: ['sh', '-c', command],
      timeout: 10,
    })
    return `${Buffer.from(stdout).toString()}${Buffer.from(stderr).toString()}${exitCode === 0 ? '' : `[${exitCode}]`}`.trim()
  }

  async observe() {
    const { runtime } = this.#client
    const sandboxes = (await runtime.listPodSandbox({})).items
    const { containers } = await runtime.listContainers({})
    const sandboxStatus = (await runtime.podSandboxStatus({ podSandboxId: this.sandboxId })).status
    const containerStatus = (await runtime.containerStatus({ containerId: this.containerId })).status
    const one = <T extends { readonly id: string }>(status: T | null): ReadonlyMap<string, T> =>
      new Map(status === null ? [] : [[status.id, status]])
    const pods = observePods({
      sandboxes,
      containers,
      sandboxStatuses: one<cri.PodSandboxStatus>(sandboxStatus),
      containerStatuses: one<cri.ContainerStatus>(containerStatus),
    })
    return pods.get(this.uid)
  }

  async stop(): Promise<void> {
    await this.#client.runtime.stopContainer({ containerId: this.containerId, timeout: 1 })
  }

  readTerminationLog(): Promise<string> {
    return readTerminationLog(this.#log())
  }

  /** Gives what would not go: cgroups, mounts, the pod's directory. */
  async remove(): Promise<readonly string[]> {
    const { runtime } = this.#client
    if (this.sandboxId !== '') {
      await runtime.stopPodSandbox({ podSandboxId: this.sandboxId })
      await runtime.removePodSandbox({ podSandboxId: this.sandboxId })
    }
    const cgroups = await this.#cgroups.removePod(this.uid)
    await teardownVolumes(this.#rootDir, this.uid)
    const directory = `${this.#rootDir}/pods/${this.uid}`
    return [
      ...cgroups,
      ...mountsBelow(directory, readMounts()),
      ...(existsSync(directory) ? [directory] : []),
    ]
  }

  #log() {
    return { rootDir: this.#rootDir, uid: this.uid, container: this.container.name, restartCount: 3 }
  }
}

function cases(install: ContainerdInstall): void {
  let rig: ContainerdRig
  let client: CriClient
  let cgroups: PodCgroups

  beforeAll(async () => {
    rig = await ContainerdRig.start({ install })
    client = new CriClient({ endpoint: rig.endpoint, clock: systemClock })
    cgroups = new CgroupfsPodCgroups({
      system: host.cgroups ?? { version: 1, hierarchies: [] },
      root: rig.cgroupParent,
      clock: systemClock,
    })
    await cgroups.ensureQosTree({ kubepods: 2048, burstable: 1024 })
  })

  afterAll(async () => {
    client.close()
    await rig.remove()
    expect(await cgroups.removeQosTree()).toEqual([])
  })

  async function inPod(pod: Pod, look: (run: PodRun) => Promise<void>): Promise<void> {
    const run = new PodRun(rig, client, cgroups, pod)
    try {
      await run.start()
      await look(run)
    } finally {
      expect(await run.remove()).toEqual([])
    }
  }

  const sleeper = 'trap "echo bye > /dev/termination-log; exit 3" TERM; while :; do sleep 0.1; done'
  const app = (more: JsonObject = {}): JsonObject => ({
    name: 'app',
    image: shellImageName,
    command: ['sh', '-c', sleeper],
    ...more,
  })

  it('sees its volumes, environment, names, limits and files', async () => {
    const pod = podOf('plain', {
      hostname: 'gateway',
      subdomain: 'line-3',
      shareProcessNamespace: true,
      volumes: [
        { name: 'data', emptyDir: {} },
        { name: 'fast', emptyDir: { medium: 'Memory' } },
        { name: 'etc', hostPath: { path: '/etc', type: 'Directory' } },
      ],
      containers: [
        app({
          workingDir: '/data',
          env: [
            { name: 'BASE', value: 'a' },
            { name: 'FULL', value: '$(BASE)/b $$(BASE) $(NONE)' },
          ],
          resources: { requests: { cpu: '100m' }, limits: { cpu: '500m', memory: '64Mi' } },
          volumeMounts: [
            { name: 'data', mountPath: '/data' },
            { name: 'fast', mountPath: '/fast' },
            { name: 'etc', mountPath: '/host-etc', readOnly: true },
          ],
        }),
      ],
    })
    await inPod(pod, async (run) => {
      expect(await run.run('pwd; echo "$FULL"; hostname')).toBe('/data\na/b $(BASE) $(NONE)\ngateway')
      expect(await run.run('cat /etc/resolv.conf')).toBe(
        'search lan\nnameserver 192.0.2.53\noptions timeout:1',
      )
      expect(await run.run('cat /etc/hosts')).toMatch(
        /\n10\.\S+\tgateway\.line-3\.default\.svc\.cluster\.local\tgateway\.line-3\.default\.svc\tgateway$/,
      )
      expect(await run.run('grep " /fast " /proc/mounts')).toContain('size=65536k')
      expect(await run.run('echo x > /host-etc/podd-test')).toContain('Read-only file system')
      expect(await run.run('stat -c %a /data /fast; echo x > /data/y && cat /data/y')).toBe('777\n1777\nx')
      expect(await run.run('cat /proc/1/comm')).toBe('catatonit')
      const memory =
        host.cgroups?.version === 2
          ? '/sys/fs/cgroup/memory.max'
          : '/sys/fs/cgroup/memory/memory.limit_in_bytes'
      expect(await run.run(`cat ${memory}`)).toBe(String(64 << 20))
      const cgroup = await run.run('cat /proc/self/cgroup')
      const podCgroup = `${rig.cgroupParent}/kubepods/burstable/poduid-plain`
      const hierarchy = host.cgroups?.version === 2 ? '' : 'memory'
      expect(readdirSync(join('/sys/fs/cgroup', hierarchy, podCgroup))).toContain(run.containerId)
      // In version 2 it has a cgroup namespace of its own, and sees nothing of what is above it.
      expect(cgroup).toContain(host.cgroups?.version === 2 ? '0::/' : `${podCgroup}/`)
      // 1000 - 1000 × 64 MiB / the host's memory, and never below what this host can set.
      const score = Number(await run.run('cat /proc/self/oom_score_adj'))
      expect(score).toBeGreaterThan(900)
      expect(score).toBeLessThan(1000)

      await run.stop()
      expect(await run.readTerminationLog()).toBe('bye\n')
      const observed = await run.observe()
      expect(observed?.sandboxes).toMatchObject([{ ready: true, attempt: 0, hostNetwork: false }])
      expect(observed?.sandboxes[0]?.ips[0]).toMatch(/^10\./)
      expect(observed?.containers).toMatchObject([
        {
          name: 'app',
          state: 'exited',
          exitCode: 3,
          restartCount: 3,
          image: shellImageName,
          specHash: 'v1-spec',
        },
      ])
    })
  })

  it('runs as whom and with what its security context says', async () => {
    const pod = podOf(
      'secure',
      { containers: [app()] },
      {
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 3000,
          fsGroup: 2000,
          supplementalGroups: [4000],
          sysctls: [{ name: 'net/ipv4/ip_unprivileged_port_start', value: '77' }],
          seccompProfile: { type: 'RuntimeDefault' },
        },
      },
    )
    const [container] = pod.spec.containers
    if (container === undefined) throw new Error('no container')
    const securityContext = {
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
    }
    const secured = { ...pod, spec: { ...pod.spec, containers: [{ ...container, securityContext }] } }
    await inPod(secured, async (run) => {
      expect(await run.run('id -u; id -g; id -G')).toBe('1000\n3000\n3000 2000 4000')
      const status = await run.run('cat /proc/self/status')
      expect(status).toMatch(/NoNewPrivs:\t1/)
      expect(status).toMatch(/Seccomp:\t2/)
      expect(status).toMatch(/CapBnd:\t0000000000000400/)
      expect(await run.run('echo x > /tmp/x')).toContain('Read-only file system')
      expect(await run.run('cat /proc/sys/net/ipv4/ip_unprivileged_port_start')).toBe('77')
      expect(await run.run('head -c1 /proc/kcore | wc -c')).toMatch(/^(0|.*denied)/)
    })
  })

  it('shares the host’s namespaces and has all rights when it asks for them', async () => {
    const pod = podOf('host', { hostNetwork: true, hostPID: true, hostIPC: true, containers: [app()] })
    const [container] = pod.spec.containers
    if (container === undefined) throw new Error('no container')
    const privileged = { ...container, securityContext: { privileged: true } }
    await inPod({ ...pod, spec: { ...pod.spec, containers: [privileged] } }, async (run) => {
      expect(await run.run('hostname')).toBe(hostname())
      expect(await run.run(`cat /proc/${process.pid}/comm`)).not.toBe('')
      expect(await run.run('cat /etc/hosts')).toBe(
        '# Kubernetes-managed hosts file (host network).\n127.0.0.1 box',
      )
      expect(await run.run('cat /proc/self/status')).toMatch(/Seccomp:\t0/)
      expect(await run.run('mount -t tmpfs none /tmp && echo mounted')).toBe('mounted')
      const observed = await run.observe()
      expect(observed?.sandboxes).toMatchObject([{ hostNetwork: true, ips: [] }])
    })
  })
}

const choice = chooseContainerds()

if (choice.kind === 'use') {
  describe.each(choice.installs)('a pod in containerd $version', cases)
} else {
  describe.skipIf(true)(`a pod in containerd (skipped: ${choice.reason})`, () => {
    it('needs a containerd', () => expect(choice.kind).toBe('use'))
  })
}
