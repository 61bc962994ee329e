import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { gatherHostFacts } from '../../../src/host/facts/gather-host-facts.ts'
import type { GatherOptions } from '../../../src/host/facts/gather-host-facts.ts'
import { systemHostProbe } from '../../../src/host/host-probe.ts'
import type { DiskSpace, HostProbe } from '../../../src/host/host-probe.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A host made of a few files and programs. */
interface FakeHost {
  readonly files: Readonly<Record<string, string | Buffer>>
  /** What the command lines print; one that isn't here fails. */
  readonly commands: Readonly<Record<string, string>>
  readonly programs: readonly string[]
  readonly disks: Readonly<Record<string, DiskSpace>>
}

const space: DiskSpace = {
  totalBytes: 1000,
  freeBytes: 500,
  totalInodes: 10,
  freeInodes: 5,
  readOnly: false,
}

const release = '6.1.0-13-arm64'

const debian: FakeHost = {
  files: {
    '/proc/sys/kernel/osrelease': `${release}\n`,
    '/proc/self/status': 'Name:\tnode\nCapEff:\t000001ffffffffff\n',
    '/proc/self/mountinfo':
      '30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n',
    '/proc/1/mountinfo': '25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n',
    '/etc/resolv.conf': 'search lan\nnameserver 192.0.2.53\n',
    '/sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory hugetlb pids rdma misc\n',
    '/proc/meminfo': 'MemTotal:        8000000 kB\nSwapTotal:       2097148 kB\n',
    '/run/systemd/system': '',
    '/sys/module/overlay': '',
    '/proc/sys/kernel/seccomp/actions_avail': 'kill',
    '/proc/self/ns/user': '',
    [`/boot/config-${release}`]:
      'CONFIG_BRIDGE=m\nCONFIG_VETH=m\nCONFIG_NETFILTER_XT_MATCH_COMMENT=y\nCONFIG_NETFILTER_XT_MATCH_MULTIPORT=m\n# CONFIG_OTHER is not set\n',
    [`/lib/modules/${release}/modules.dep`]:
      'kernel/net/bridge/bridge.ko.xz: kernel/net/llc/llc.ko.xz\nkernel/drivers/net/veth.ko.xz:\nkernel/net/netfilter/xt_multiport.ko.xz:\n',
    '/etc/pods': '',
  },
  programs: ['containerd', 'ctr', 'runc', 'iptables', 'timedatectl'],
  commands: {
    'containerd --version': 'containerd containerd.io 1.7.27 05044ec\n',
    'ctr --version': 'ctr containerd.io 1.7.27\n',
    'runc --version': 'runc version 1.2.5\nspec: 1.2.0\n',
    'iptables -w 5 -t nat -S': '-P PREROUTING ACCEPT\n',
    'iptables -w 5 -S FORWARD': '-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n',
    'iptables --version': 'iptables v1.8.9 (nf_tables)\n',
    'timedatectl show --property=NTPSynchronized --value': 'yes\n',
  },
  disks: { '/var/lib/podd': space, '/run/podd': space },
}

function fakeProbe(host: FakeHost): HostProbe {
  const read = (path: string): Buffer | undefined => {
    const file = host.files[path]
    return file === undefined ? undefined : Buffer.from(file)
  }
  return {
    readText: (path) => read(path)?.toString(),
    readBytes: read,
    exists: (path) => path in host.files,
    find: (program) => (host.programs.includes(program) ? `/usr/bin/${program}` : undefined),
    run: (path, args) => {
      const stdout = host.commands[[path.replace('/usr/bin/', ''), ...args].join(' ')]
      return Promise.resolve(
        stdout === undefined
          ? { exitCode: 1, stdout: '', stderr: 'Table does not exist\nmore\n' }
          : { exitCode: 0, stdout, stderr: '' },
      )
    },
    diskSpace: (path) => Promise.resolve(host.disks[path]),
  }
}

const options: GatherOptions = {
  clock: new ManualClock(),
  isRoot: true,
  rootDir: '/var/lib/podd',
  runDir: '/run/podd',
  podLogsDir: '/var/log/pods',
  manifestPath: '/etc/pods',
  cgroupDriver: 'auto',
  runtimeDriver: undefined,
  ociRuntimes: ['runc'],
  hostName: 'My_Pi',
  hostnameOverride: undefined,
  resolvConf: '/etc/resolv.conf',
}

