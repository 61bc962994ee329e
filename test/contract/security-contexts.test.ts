import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { CriClient } from '../../src/runtime/cri-client.ts'
import { preflightPod } from '../../src/decide/admission/preflight-pod.ts'
import { readHostInfo } from '../../src/host/facts/host-info.ts'
import { decodeDocuments } from '../../src/pod/decode/decode-documents.ts'
import { isPodDocument } from '../../src/pod/objects/document.ts'
import type { Pod } from '../../src/pod/schema/pod-schema.ts'
import { sysctlValueProblem } from '../../src/pod/values/kernel-names.ts'
import type { RuntimeFeatures } from '../../src/pod/state/observed.ts'
import { toContainerConfig, toSandboxConfig } from '../../src/translate/runtime-config.ts'
import { readRuntimeFeatures } from '../../src/translate/observe.ts'
import {
  effectiveSecurityContext,
  imageUserOf,
  runAsRootProblem,
} from '../../src/translate/security-context.ts'
import { ContainerdRig } from '../support/containerd-rig.ts'
import { chooseContainerds } from '../support/containerd-versions.ts'
import type { ContainerdInstall } from '../support/containerd-versions.ts'
import { isNightly } from '../support/nightly.ts'
import { shellImage, shellImageName } from '../support/oci-image.ts'
import { slowness } from '../support/slowness.ts'
import { seededRandom } from '../support/seeded-random.ts'

/*
 * What validation and admission take, the runtime starts: pods of the values that the fields of both security contexts
 * and the host's namespaces can have. In the nightly run each two values meet in one of their combinations; in any other,
 * each value stands in one. `PODD_SECURITY_CONTEXTS=N` adds N combinations at random, `PODD_SECURITY_SEED` chooses which.
 */

const namedUserImage = 'localhost/podd-test/named-user:1'
const numberedUserImage = 'localhost/podd-test/numbered-user:1'

/** Where a value stands in a pod; undefined: the field is left out. */
const factors: Readonly<Record<string, readonly (Json | undefined)[]>> = {
  'pod.runAsUser': [undefined, 0, 1000, 100_000],
  'pod.runAsGroup': [undefined, 0, 107, 100_001],
  'pod.runAsNonRoot': [undefined, false, true],
  'pod.supplementalGroups': [undefined, [0], [4000, 5000], [100_002]],
  'pod.fsGroup': [undefined, 0, 2000, 100_003],
  'pod.supplementalGroupsPolicy': [undefined, 'Merge', 'Strict'],
  'pod.seccompProfile': [undefined, { type: 'RuntimeDefault' }, { type: 'Unconfined' }],
  'pod.appArmorProfile': [undefined, { type: 'Unconfined' }],
  'pod.seLinuxOptions': [undefined, { level: 's0:c1,c2' }],
  'pod.sysctls': [
    undefined,
    [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '77' }],
    [{ name: 'kernel/shm_rmid_forced', value: '1' }],
  ],
  'spec.hostUsers': [undefined, true, false],
  'spec.hostNetwork': [undefined, true],
  'spec.hostPID': [undefined, true],
  'spec.hostIPC': [undefined, true],
  'spec.shareProcessNamespace': [undefined, true],
  'own.runAsUser': [undefined, 0, 1001, 100_004],
  'own.runAsGroup': [undefined, 0, 108, 100_005],
  'own.runAsNonRoot': [undefined, false, true],
  'own.seccompProfile': [undefined, { type: 'RuntimeDefault' }, { type: 'Unconfined' }],
  'own.appArmorProfile': [undefined, { type: 'Unconfined' }],
  'own.seLinuxOptions': [undefined, { level: 's0:c3' }],
  'own.capabilities': [
    undefined,
    { drop: ['ALL'] },
    { add: ['ALL'] },
    { add: ['NET_ADMIN', 'CAP_SYS_PTRACE'], drop: ['ALL', 'chown'] },
    { add: ['NO_SUCH'], drop: ['NONE_SUCH'] },
  ],
  'own.privileged': [undefined, false, true],
  'own.readOnlyRootFilesystem': [undefined, false, true],
  'own.allowPrivilegeEscalation': [undefined, false, true],
  'own.procMount': [undefined, 'Default', 'Unmasked'],
  'own.workingDir': [undefined, '/new/directory'],
  image: [shellImageName, namedUserImage, numberedUserImage],
}

