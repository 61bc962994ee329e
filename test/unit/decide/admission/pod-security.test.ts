import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { podSecurityProblem } from '../../../../src/decide/admission/pod-security.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { SecurityPolicy } from '../../../../src/pod/validation/security-policy.ts'

const open: SecurityPolicy = {
  level: 'privileged',
  allowedHostPaths: [],
  allowedCapabilities: [],
  allowedHostPorts: [],
  allowedRegistries: [],
}

const tame = {
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

function manifestOf({ spec, container }: { spec?: JsonObject; container?: JsonObject }): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'app', image: 'example.org/team/app:1', ...container }], ...spec },
  }
}

function problemOf(
  level: SecurityPolicy['level'],
  {
    spec = {},
    container = {},
    policy = {},
  }: { spec?: JsonObject; container?: JsonObject; policy?: Partial<SecurityPolicy> },
): string | undefined {
  const { spec: decoded } = podFromManifest(manifestOf({ spec, container }))
  return podSecurityProblem(decoded, { ...open, level, ...policy }, 'podSecurity.url')?.message
}

const hostPath = (path: string): JsonObject => ({ volumes: [{ name: 'v', hostPath: { path } }] })
const ports = (...hostPorts: number[]): JsonObject => ({
  ports: hostPorts.map((hostPort) => ({ containerPort: 80, hostPort })),
})
const security = (securityContext: JsonObject): JsonObject => ({ securityContext })

/** [what, the rule as Kubernetes names it, the part of the pod that breaks it] */
const breaksBaseline: readonly (readonly [string, string, Parameters<typeof problemOf>[1]])[] = [
  ['the host’s network', 'host namespaces (hostNetwork=true)', { spec: { hostNetwork: true } }],
  [
    'the host’s processes and IPC',
    'host namespaces (hostPID=true, hostIPC=true)',
    { spec: { hostPID: true, hostIPC: true } },
  ],
  [
    'privileged',
    'privileged (container "app" must not set securityContext.privileged=true)',
    { container: security({ privileged: true }) },
  ],
  [
    'a capability',
    'non-default capabilities (container "app" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
    { container: security({ capabilities: { add: ['CHOWN', 'CAP_SYS_ADMIN'] } }) },
  ],
  [
    'all capabilities',
    'non-default capabilities (container "app" must not include "ALL" in securityContext.capabilities.add)',
    { container: security({ capabilities: { add: ['cap_all'] } }) },
  ],
  ['a hostPath', 'hostPath volumes (volume "v" mounts /etc)', { spec: hostPath('/etc') }],
  ['a hostPort', 'hostPort (container "app" uses hostPort 80)', { container: ports(80) }],
  [
    'a probe of another host',
    'probe or lifecycle host',
    { container: { livenessProbe: { httpGet: { port: 80, host: '192.0.2.1' } } } },
  ],
  [
    'a hook to another host',
    'probe or lifecycle host',
    { container: { lifecycle: { preStop: { httpGet: { port: 80, host: '192.0.2.1' } } } } },
  ],
  ['an unmasked /proc', 'procMount', { container: security({ procMount: 'Unmasked' }) }],
  [
    'no seccomp',
    'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    { spec: security({ seccompProfile: { type: 'Unconfined' } }) },
  ],
  [
    'no AppArmor',
    'appArmorProfile (container "app" must not set',
    { container: security({ appArmorProfile: { type: 'Unconfined' } }) },
  ],
  [
    'an SELinux type',
    'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set)',
    { spec: security({ seLinuxOptions: { type: 'spc_t', user: 'u' } }) },
  ],
  [
    'an unsafe sysctl',
    'forbidden sysctls (kernel.msgmax)',
    { spec: security({ sysctls: [{ name: 'kernel/msgmax', value: '1' }] }) },
  ],
]

