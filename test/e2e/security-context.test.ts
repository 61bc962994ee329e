import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { formatOciArchive } from '../../src/images/sandbox-image.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellImage } from '../support/oci-image.ts'
import { proves } from '../support/proves.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'

/** What one container finds out about itself, as `key=value` lines. */
const introspection = [
  'echo uid=$(id -u)',
  'echo gid=$(id -g)',
  'echo groups=$(id -G)',
  "sed -n 's/^\\(CapEff\\|CapBnd\\|NoNewPrivs\\|Seccomp\\):[\\t ]*/\\1=/p' /proc/self/status",
  'echo sysfs=$(grep " /sys " /proc/mounts | cut -d" " -f4 | cut -d, -f1)',
  'echo rootfs=$(grep " / " /proc/mounts | cut -d" " -f4 | cut -d, -f1)',
  'echo masked=$(grep -c " /proc/\\(kcore\\|keys\\|timer_list\\) " /proc/mounts)',
  'echo procsys=$(grep " /proc/sys " /proc/mounts | cut -d" " -f4 | cut -d, -f1)',
]

function script(file: string): string {
  return `{ ${introspection.join('; ')}; } > /shared/${file}.new 2>&1; mv /shared/${file}.new /shared/${file}; say done; stay`
}

async function factsOf(podd: PoddRig, file: string): Promise<Readonly<Record<string, string>>> {
  const lines = await podd.until(`facts of ${file}`, () => {
    const found = podd.lines(file)
    return found.length > 0 ? found : undefined
  })
  return Object.fromEntries(
    lines.map((line) => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)]),
  )
}

type Fields = Readonly<Record<string, unknown>>

/** Runs a container with these settings to its first words, and gives what it found. */
async function introspect(podd: PoddRig, name: string, pod: Fields, container: Fields) {
  podd.drop(
    name,
    shellPod(name, podd.shared, script(`${name}-facts`), {
      spec: pod,
      container: Object.keys(container).length === 0 ? {} : { securityContext: container },
    }),
  )
  const facts = await factsOf(podd, `${name}-facts`)
  podd.removeManifest(name)
  await podd.untilGone(name)
  return facts
}

const netRaw = 1n << 13n
const netAdmin = 1n << 12n
const chown = 1n
const sysTime = 1n << 25n
const bits = (hex: string | undefined): bigint => BigInt(`0x${hex ?? '0'}`)