type Choice = Readonly<Record<string, number>>

/**
 * Choices that have everything that `partsOf` finds in any of them, as far as `isLegal` lets them; those that would bring
 * fewer than `fewest` new parts are left out.
 */
async function cover(
  random: () => number,
  isLegal: (choice: Choice) => Promise<boolean>,
  { all, partsOf, fewest }: Coverage,
): Promise<readonly Choice[]> {
  const parts = new Set(all)
  const chosen: Choice[] = []
  for (let misses = 0; parts.size > 0 && misses < 60;) {
    let best: Choice | undefined
    let most: readonly string[] = []
    for (let tries = 0; tries < 40; tries += 1) {
      const choice = anyChoice(random)
      const met = partsOf(choice).filter((part) => parts.has(part))
      if (met.length <= most.length || !(await isLegal(choice))) continue
      best = choice
      most = met
    }
    if (best === undefined || most.length < fewest) misses += 1
    if (best === undefined || most.length < fewest) continue
    chosen.push(best)
    for (const part of most) parts.delete(part)
  }
  return chosen
}

interface Coverage {
  readonly all: readonly string[]
  readonly partsOf: (choice: Choice) => readonly string[]
  readonly fewest: number
}

/** Each value of each factor. */
const eachValue: Coverage = {
  all: Object.entries(factors).flatMap(([name, values]) => [...values.keys()].map((at) => `${name}=${at}`)),
  partsOf: (choice) => Object.entries(choice).map(([name, at]) => `${name}=${at}`),
  fewest: 1,
}

/** Each two values of two factors. */
const eachPair: Coverage = {
  all: Object.keys(factors).flatMap((a, index, names) =>
    names
      .slice(index + 1)
      .flatMap((b) =>
        [...factors[a]!.keys()].flatMap((x) => [...factors[b]!.keys()].map((y) => `${a}=${x} ${b}=${y}`)),
      ),
  ),
  partsOf: (choice) => {
    const entries = Object.entries(choice)
    return entries.flatMap(([a, x], index) => entries.slice(index + 1).map(([b, y]) => `${a}=${x} ${b}=${y}`))
  },
  fewest: 4,
}

/** Most fields are left out more often than not: few pods have many, and few combinations of all are legal. */
function anyChoice(random: () => number): Choice {
  return Object.fromEntries(
    Object.entries(factors).map(([name, values]) => [
      name,
      random() < 0.45 ? 0 : Math.floor(random() * values.length),
    ]),
  )
}

function manifestOf(choice: Choice, name: string): JsonObject {
  const given = Object.entries(choice).flatMap(([factor, index]): readonly [string, Json][] => {
    const value = factors[factor]?.[index]
    return value === undefined ? [] : [[factor, value]]
  })
  const of = (owner: string): JsonObject =>
    Object.fromEntries(
      given.flatMap(([factor, value]) => {
        const [place, field = ''] = factor.split('.')
        return place === owner ? [[field, value]] : []
      }),
    )
  const { workingDir, ...own } = of('own')
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      ...of('spec'),
      securityContext: of('pod'),
      containers: [
        {
          name: 'app',
          image: new Map(given).get('image') ?? shellImageName,
          command: ['sleep', '1000'],
          ...(workingDir !== undefined && { workingDir }),
          securityContext: own,
        },
      ],
    },
  }
}