const breaksRestricted: typeof breaksBaseline = [
  ['root possible', 'runAsNonRoot != true', { container: security({ ...tame, runAsNonRoot: false }) }],
  [
    'root',
    'runAsUser=0 (container "app" must not set runAsUser=0)',
    { container: security({ ...tame, runAsUser: 0 }) },
  ],
  [
    'escalation possible',
    'allowPrivilegeEscalation != false',
    { container: security({ ...tame, allowPrivilegeEscalation: true }) },
  ],
  [
    'capabilities kept',
    'must set securityContext.capabilities.drop=["ALL"]',
    { container: security({ ...tame, capabilities: { drop: ['NET_RAW'] } }) },
  ],
  [
    'a harmless capability',
    'must not include anything but "NET_BIND_SERVICE"',
    { container: security({ ...tame, capabilities: { drop: ['ALL'], add: ['CHOWN'] } }) },
  ],
  ['no seccomp profile', 'seccompProfile', { container: security({ ...tame, seccompProfile: null }) }],
]

describe('podSecurityProblem', () => {
  it.each(breaksBaseline)('at baseline refuses %s', (_, rule, pod) => {
    const problem = problemOf('baseline', pod)
    expect(problem).toContain(`forbidden: violates PodSecurity "baseline:latest": ${rule}`)
    expect(problem).toMatch(
      /Allowed by (?:a lower podSecurity\.url\.level|podSecurity\.url\.allowed\w+: \[)/u,
    )
    expect(problemOf('privileged', pod)).toBeUndefined()
    expect(problemOf('restricted', pod)).toContain(rule)
  })

  it.each(breaksRestricted)('at restricted refuses %s', (_, rule, pod) => {
    expect(problemOf('restricted', pod)).toContain(rule)
    expect(problemOf('baseline', pod)).toBeUndefined()
  })

  it.each<['baseline' | 'restricted', JsonObject, string | undefined]>([
    ['baseline', { procMount: 'Unmasked' }, undefined],
    ['restricted', { ...tame, procMount: 'Unmasked' }, 'procMount'],
    ['restricted', { ...tame, runAsNonRoot: false, runAsUser: 0 }, undefined],
    ['baseline', { privileged: true }, 'privileged'],
  ])('at %s takes of a pod with users of its own %j: %s', (level, context, rule) => {
    const problem = problemOf(level, { spec: { hostUsers: false }, container: security(context) })
    expect(problem === undefined ? undefined : problem.includes(`: ${rule} (`)).toBe(
      rule === undefined ? undefined : true,
    )
  })

  it('lets in what keeps a level', () => {
    expect(problemOf('baseline', {})).toBeUndefined()
    expect(problemOf('restricted', { container: security(tame) })).toBeUndefined()
    const pod = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }
    const own = {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
    }
    expect(problemOf('restricted', { spec: security(pod), container: security(own) })).toBeUndefined()
  })

  it.each(['ALL', 'all', 'CAP_ALL', 'cap_all'])('takes %s dropped for what the runtime then drops', (all) => {
    const container = security({
      ...tame,
      capabilities: { drop: [all], add: ['CAP_NET_BIND_SERVICE', 'net_bind_service'] },
    })
    expect(problemOf('restricted', { container })).toBeUndefined()
    const { spec } = podFromManifest(manifestOf({ container }))
    expect(spec.containers[0]?.securityContext?.capabilities?.drop).toEqual(['ALL'])
  })

  it.each<[string, Parameters<typeof problemOf>[1], boolean]>([
    ['a directory', { spec: hostPath('/srv/data'), policy: { allowedHostPaths: ['/srv/'] } }, true],
    ['the directory itself', { spec: hostPath('/srv'), policy: { allowedHostPaths: ['/srv'] } }, true],
    ['not one beside it', { spec: hostPath('/srvx'), policy: { allowedHostPaths: ['/srv'] } }, false],
    [
      'not one that climbs out',
      { spec: hostPath('/srv/../etc'), policy: { allowedHostPaths: ['/srv'] } },
      false,
    ],
    ['a range of ports', { container: ports(8000, 8099), policy: { allowedHostPorts: ['8000-8099'] } }, true],
    ['not a port beyond', { container: ports(8100), policy: { allowedHostPorts: ['8000-8099'] } }, false],
    ['any port', { container: ports(1), policy: { allowedHostPorts: ['*'] } }, true],
    [
      'a capability',
      {
        container: security({ capabilities: { add: ['NET_ADMIN'] } }),
        policy: { allowedCapabilities: ['CAP_NET_ADMIN'] },
      },
      true,
    ],
    [
      'not another',
      {
        container: security({ capabilities: { add: ['SYS_ADMIN'] } }),
        policy: { allowedCapabilities: ['NET_ADMIN'] },
      },
      false,
    ],
  ])('excepts %s', (_, pod, isAllowed) => {
    expect(problemOf('baseline', pod) === undefined).toBe(isAllowed)
  })

  it.each([
    ['example.org', true],
    ['example.org/team', true],
    ['example.org/team/', true],
    ['example.org/tea', false],
    ['docker.io', false],
  ])('holds images to the registry %s at any level', (registry, isAllowed) => {
    const problem = problemOf('privileged', { policy: { allowedRegistries: [registry] } })
    expect(problem).toBe(
      isAllowed
        ? undefined
        : 'forbidden: image registry (container "app" uses an image of example.org). Allowed by podSecurity.url.allowedRegistries: [example.org]',
    )
  })

  it('holds images that are mounted as volumes to the registries, too', () => {
    const volumes = [{ name: 'model', image: { reference: 'evil.example/model:1' } }]
    const policy = { allowedRegistries: ['example.org'] }
    expect(problemOf('privileged', { spec: { volumes }, policy })).toBe(
      'forbidden: image registry (volume "model" uses an image of evil.example). Allowed by podSecurity.url.allowedRegistries: [evil.example]',
    )
    const own = [{ name: 'model', image: { reference: 'example.org/model:1' } }]
    expect(problemOf('privileged', { spec: { volumes: own }, policy })).toBeUndefined()
  })

  it('takes the names of images as the runtime does', () => {
    const container = { image: 'busybox' }
    expect(
      problemOf('privileged', { container, policy: { allowedRegistries: ['docker.io/library'] } }),
    ).toBeUndefined()
    expect(
      problemOf('privileged', { container, policy: { allowedRegistries: ['docker.io/own'] } }),
    ).toBeDefined()
  })
})