const gather = (change: Partial<FakeHost> = {}, more: Partial<GatherOptions> = {}) =>
  gatherHostFacts(fakeProbe({ ...debian, ...change }), { ...options, ...more })

const without = <T>(record: Readonly<Record<string, T>>, ...keys: readonly string[]): Record<string, T> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))

describe('gatherHostFacts', () => {
  it('reads a Debian host', async () => {
    const facts = await gather()
    expect(facts).toEqual({
      isRoot: true,
      hasSystemd: true,
      kernelRelease: release,
      kernel: expect.any(Array) as unknown,
      programs: {
        containerd: { path: '/usr/bin/containerd', version: '1.7.27' },
        ctr: { path: '/usr/bin/ctr', version: '1.7.27' },
        ociRuntimes: [{ name: 'runc', program: { path: '/usr/bin/runc', version: '1.2.5' } }],
      },
      firewall: { kind: 'works', version: 'iptables v1.8.9 (nf_tables)', forwardPolicy: 'DROP' },
      cgroups: {
        version: 2,
        controllers: ['cpu', 'cpuset', 'hugetlb', 'io', 'memory', 'misc', 'pids', 'rdma'],
        hybridControllers: [],
        driver: 'systemd',
      },
      disks: [
        { purpose: 'images and state', path: '/var/lib/podd', ...space },
        { purpose: 'runtime files', path: '/run/podd', ...space },
      ],
      clock: { wallMs: options.clock.wallMs(), synchronized: true },
      canLowerOomScore: true,
      swapBytes: 2097148 * 1024,
      sharesRoot: true,
      name: { host: 'My_Pi', node: 'my-pi', isConfigured: false },
      resolver: { path: '/etc/resolv.conf', servers: ['192.0.2.53'], isUnreachable: false },
      manifests: { path: '/etc/pods', exists: true },
    })
    expect(facts.kernel.filter(({ present }) => present !== true)).toEqual([])
  })

  it('reads a host with a resolver of its own, private mounts and a configured name', async () => {
    const files = {
      ...debian.files,
      '/proc/1/mountinfo': '25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n',
      '/etc/resolv.conf': 'nameserver 127.0.0.1\n',
    }
    const more = { hostnameOverride: 'gate' }
    expect(await gather({ files }, more)).toMatchObject({
      sharesRoot: false,
      name: { host: 'My_Pi', node: 'gate', isConfigured: true },
      resolver: { servers: ['127.0.0.1'], isUnreachable: true },
    })
    const systemd = { ...files, '/run/systemd/resolve/resolv.conf': 'nameserver 192.0.2.1\n' }
    expect(await gather({ files: systemd }, { resolvConf: '' })).toMatchObject({ resolver: undefined })
    expect(await gather({ files: systemd })).toMatchObject({
      resolver: { servers: ['192.0.2.1'], isUnreachable: false },
    })
  })

  it.each<[string, Partial<FakeHost>, Record<string, unknown>]>([
    [
      'nothing installed',
      { programs: [] },
      {
        programs: {
          containerd: undefined,
          ctr: undefined,
          ociRuntimes: [{ name: 'runc', program: undefined }],
        },
      },
    ],
    ['no iptables', { programs: ['runc'] }, { firewall: { kind: 'missing' } }],
    [
      'no NAT table',
      { commands: without(debian.commands, 'iptables -w 5 -t nat -S') },
      { firewall: { kind: 'broken', message: 'Table does not exist' } },
    ],
    [
      'no CAP_SYS_RESOURCE',
      { files: { ...debian.files, '/proc/self/status': 'CapEff:\t000001fffeffffff\n' } },
      { canLowerOomScore: false },
    ],
    ['no cgroups', { files: without(debian.files, '/proc/self/mountinfo') }, { cgroups: undefined }],
    [
      'the hybrid layout',
      {
        files: {
          ...debian.files,
          '/sys/fs/cgroup/unified/cgroup.controllers': 'hugetlb misc\n',
          '/proc/self/mountinfo': `31 20 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
`,
        },
      },
      {
        cgroups: {
          version: 1,
          controllers: ['cpu', 'cpuacct'],
          hybridControllers: ['hugetlb', 'misc'],
          driver: 'cgroupfs',
        },
      },
    ],
    [
      'no systemd',
      { files: without(debian.files, '/run/systemd/system') },
      { hasSystemd: false, cgroups: { driver: 'cgroupfs' } },
    ],
    [
      'an unsynchronized clock',
      { commands: { ...debian.commands, 'timedatectl show --property=NTPSynchronized --value': 'no\n' } },
      { clock: { synchronized: false } },
    ],
    ['nobody who knows the time', { programs: [] }, { clock: { synchronized: undefined } }],
    ['no manifests', { files: without(debian.files, '/etc/pods') }, { manifests: { exists: false } }],
    ['no swap', { files: without(debian.files, '/proc/meminfo') }, { swapBytes: 0 }],
  ])('%s', async (_, change, expected) => {
    expect(await gather(change)).toMatchObject(expected)
  })

  it('looks for each OCI runtime of the config', async () => {
    const commands = { ...debian.commands, 'crun --version': 'crun version 1.8.1\ncommit: f8a096b\n' }
    const host = { programs: ['crun'], commands }
    const { programs } = await gather(host, { ociRuntimes: ['crun', '/opt/youki'] })
    expect(programs.ociRuntimes).toEqual([
      { name: 'crun', program: { path: '/usr/bin/crun', version: '1.8.1' } },
      { name: '/opt/youki', program: undefined },
    ])
  })

  it('lets only root look at the firewall', async () => {
    expect((await gather({}, { isRoot: false })).firewall).toEqual({ kind: 'unknown' })
  })

  it('takes the driver that is configured, else that of the runtime', async () => {
    expect((await gather({}, { runtimeDriver: 'cgroupfs' })).cgroups?.driver).toBe('cgroupfs')
    const both = await gather({}, { cgroupDriver: 'systemd', runtimeDriver: 'cgroupfs' })
    expect(both.cgroups?.driver).toBe('systemd')
  })
})