function cases(install: ContainerdInstall): void {
  const host = readHostInfo()
  let rig: ContainerdRig
  let client: CriClient
  let features: RuntimeFeatures

  beforeAll(async () => {
    const images = [shellImage(namedUserImage, 'nobody'), shellImage(numberedUserImage, '1234')]
    rig = await ContainerdRig.start({ install, images })
    // As podd's own directories: the users of a pod's own namespace go through.
    chmodSync(rig.dir, 0o711)
    client = new CriClient({ endpoint: rig.endpoint, clock: systemClock })
    const status = await client.runtime.status({ verbose: true })
    features = readRuntimeFeatures(await client.runtime.version({}), status)
  })

  afterAll(async () => {
    client.close()
    await rig.remove()
  })

  /** The pod, where podd would start it here. */
  async function admitted(manifest: JsonObject): Promise<Pod | undefined> {
    const { documents } = await decodeDocuments(JSON.stringify(manifest), { path: 'pod' })
    const pod = documents.find((document) => isPodDocument(document))?.pod
    if (pod === undefined) return undefined
    const facts = { runtime: features, runtimeHandler: '', allowedUnsafeSysctls: [], appArmor: host.appArmor }
    return preflightPod(pod.spec, facts) === undefined ? pod : undefined
  }

  /** Undefined: it started, and a command runs in it as whom its process does. */
  async function start(pod: Pod): Promise<string | undefined> {
    const [container] = pod.spec.containers
    if (container === undefined) throw new Error('no container')
    const image = (await client.images.imageStatus({ image: { image: container.image } })).image
    if (image === null) throw new Error(`no image ${container.image}`)
    const imageUser = imageUserOf(image)
    const effective = effectiveSecurityContext(pod.spec.securityContext, container.securityContext)
    // It doesn't get as far as the runtime.
    if (runAsRootProblem(effective, imageUser) !== undefined) return undefined
    const uid = `uid-${pod.metadata.name}`
    const resources = {
      cgroupVersion: host.cgroups?.version ?? 1,
      memoryCapacityBytes: host.memoryBytes,
      minOomScoreAdj: host.minOomScoreAdj,
      cpuCfsQuota: true,
      cpuCfsQuotaPeriodUs: 100_000,
      swapController: host.swapController,
      swapBytes: 0,
      oomKillsGroup: true,
      hugePageSizes: host.hugePageSizes,
    } as const
    const userRange = pod.spec.hostUsers === false ? { firstId: 1_048_576, length: 65_536 } : undefined
    const shared = { pod, uid, instance: 'test', resources, userRange }
    const sandboxConfig = toSandboxConfig({
      ...shared,
      attempt: 0,
      manifestHash: 'v1',
      cgroupParent: `${rig.cgroupParent}/${uid}`,
      logDirectory: join(rig.dir, 'logs', uid),
      dns: { servers: [], searches: [], options: [] },
    })
    let podSandboxId = ''
    try {
      podSandboxId = (await client.runtime.runPodSandbox({ config: sandboxConfig })).podSandboxId
      const config = toContainerConfig({
        ...shared,
        container,
        restartCount: 0,
        specHash: 'v1',
        imageRef: image.id,
        imageUser,
        environment: new Map(),
        command: { command: container.command, args: container.args },
        mounts: [],
        security: { seccompRoot: '/nowhere', seccompDefault: false, appArmor: host.appArmor },
      })
      const { containerId } = await client.runtime.createContainer({ podSandboxId, config, sandboxConfig })
      await client.runtime.startContainer({ containerId })
      const { stdout, stderr } = await client.runtime.execSync({
        containerId,
        cmd: ['sh', '-c', 'id -u; id -g'],
        timeout: 30,
      })
      const said = `${Buffer.from(stdout).toString()}${Buffer.from(stderr).toString()}`
      const user = effective.runAsUser ?? imageUser.uid ?? 65_534
      const group = effective.runAsGroup
      return new RegExp(`^${user}\n${group ?? String.raw`\d+`}\n$`).test(said)
        ? undefined
        : `not ${user} ${group ?? ''}: ${said}`
    } catch (error) {
      return error instanceof Error ? `${error.message} ${String(error.cause)}` : String(error)
    } finally {
      if (podSandboxId !== '') {
        await client.runtime.stopPodSandbox({ podSandboxId })
        await client.runtime.removePodSandbox({ podSandboxId })
      }
    }
  }

  const timeoutMs = 300_000 * slowness

  it(
    `starts with every ${isNightly ? 'pair of values' : 'value'} of the fields of security contexts that validation and admission take`,
    async () => {
      const random = seededRandom(Number(process.env['PODD_SECURITY_SEED'] ?? 1))
      const isLegal = async (choice: Choice): Promise<boolean> =>
        (await admitted(manifestOf(choice, 'pod'))) !== undefined
      const choices = [...(await cover(random, isLegal, isNightly ? eachPair : eachValue))]
      const more = Number(process.env['PODD_SECURITY_CONTEXTS'] ?? 0)
      for (const wanted = choices.length + more; choices.length < wanted;) {
        const choice = anyChoice(random)
        if (await isLegal(choice)) choices.push(choice)
      }
      const failures: string[] = []
      for (const [index, choice] of choices.entries()) {
        const manifest = manifestOf(choice, `pod-${index}`)
        const pod = await admitted(manifest)
        const failure = pod === undefined ? 'not admitted' : await start(pod)
        if (failure !== undefined) failures.push(`${failure}: ${JSON.stringify(manifest['spec'])}`)
      }
      process.stdout.write(`${choices.length} security contexts on containerd ${install.version}\n`)
      expect(choices.length).toBeGreaterThan(isNightly ? 20 : 4)
      expect(failures).toEqual([])
    },
    timeoutMs,
  )

  it(
    'takes the values of sysctls that validation takes, and refuses those that it refuses',
    { tags: ['nightly'], timeout: timeoutMs },
    async () => {
      const run = async (name: string, value: string): Promise<boolean> => {
        const uid = `uid-sysctl-${(count += 1)}`
        try {
          const { podSandboxId } = await client.runtime.runPodSandbox({
            config: {
              metadata: { name: uid, namespace: 'default', uid, attempt: 0 },
              hostname: 'box',
              logDirectory: join(rig.dir, 'logs', uid),
              linux: { cgroupParent: `${rig.cgroupParent}/${uid}`, sysctls: { [name]: value } },
            },
          })
          await client.runtime.stopPodSandbox({ podSandboxId })
          await client.runtime.removePodSandbox({ podSandboxId })
          return true
        } catch {
          // The kernel refused it.
          return false
        }
      }
      let count = 0
      const verdicts: string[] = []
      const expected: string[] = []
      for (const [name, values] of Object.entries(sysctlValues)) {
        for (const value of values) {
          verdicts.push(`${name}=${value}: ${await run(name, value)}`)
          expected.push(`${name}=${value}: ${sysctlValueProblem(name, value) === undefined}`)
        }
      }
      expect(expected).toEqual(verdicts)
    },
  )
}