describe('the volumes of a pod', () => {
  const problem = (volume: JsonObject) =>
    problemOf('restricted', {
      spec: { volumes: [{ name: 'v', ...volume }] },
      container: { securityContext: tame },
    })

  it.each<JsonObject>([
    { configMap: { name: 'c' } },
    { emptyDir: {} },
    { secret: { secretName: 's' } },
    { projected: { sources: [] } },
    { persistentVolumeClaim: { claimName: 'c' } },
    { downwardAPI: { items: [] } },
  ])('may be %j at restricted', (volume) => {
    expect(problem(volume)).toBeUndefined()
  })

  it('may not be an image at restricted, which is named with its kind', () => {
    expect(problem({ image: { reference: 'i' } })).toContain(
      'restricted volume types (volume "v" uses restricted volume type "image")',
    )
  })

  it('are told once where one is of the host, at the level that is about that', () => {
    const told = problem({ hostPath: { path: '/etc' } })
    expect(told).toContain('hostPath volumes')
    expect(told).not.toContain('restricted volume types')
  })
})

it('allows images of any of several registries, and host paths below any part of one that is allowed', () => {
  const allowed = {
    allowedRegistries: ['example.com', 'example.org/team'],
    allowedHostPaths: ['/data/a', '/srv'],
  }
  const mounting = (path: string) => problemOf('baseline', { spec: hostPath(path), policy: allowed })
  expect(mounting('/data/a/b')).toBeUndefined()
  expect(mounting('/data/b')).toContain('hostPath volumes')
  expect(mounting('/other/a')).toContain('hostPath volumes')
})