describePodd('security context', {}, (rig) => {
  it.concurrent('runs as root with the runtime’s capabilities where nothing is said', async () => {
    const facts = await introspect(rig(), 'plain', {}, {})
    expect(facts).toMatchObject({
      uid: '0',
      gid: '0',
      NoNewPrivs: '0',
      Seccomp: '0',
      rootfs: 'rw',
      sysfs: 'ro',
      procsys: 'ro',
    })
    expect(bits(facts['CapEff']) & chown).toBe(chown)
    expect(bits(facts['CapEff']) & netAdmin).toBe(0n)
    expect(Number(facts['masked'])).toBeGreaterThan(0)
  })

  it.concurrent(
    'takes users and groups of the pod, and the container’s before them',
    proves(
      'users-and-groups',
      'PodSpec: securityContext',
      'PodSecurityContext: runAsUser runAsGroup fsGroup supplementalGroups',
      'Container: securityContext',
      'SecurityContext: runAsUser runAsGroup',
    ),
    async () => {
      const podd = rig()
      chmodSync(podd.shared, 0o777)
      const spec = {
        securityContext: {
          runAsUser: 1001,
          runAsGroup: 2001,
          fsGroup: 3001,
          supplementalGroups: [4001, 4002],
        },
      }
      podd.drop(
        'users',
        podOf(
          'users',
          podd.shared,
          [
            shellContainer('pods', 'users', script('users-pods')),
            shellContainer('own', 'users', script('users-own'), {
              securityContext: { runAsUser: 1002, runAsGroup: 2002 },
            }),
          ],
          { spec },
        ),
      )
      const pods = await factsOf(podd, 'users-pods')
      const own = await factsOf(podd, 'users-own')
      const groups = (facts: Readonly<Record<string, string>>) =>
        facts['groups']?.split(' ').map(Number).sort()
      expect(pods).toMatchObject({ uid: '1001', gid: '2001' })
      expect(groups(pods)).toEqual([2001, 3001, 4001, 4002])
      expect(own).toMatchObject({ uid: '1002', gid: '2002' })
      expect(groups(own)).toEqual([2002, 3001, 4001, 4002])
      expect(bits(pods['CapEff'])).toBe(0n)
      podd.removeManifest('users')
      await podd.untilGone('users')
    },
  )

  it.concurrent(
    'holds back a root image that must not run as root, and says why',
    proves('run-as-non-root', 'SecurityContext: runAsNonRoot'),
    async () => {
      const podd = rig()
      podd.drop(
        'non-root',
        shellPod('non-root', podd.shared, 'say ran; stay', {
          container: { securityContext: { runAsNonRoot: true } },
        }),
      )
      const pod = await podd.untilPod(
        'non-root',
        'its refusal',
        ({ status }) => status.containerStatuses?.[0]?.state.waiting?.reason === 'CreateContainerConfigError',
      )
      expect(containerOf(pod, 'main').state.waiting?.message).toBe(
        'container has runAsNonRoot and image will run as root',
      )
      podd.drop(
        'non-root',
        shellPod('non-root', podd.shared, 'say ran; stay', {
          container: { securityContext: { runAsNonRoot: true, runAsUser: 7 } },
        }),
      )
      await podd.untilReady('non-root')
      podd.removeManifest('non-root')
      await podd.untilGone('non-root')
    },
  )

  it.concurrent.each<[string, Fields, Fields, (facts: Readonly<Record<string, string>>) => void]>([
    [
      'privileged',
      {},
      { privileged: true },
      (facts) => {
        expect(facts).toMatchObject({ masked: '0', procsys: '' })
        expect(bits(facts['CapEff']) & netAdmin).toBe(netAdmin)
      },
    ],
    [
      'no-escalation',
      {},
      { allowPrivilegeEscalation: false },
      (facts) => expect(facts['NoNewPrivs']).toBe('1'),
    ],
    ['escalation', {}, { allowPrivilegeEscalation: true }, (facts) => expect(facts['NoNewPrivs']).toBe('0')],
    [
      'capabilities',
      {},
      { capabilities: { add: ['NET_ADMIN'], drop: ['NET_RAW', 'CHOWN'] } },
      (facts) => expect(bits(facts['CapEff']) & (netRaw | netAdmin | chown)).toBe(netAdmin),
    ],
    [
      'no-capabilities',
      {},
      { capabilities: { drop: ['ALL'] } },
      (facts) => {
        expect(bits(facts['CapEff'])).toBe(0n)
        expect(bits(facts['CapBnd'])).toBe(0n)
      },
    ],
    ['read-only', {}, { readOnlyRootFilesystem: true }, (facts) => expect(facts['rootfs']).toBe('ro')],
    [
      'seccomp-default',
      { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
      {},
      (facts) => expect(facts['Seccomp']).toBe('2'),
    ],
    [
      'seccomp-unconfined',
      { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
      { seccompProfile: { type: 'Unconfined' } },
      (facts) => expect(facts['Seccomp']).toBe('0'),
    ],
    [
      'selinux',
      { securityContext: { seLinuxOptions: { level: 's0:c1,c2' } } },
      { seLinuxOptions: { user: 'system_u', role: 'system_r', type: 'spc_t', level: 's0:c1,c2' } },
      (facts) => expect(facts['uid']).toBe('0'),
    ],
    [
      'pod-non-root',
      { securityContext: { runAsNonRoot: true, runAsUser: 7 } },
      {},
      (facts) => expect(facts['uid']).toBe('7'),
    ],
    [
      'proc-default',
      {},
      { procMount: 'Default' },
      (facts) => expect(Number(facts['masked'])).toBeGreaterThan(0),
    ],
  ])(
    'gives a container what it asks for: %s',
    proves(
      'privileges',
      'PodSecurityContext: runAsNonRoot seccompProfile seLinuxOptions',
      'SecurityContext: privileged allowPrivilegeEscalation capabilities readOnlyRootFilesystem procMount seLinuxOptions seccompProfile',
      'SeccompProfile: type',
      'SELinuxOptions: user role type level',
    ),
    async (name, pod, container, check) => {
      chmodSync(rig().shared, 0o777)
      const facts = await introspect(rig(), name, pod, container)
      expect(facts).toHaveProperty('uid')
      check(facts)
    },
  )

  it.concurrent(
    'knows a capability by each of its spellings',
    proves('capabilities', 'Capabilities: add drop'),
    async () => {
      const podd = rig()
      const spellings = ['NET_ADMIN', 'net_admin', 'CAP_NET_ADMIN', 'cap_net_admin']
      const drops = ['CHOWN', 'chown', 'CAP_CHOWN', 'cap_chown']
      const wholes = ['ALL', 'all', 'CAP_ALL', 'cap_all']
      const cases = spellings.flatMap((add, at) => {
        const [drop = '', all = ''] = [drops[at], wholes[at]]
        return [
          { name: `one-${at}`, capabilities: { add: [add], drop: [drop] } },
          { name: `only-${at}`, capabilities: { add: [add], drop: [all] } },
          { name: `every-${at}`, capabilities: { add: [all], drop: [drop] } },
        ]
      })
      const containers = cases.map(({ name, capabilities }) =>
        shellContainer(name, 'spellings', script(`spellings-${name}`), { securityContext: { capabilities } }),
      )
      podd.drop('spellings', podOf('spellings', podd.shared, containers))
      for (const at of spellings.keys()) {
        const effective = async (kind: string): Promise<bigint> =>
          bits((await factsOf(podd, `spellings-${kind}-${at}`))['CapEff'])
        const one = await effective('one')
        expect(one & (netAdmin | netRaw | chown)).toBe(netAdmin | netRaw)
        expect(await effective('only')).toBe(netAdmin)
        const every = await effective('every')
        expect(every & (netAdmin | sysTime | chown)).toBe(netAdmin | sysTime)
      }
      podd.removeManifest('spellings')
      await podd.untilGone('spellings')
    },
  )

  it.concurrent(
    'filters calls by a seccomp profile of the host’s',
    proves('seccomp-profile', 'SeccompProfile: localhostProfile'),
    async () => {
      const podd = rig()
      const directory = join(podd.rootDir, 'seccomp/profiles')
      mkdirSync(directory, { recursive: true })
      const syscalls = [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO' }]
      writeFileSync(
        join(directory, 'no-mkdir.json'),
        JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls }),
      )
      const seccompProfile = { type: 'Localhost', localhostProfile: 'profiles/no-mkdir.json' }
      podd.drop(
        'local-seccomp',
        shellPod('local-seccomp', podd.shared, 'mkdir /tmp/no 2>/dev/null && say made || say refused; stay', {
          container: { securityContext: { seccompProfile } },
        }),
      )
      expect((await podd.untilLine('local-seccomp', / (?:made|refused)$/u)).at(-1)).toMatch(/ refused$/u)
      podd.removeManifest('local-seccomp')
      await podd.untilGone('local-seccomp')
    },
  )

  it.concurrent(
    'sets safe sysctls and refuses others',
    proves('sysctls', 'PodSecurityContext: sysctls', 'Sysctl: name value'),
    async () => {
      const podd = rig()
      const sysctls = [
        { name: 'net.ipv4.ip_unprivileged_port_start', value: '80' },
        { name: 'kernel/shm_rmid_forced', value: '1' },
      ]
      const read =
        'say $(cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced); stay'
      podd.drop('sysctls', shellPod('sysctls', podd.shared, read, { spec: { securityContext: { sysctls } } }))
      await podd.untilLine('sysctls', / 80 1$/u)
      const unsafe = [{ name: 'net.core.somaxconn', value: '1024' }]
      podd.drop(
        'unsafe',
        shellPod('unsafe', podd.shared, read, { spec: { securityContext: { sysctls: unsafe } } }),
      )
      const pod = await podd.untilPod('unsafe', 'a reason', ({ status }) => status.reason !== undefined)
      expect(pod.status).toMatchObject({
        phase: 'Pending',
        reason: 'SysctlForbidden',
        message: expect.stringContaining('forbidden sysctl: "net.core.somaxconn" not allowlisted'),
      })
      for (const name of ['sysctls', 'unsafe']) podd.removeManifest(name)
      await podd.untilGone('sysctls')
    },
  )

  it.concurrent(
    'refuses AppArmor profiles on a host without AppArmor',
    proves(
      'app-armor',
      'PodSecurityContext: appArmorProfile',
      'SecurityContext: appArmorProfile',
      'AppArmorProfile: type localhostProfile',
    ),
    async () => {
      const podd = rig()
      const spec = {
        securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'none-such' } },
      }
      podd.drop('apparmor', shellPod('apparmor', podd.shared, 'stay', { spec }))
      const pod = await podd.untilPod(
        'apparmor',
        'a refusal',
        ({ status }) =>
          status.reason !== undefined ||
          status.containerStatuses?.[0]?.state.waiting?.reason === 'CreateContainerError',
      )
      expect(pod.status.reason ?? 'AppArmor').toBe('AppArmor')
      podd.removeManifest('apparmor')
      await podd.untilGone('apparmor')
    },
  )

  // id: sandbox-seccomp
  // Alone: no other sandbox is made while the profile is away.
  it('confines the sandbox’s own process, with podd’s profile or the runtime’s', async () => {
    const podd = rig()
    const { sandboxSeccompPath } = containerdPlaces(podd.rootDir, podd.runDir)
    const { architectures } = JSON.parse(readFileSync(sandboxSeccompPath, 'utf8'))
    expect(architectures).toHaveLength(1)
    const confinement = 'say $(sed -n "s/^Seccomp:[^0-9]*//p" /proc/1/status)'
    const spec = { shareProcessNamespace: true }
    podd.drop('own', shellPod('own', podd.shared, `${confinement}; stay`, { spec }))
    await podd.untilLine('own', / 2$/u)
    const profile = readFileSync(sandboxSeccompPath)
    rmSync(sandboxSeccompPath)
    podd.drop('default', shellPod('default', podd.shared, `${confinement}; stay`, { spec }))
    await podd.untilLine('default', / 2$/u)
    writeFileSync(sandboxSeccompPath, profile)
    for (const name of ['own', 'default']) podd.removeManifest(name)
    for (const name of ['own', 'default']) await podd.untilGone(name)
  })
})