describe('kernel features', () => {
  const config = `/boot/config-${release}`
  const modules = `/lib/modules/${release}/modules.dep`

  it.each<[string, Record<string, string | Buffer>, boolean | undefined]>([
    ['a module that is installed', debian.files, true],
    ['a module whose files are gone', without(debian.files, modules), false],
    ['built in', { ...without(debian.files, modules), [config]: 'CONFIG_VETH=y\n' }, true],
    ['left out', { ...debian.files, [config]: '# CONFIG_VETH is not set\n' }, false],
    [
      'in a packed config',
      { ...without(debian.files, config), '/proc/config.gz': gzipSync('CONFIG_VETH=y\n') },
      true,
    ],
    ['no config, but the module', without(debian.files, config), true],
    ['no config, other modules', { ...without(debian.files, config), [modules]: 'kernel/fs/x.ko:\n' }, false],
    ['loaded', { ...without(debian.files, config, modules), '/sys/module/veth': '' }, true],
    ['nothing that tells', without(debian.files, config, modules), undefined],
  ])('veth: %s', async (_, files, expected) => {
    const { kernel } = await gather({ files })
    expect(kernel.find(({ name }) => name === 'veth')?.present).toBe(expected)
  })
})

describe('systemHostProbe', () => {
  it('looks at this host', async () => {
    const facts = await gatherHostFacts(systemHostProbe, { ...options, rootDir: '/no/such/directory' })
    expect(facts.kernelRelease).not.toBe('')
    expect(facts.disks[0]?.totalBytes).toBeGreaterThan(facts.disks[0]?.freeBytes ?? Infinity)
    expect(facts.cgroups?.controllers).toContain('memory')
    expect(systemHostProbe.readText('/no/such/file')).toBeUndefined()
    expect(await systemHostProbe.run('/no/such/program', [])).toBeUndefined()
    expect(await systemHostProbe.run('/bin/sh', ['-c', 'echo out; exit 3'])).toMatchObject({
      exitCode: 3,
      stdout: 'out\n',
    })
  })
})