/** Of each sysctl, values at and beyond what it takes. */
const sysctlValues: Readonly<Record<string, readonly string[]>> = {
  'kernel.shm_rmid_forced': ['0', '1', '2', '-1', 'x', '', ' 1 '],
  'net.ipv4.ip_local_port_range': ['2000 3000', '2000', '3000 2000', '2000 65536', 'a b'],
  'net.ipv4.ip_local_reserved_ports': ['8080', '8080,9000-9100', '', '9-8', '65536', 'x'],
  'net.ipv4.ip_unprivileged_port_start': ['0', '32768', '65536', '-1', 'x'],
  'net.ipv4.ping_group_range': ['0 2147483647', '1 0', '0 -1', 'x'],
  'net.ipv4.tcp_fin_timeout': ['30', '-5', 'x', '99999999999'],
  'net.ipv4.tcp_keepalive_intvl': ['30', 'x'],
  'net.ipv4.tcp_keepalive_probes': ['9', '255', '256', '-1', 'x'],
  'net.ipv4.tcp_keepalive_time': ['7200', 'x'],
  'net.ipv4.tcp_rmem': ['4096 131072 6291456', '4096', '0 1 1', 'x'],
  'net.ipv4.tcp_syncookies': ['0', '2', '3', '256', 'x'],
  'net.ipv4.tcp_wmem': ['4096 16384 4194304', '-1 1 1', 'x'],
}

const choice = chooseContainerds()

if (choice.kind === 'use') {
  describe.each(choice.installs)('a pod in containerd $version', cases)
} else {
  describe.skipIf(true)(`a pod in containerd (skipped: ${choice.reason})`, () => {
    it('needs a containerd', () => expect(choice.kind).toBe('use'))
  })
}