describePodd('the user of an image', {}, (rig) => {
  const numbered = 'localhost/podd-test/user:1001'
  const named = 'localhost/podd-test/user:nobody'

  it('counts where the pod names none, and must be a number for runAsNonRoot', async () => {
    const podd = rig()
    chmodSync(podd.shared, 0o777)
    const archive = join(podd.directory, 'users.tar')
    writeFileSync(archive, formatOciArchive(shellImage(numbered, '1001'), shellImage(named, 'nobody')))
    await podd.cliOk('images', 'import', archive)
    const pod = (name: string, image: string, securityContext: Fields) =>
      shellPod(name, podd.shared, script(`${name}-facts`), { container: { image, securityContext } })
    podd.drop('by-number', pod('by-number', numbered, { runAsNonRoot: true }))
    podd.drop('by-name', pod('by-name', named, {}))
    podd.drop('not-known', pod('not-known', named, { runAsNonRoot: true }))
    expect(await factsOf(podd, 'by-number-facts')).toMatchObject({ uid: '1001' })
    expect(await factsOf(podd, 'by-name-facts')).toMatchObject({ uid: '65534', gid: '65534' })
    const refused = await podd.untilPod(
      'not-known',
      'its refusal',
      ({ status }) => status.containerStatuses?.[0]?.state.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(containerOf(refused, 'main').state.waiting?.message).toBe(
      'container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root',
    )
    for (const name of ['by-number', 'by-name', 'not-known']) podd.removeManifest(name)
    await podd.untilGone('not-known')
  })
})

describePodd('processes', {}, (rig) => {
  const script = (name: string): string => `say ${name} $(cat /proc/1/comm); stay`

  it.concurrent(
    'of a container are seen by an ephemeral container that targets it, and by it alone',
    proves(
      'ephemeral-target',
      'PodSpec: ephemeralContainers',
      'EphemeralContainer: name image command targetContainerName',
    ),
    async () => {
      const podd = rig()
      const ephemeralContainers = [
        shellContainer('watcher', 'targets', 'say watcher $(cat /proc/1/comm) $(pidof sleep | wc -w); stay', {
          targetContainerName: 'main',
        }),
      ]
      podd.drop(
        'targets',
        shellPod('targets', podd.shared, 'sleep 1000000 & say main up; stay', {
          spec: { ephemeralContainers },
        }),
      )
      const lines = await podd.untilLine('targets', / watcher /u)
      expect(lines.find((line) => line.includes('watcher'))).toMatch(/ watcher sh [1-9]\d*$/u)
      podd.removeManifest('targets')
      await podd.untilGone('targets')
    },
  )

  it.concurrent(
    'are one tree under shareProcessNamespace, and each their own without',
    proves('share-process-namespace', 'PodSpec: shareProcessNamespace'),
    async () => {
      const podd = rig()
      podd.drop(
        'shared-pid',
        shellPod('shared-pid', podd.shared, script('shared'), { spec: { shareProcessNamespace: true } }),
      )
      podd.drop('own-pid', shellPod('own-pid', podd.shared, script('own')))
      expect((await podd.untilLine('own-pid', / own /u)).at(0)).toMatch(/ own sh$/u)
      expect((await podd.untilLine('shared-pid', / shared /u)).at(0)).not.toMatch(/ sh$/u)
      for (const name of ['shared-pid', 'own-pid']) podd.removeManifest(name)
      await podd.untilGone('shared-pid')
    },
  )
})

describePodd(
  'security options',
  { config: { seccompDefault: true, allowedUnsafeSysctls: ['net.core.*'] } },
  (rig) => {
    it.concurrent('confines containers that name no profile under seccompDefault', async () => {
      expect(await introspect(rig(), 'confined', {}, {})).toMatchObject({ Seccomp: '2' })
      expect(
        await introspect(rig(), 'unconfined', {}, { seccompProfile: { type: 'Unconfined' } }),
      ).toMatchObject({
        Seccomp: '0',
      })
    })

    it.concurrent('sets unsafe sysctls that the host’s config allows', async () => {
      const podd = rig()
      const sysctls = [{ name: 'net.core.somaxconn', value: '1234' }]
      podd.drop(
        'tuned',
        shellPod('tuned', podd.shared, 'say $(cat /proc/sys/net/core/somaxconn); stay', {
          spec: { securityContext: { sysctls } },
        }),
      )
      await podd.untilLine('tuned', / 1234$/u)
      podd.drop(
        'on-host',
        shellPod('on-host', podd.shared, 'stay', {
          spec: { hostNetwork: true, securityContext: { sysctls } },
        }),
      )
      const note = await podd.untilNote(/on-host\.yaml/u)
      expect(note).toContain(`"net.core.somaxconn": may not be specified when 'hostNetwork' is true`)
      expect(await podd.findPod('on-host')).toBeUndefined()
      for (const name of ['tuned', 'on-host']) podd.removeManifest(name)
      await podd.untilGone('tuned')
    })
  },
)
