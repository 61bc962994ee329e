import { describe, expect, it } from 'vitest'
import { checkHost } from '../../../../src/decide/doctor/doctor-checks.ts'
import type { DoctorFinding } from '../../../../src/decide/doctor/doctor-finding.ts'
import type {
  DiskFacts,
  EmbeddedRuntimeFacts,
  ExternalRuntimeFacts,
  HostFacts,
} from '../../../../src/decide/doctor/host-facts.ts'

const gibibyte = 1024 ** 3

const embedded: EmbeddedRuntimeFacts = {
  kind: 'embedded',
  pid: undefined,
  answers: false,
  failure: undefined,
  cniDirectories: [{ path: '/usr/lib/cni', missing: [], hasAny: true }],
  pauseProgram: '/usr/bin/catatonit',
  registryHosts: { directory: '/etc/podd/certs.d', registries: 0, problems: [] },
  subnet: '10.86.0.0/24',
  newerVersion: undefined,
  networkFaults: '',
}

const external: ExternalRuntimeFacts = {
  kind: 'external',
  endpoint: 'unix:///run/containerd/containerd.sock',
  failure: undefined,
  name: 'containerd',
  version: '1.7.27',
  conditions: [
    { type: 'RuntimeReady', status: true, message: '' },
    { type: 'NetworkReady', status: true, message: '' },
  ],
  cniConfDir: '/etc/cni/net.d',
  cniPluginDirs: ['/opt/cni/bin'],
  cgroupDriver: 'systemd',
  sandboxImage: { name: 'registry.k8s.io/pause:3.8', present: true },
}

const disk: DiskFacts = {
  purpose: 'images and state',
  path: '/var/lib/podd',
  totalBytes: 100 * gibibyte,
  freeBytes: 50 * gibibyte,
  totalInodes: 1000,
  freeInodes: 900,
  readOnly: false,
}

/** A host with nothing to complain about. */
const sound: HostFacts = {
  isRoot: true,
  hasSystemd: true,
  kernelRelease: '6.1.0',
  kernel: [
    { name: 'overlayfs', purpose: 'layers', option: 'CONFIG_OVERLAY_FS', present: true },
    { name: 'user namespaces', purpose: 'hostUsers', option: 'CONFIG_USER_NS', present: true },
  ],
  programs: {
    containerd: { path: '/usr/bin/containerd', version: '1.6.20~ds1' },
    ctr: { path: '/usr/bin/ctr', version: '1.6.20~ds1' },
    ociRuntimes: [{ name: 'runc', program: { path: '/usr/sbin/runc', version: '1.1.5' } }],
  },
  firewall: { kind: 'works', version: 'iptables v1.8.9 (nf_tables)', forwardPolicy: 'ACCEPT' },
  cgroups: { version: 2, controllers: ['cpu', 'memory', 'pids'], hybridControllers: [], driver: 'systemd' },
  disks: [disk],
  clock: { wallMs: Date.UTC(2026, 5, 1), synchronized: true },
  canLowerOomScore: true,
  swapBytes: 0,
  sharesRoot: true,
  name: { host: 'Box', node: 'box', isConfigured: false },
  resolver: { path: '/etc/resolv.conf', servers: ['192.0.2.53'], isUnreachable: false },
  crash: undefined,
  holds: [],
  ports: [],
  runtime: embedded,
  manifests: { path: '/etc/pods', exists: true },
}

/** The findings that are not well. */
function complaints(change: Partial<HostFacts>): readonly DoctorFinding[] {
  return checkHost({ ...sound, ...change }).filter(({ status }) => status !== 'ok')
}

const withEmbedded = (change: Partial<EmbeddedRuntimeFacts>): Partial<HostFacts> => ({
  runtime: { ...embedded, ...change },
})
const withExternal = (change: Partial<ExternalRuntimeFacts>): Partial<HostFacts> => ({
  runtime: { ...external, ...change },
})
const withPrograms = (change: Partial<HostFacts['programs']>): Partial<HostFacts> => ({
  programs: { ...sound.programs, ...change },
})
const withDisk = (change: Partial<DiskFacts>): Partial<HostFacts> => ({ disks: [{ ...disk, ...change }] })
const notReady = (type: string, message: string): Partial<HostFacts> =>
  withExternal({
    conditions: external.conditions.map((condition) =>
      condition.type === type ? { type, status: false, message } : condition,
    ),
  })

/** The bounds of `eviction/defaults_linux.go`, at which a kubelet does not evict yet (1.36), and podd's own of a full disk. */
it.each<[what: string, change: Partial<DiskFacts>, level: 'ok' | 'warning' | 'error', inodes?: string]>([
  ['a tenth of its bytes', { freeBytes: 10 * gibibyte }, 'ok'],
  ['less than a tenth of its bytes', { freeBytes: 10 * gibibyte - 1 }, 'warning'],
  ['a twentieth of its inodes', { freeInodes: 50 }, 'ok'],
  ['less than a twentieth of its inodes', { freeInodes: 49 }, 'warning', '49 inodes'],
  ['few bytes, and a twentieth of its inodes,', { freeBytes: gibibyte, freeInodes: 50 }, 'warning'],
  ['64 MiB', { freeBytes: 2 ** 26 }, 'warning'],
  ['less than 64 MiB', { freeBytes: 2 ** 26 - 1 }, 'error'],
  ['a hundredth of its inodes', { freeInodes: 10 }, 'warning', '10 inodes'],
  ['less than a hundredth of its inodes', { freeInodes: 9 }, 'error', '9 inodes'],
  ['no bytes, and a hundredth of its inodes,', { freeBytes: 0, freeInodes: 10 }, 'error'],
  ['no inodes to count', { totalInodes: 0, freeInodes: 0 }, 'ok'],
])('of a disk that has %s free is told what lacks', (_what, change, level, inodes) => {
  const found = checkHost({ ...sound, ...withDisk(change) }).find(({ name }) => name === 'disk')
  expect([found?.status, /\d+ inodes/u.exec(found?.message ?? '')?.[0]]).toEqual([level, inodes])
})

describe('checkHost', () => {
  it.each([
    ['embedded', embedded],
    ['external', external],
  ] as const)('finds nothing wrong with a sound host, runtime %s', (_, runtime) => {
    expect(complaints({ runtime })).toEqual([])
  })

  it('names ports at which podd listens, could listen, or may for all that can be asked', () => {
    const states: readonly HostFacts['ports'][number]['state'][] = [
      { kind: 'open' },
      { kind: 'free' },
      { kind: 'unknown', reason: 'only root can ask it' },
    ]
    const ports = states.map((state) => {
      return { option: 'readOnlyPort' as const, address: '[::1]:10255', state }
    })
    const findings = checkHost({ ...sound, ports })
    expect(findings.filter(({ name }) => name === 'read-only-port').map(({ status }) => status)).toEqual([
      'ok',
      'ok',
      'skipped',
    ])
  })

  it('skips what nothing on the host tells', () => {
    expect(complaints({ sharesRoot: undefined, resolver: undefined })).toEqual([
      { name: 'shared-root', status: 'skipped', message: 'nothing tells of the mounts of the host' },
    ])
  })

  it.each<[name: string, change: Partial<HostFacts>, message: string]>([
    ['clock', {}, '2026-06-01T00:00:00.000Z, synchronized'],
    [
      'clock',
      { clock: { wallMs: Date.UTC(2026, 0, 1), synchronized: undefined } },
      '2026-01-01T00:00:00.000Z',
    ],
    ['init', {}, 'systemd'],
    ['init', { hasSystemd: false }, 'not systemd: containerd runs as a plain process beside podd'],
    ['swap', {}, 'none'],
    ['swap', { swapBytes: 1023 * 2 ** 20 }, '1023 MiB; memory limits count without it'],
    ['swap', { swapBytes: gibibyte }, '1.0 GiB; memory limits count without it'],
    ['kernel', {}, `${sound.kernelRelease} has all that pods need`],
    [
      'kernel',
      {
        kernel: [
          { name: 'overlayfs', purpose: 'layers', option: 'CONFIG_OVERLAY_FS', present: true },
          { name: 'veth', purpose: 'pods', option: 'CONFIG_VETH', present: undefined },
        ],
      },
      `${sound.kernelRelease} has all that pods need (nothing tells about veth)`,
    ],
  ])('says of what is well how it is: %s %j', (name, change, message) => {
    const found = checkHost({ ...sound, ...change }).find((each) => each.name === name)
    expect(found).toMatchObject({ status: 'ok', message })
  })

  it.each<
    [name: string, version: string, containerd: string, hybrid: readonly string[], status: 'ok' | 'error']
  >([
    ['crun', '1.14.2', '2.1.4', [], 'error'],
    ['crun', '', '2.1.4', [], 'error'],
    ['crun', '0.17', '2.0.0', [], 'error'],
    ['crun', '1.14.3', '2.1.4', [], 'ok'],
    ['crun', '1.15', '2.1.4', [], 'ok'],
    ['crun', '2.0', '2.1.4', [], 'ok'],
    ['crun', '1.8.1', '1.7.27', [], 'ok'],
    ['runc', '1.1.5', '2.1.4', [], 'ok'],
    ['crun', '1.21', '2.1.4', ['pids'], 'error'],
    ['runc', '1.1.5', '2.1.4', ['pids'], 'ok'],
  ])('of %s %s with containerd %s and, in the other cgroup version, %j: %s', (name, ...facts) => {
    const [version, containerd, hybridControllers, status] = facts
    const { cgroups, programs } = sound
    const found = checkHost({
      ...sound,
      cgroups: cgroups && { ...cgroups, hybridControllers },
      programs: {
        ...programs,
        containerd: { path: '/usr/bin/containerd', version: containerd },
        ociRuntimes: [{ name, program: { path: `/usr/bin/${name}`, version } }],
      },
    })
    expect(found.find((each) => each.name === name)?.status).toBe(status)
  })

  it('tells for how many registries there are settings, where there are', () => {
    const registries = (count: number) =>
      checkHost({
        ...sound,
        ...withEmbedded({ registryHosts: { directory: '/certs.d', registries: count, problems: [] } }),
      }).filter(({ name }) => name === 'registries')
    expect(registries(0)).toEqual([])
    expect(registries(2)).toMatchObject([{ status: 'ok', message: '/certs.d has settings for 2' }])
  })

  it('warns of a crash for seven days', () => {
    const crash = { atMs: Date.UTC(2026, 4, 25), path: '/1.json', count: 1 }
    expect(complaints({ crash })).toMatchObject([{ name: 'crashes' }])
    expect(complaints({ crash: { ...crash, atMs: crash.atMs - 1 } })).toEqual([])
  })

  it('says nothing of a crash of long ago', () => {
    expect(complaints({ crash: { atMs: Date.UTC(2026, 4, 24), path: '/1.json', count: 1 } })).toEqual([])
  })

  it.each<[string, Partial<HostFacts>, string, DoctorFinding['status'], string, string]>([
    ['no root', { isRoot: false }, 'root', 'warning', 'only part', 'sudo'],
    [
      'a crash of podd',
      { crash: { atMs: Date.UTC(2026, 4, 30), path: '/var/lib/podd/crash/1.json', count: 2 } },
      'crashes',
      'warning',
      'crashed at 2026-05-30T00:00:00Z and restarted; 2 reports are kept',
      '/var/lib/podd/crash/1.json',
    ],
    [
      'a source that is held',
      { holds: [{ source: 'http:fleet', sinceMs: Date.UTC(2026, 4, 30) }] },
      'hold',
      'warning',
      'http:fleet is held since 2026-05-30T00:00:00Z',
      'podd resume http:fleet',
    ],
    [
      'a port that another process has',
      {
        ports: [
          { option: 'readOnlyPort', address: '127.0.0.1:10255', state: { kind: 'open' } },
          { option: 'api.listen', address: '10.0.0.1:6443', state: { kind: 'fails', message: 'taken' } },
        ],
      },
      'api-port',
      'warning',
      'api.listen: taken',
      'ss -ltnp',
    ],
    [
      'a port other than that of the running podd',
      {
        ports: [
          {
            option: 'api.listen',
            address: '[::1]:6443',
            state: { kind: 'changed', served: '127.0.0.1:6443' },
          },
        ],
      },
      'api-port',
      'warning',
      'podd was started with api.listen 127.0.0.1:6443; [::1]:6443 takes effect when podd is restarted',
      'podd restart-daemon',
    ],
    [
      'a port that the running podd has not',
      {
        ports: [
          {
            option: 'readOnlyPort',
            address: '127.0.0.1:10255',
            state: { kind: 'changed', served: undefined },
          },
        ],
      },
      'read-only-port',
      'warning',
      'podd was started without readOnlyPort',
      'podd restart-daemon',
    ],
    [
      'no containerd',
      withPrograms({ containerd: undefined }),
      'containerd',
      'error',
      'not installed',
      'package containerd',
    ],
    ['no ctr', withPrograms({ ctr: undefined }), 'containerd', 'error', 'ctr', 'package containerd'],
    [
      'an old containerd',
      withPrograms({ containerd: { path: '/usr/bin/containerd', version: '1.5.9' } }),
      'containerd',
      'error',
      '1.5.9',
      '1.6 or newer',
    ],
    [
      'a containerd without a version',
      withPrograms({ containerd: { path: '/usr/bin/containerd', version: '' } }),
      'containerd',
      'error',
      'unknown',
      '1.6 or newer',
    ],
    [
      'no runc',
      withPrograms({ ociRuntimes: [{ name: 'runc', program: undefined }] }),
      'runc',
      'error',
      'not installed',
      'package runc',
    ],
    [
      'an OCI runtime of the config that is not there',
      withPrograms({ ociRuntimes: [{ name: '/opt/crun', program: undefined }] }),
      'crun',
      'error',
      '/opt/crun is not installed',
      'Install /opt/crun',
    ],
    [
      'a crun that does not know the configs of containerd 2',
      withPrograms({
        containerd: { path: '/usr/bin/containerd', version: '2.1.9' },
        ociRuntimes: [{ name: 'crun', program: { path: '/usr/bin/crun', version: '1.14.1' } }],
      }),
      'crun',
      'error',
      'containerd 2.1.9',
      'crun 1.14.3 or newer',
    ],
    [
      'crun on a host with controllers in both versions of cgroups',
      {
        ...withPrograms({
          ociRuntimes: [{ name: 'crun', program: { path: '/usr/bin/crun', version: '1.8.1' } }],
        }),
        cgroups: {
          version: 1,
          controllers: ['cpu', 'memory', 'pids'],
          hybridControllers: ['hugetlb'],
          driver: 'cgroupfs',
        },
      },
      'crun',
      'error',
      'hugetlb',
      'use runc',
    ],
    [
      "a containerd that podd can't start",
      withEmbedded({
        failure: {
          message: 'invalid database',
          logPath: '/var/lib/podd/containerd/containerd.log',
          dataPath: '/var/lib/podd/containerd',
        },
      }),
      'runtime',
      'error',
      'podd runs and its containerd does not: invalid database',
      'move /var/lib/podd/containerd aside',
    ],
    ['a hung containerd', withEmbedded({ pid: 42 }), 'runtime', 'error', 'does not answer', 'kill 42'],
    [
      'no CNI plugins',
      withEmbedded({ cniDirectories: [{ path: '/opt/cni/bin', missing: ['bridge'], hasAny: false }] }),
      'cni-plugins',
      'error',
      'not installed; looked in /opt/cni/bin',
      'containernetworking-plugins',
    ],
    [
      'a CNI plugin missing',
      withEmbedded({
        cniDirectories: [
          { path: '/usr/lib/cni', missing: ['bridge', 'portmap'], hasAny: true },
          { path: '/opt/cni/bin', missing: ['portmap'], hasAny: true },
        ],
      }),
      'cni-plugins',
      'error',
      '/opt/cni/bin lacks portmap',
      'containernetworking-plugins',
    ],
    [
      'no free subnet',
      withEmbedded({ subnet: undefined }),
      'pod-network',
      'error',
      'no subnet',
      '--pod-cidr',
    ],
    [
      'a bridge that somebody has removed',
      withEmbedded({ networkFaults: 'bridge podd0 is missing' }),
      'pod-network',
      'error',
      'bridge podd0 is missing',
      'podd status',
    ],
    [
      'an older containerd than pods run under',
      withEmbedded({ newerVersion: '9.1.0' }),
      'containerd',
      'warning',
      'under containerd 9.1.0',
      'Install containerd 9.1.0',
    ],
    [
      'no pause program',
      withEmbedded({ pauseProgram: undefined }),
      'sandbox-image',
      'error',
      'static',
      'catatonit',
    ],
    [
      'settings of a registry that cannot be read',
      withEmbedded({
        registryHosts: {
          directory: '/d',
          registries: 1,
          problems: ['/d/a.io/hosts.toml: line 1 is no TOML'],
        },
      }),
      'registries',
      'error',
      'line 1',
      'next pull',
    ],
    [
      'no runtime',
      withExternal({ failure: { message: 'there is no socket at /x', hint: 'Start it.' } }),
      'runtime',
      'error',
      'no socket',
      'Start it.',
    ],
    [
      'a runtime that is not ready',
      notReady('RuntimeReady', 'shim missing'),
      'runtime',
      'error',
      'shim missing',
      'log',
    ],
    [
      'no CNI network',
      notReady('NetworkReady', 'cni plugin not initialized'),
      'cni-network',
      'error',
      'cni plugin not initialized',
      '/etc/cni/net.d',
    ],
    [
      "another driver than the runtime's",
      { ...withExternal({ cgroupDriver: 'cgroupfs' }) },
      'cgroup-driver',
      'error',
      'the runtime uses cgroupfs',
      'cgroupDriver: cgroupfs',
    ],
    [
      'cgroupfs beside systemd',
      {
        ...withExternal({ cgroupDriver: 'cgroupfs' }),
        cgroups: {
          version: 2,
          controllers: ['cpu', 'memory', 'pids'],
          hybridControllers: [],
          driver: 'cgroupfs',
        },
      },
      'cgroup-driver',
      'warning',
      'systemd manages',
      'SystemdCgroup = true',
    ],
    [
      'no sandbox image',
      withExternal({ sandboxImage: { name: 'registry.k8s.io/pause:3.8', present: false } }),
      'sandbox-image',
      'warning',
      'registry.k8s.io/pause:3.8',
      'images pull registry.k8s.io/pause:3.8',
    ],
    [
      'no iptables',
      { firewall: { kind: 'missing' } },
      'iptables',
      'error',
      'not installed',
      'package iptables',
    ],
    [
      'a kernel without NAT',
      { firewall: { kind: 'broken', message: 'Table does not exist' } },
      'iptables',
      'error',
      'Table does not exist',
      'reboot',
    ],
    ['no cgroups', { cgroups: undefined }, 'cgroups', 'error', 'no cgroups', 'mount'],
    [
      'no memory controller',
      { cgroups: { version: 2, controllers: ['cpu', 'pids'], hybridControllers: [], driver: 'systemd' } },
      'cgroup-controllers',
      'error',
      'memory',
      'cgroup_enable=memory',
    ],
    [
      'no pids controller',
      { cgroups: { version: 2, controllers: ['cpu', 'memory'], hybridControllers: [], driver: 'systemd' } },
      'cgroup-controllers',
      'error',
      'pids',
      'kernel',
    ],
    [
      'no overlayfs',
      { kernel: [{ name: 'overlayfs', purpose: 'layers', option: 'CONFIG_OVERLAY_FS', present: false }] },
      'kernel-overlayfs',
      'error',
      'lacks overlayfs',
      'CONFIG_OVERLAY_FS',
    ],
    [
      'no user namespaces',
      { kernel: [{ name: 'user namespaces', purpose: 'x', option: 'CONFIG_USER_NS', present: false }] },
      'kernel-user namespaces',
      'warning',
      'user namespaces',
      'CONFIG_USER_NS',
    ],
    ['a read-only disk', withDisk({ readOnly: true }), 'disk', 'error', 'read-only', '--root-dir'],
    ['a full disk', withDisk({ freeBytes: 0 }), 'disk', 'error', 'is full', 'podd images'],
    ['no inodes left', withDisk({ freeInodes: 0 }), 'disk', 'error', '0 inodes', 'podd images'],
    ['a disk that fills up', withDisk({ freeBytes: 9 * gibibyte }), 'disk', 'warning', '9.0 GiB', 'Free'],
    ['inodes that run out', withDisk({ freeInodes: 40 }), 'disk', 'warning', '40 inodes', 'Free'],
    [
      'a clock at the epoch',
      { clock: { wallMs: 0, synchronized: false } },
      'clock',
      'error',
      '1970',
      'date -s',
    ],
    [
      'a clock that nobody keeps',
      { clock: { wallMs: Date.UTC(2026, 5, 1), synchronized: false } },
      'clock',
      'warning',
      'not synchronized',
      'timedatectl',
    ],
    [
      'the same without systemd',
      { hasSystemd: false, clock: { wallMs: Date.UTC(2026, 5, 1), synchronized: false } },
      'clock',
      'warning',
      'not synchronized',
      'chrony',
    ],
    [
      'no CAP_SYS_RESOURCE',
      { canLowerOomScore: false },
      'oom-score',
      'warning',
      'CAP_SYS_RESOURCE',
      'Run podd',
    ],
    [
      'a root of mounts that is not shared',
      { sharesRoot: false },
      'shared-root',
      'warning',
      'Bidirectional fail',
      'mount --make-rshared /',
    ],
    [
      'a name that is no DNS name',
      { name: { host: 'My_Pi', node: 'my-pi', isConfigured: false } },
      'host-name',
      'warning',
      'name My_Pi is no DNS name: the node is called my-pi',
      'hostnamectl set-hostname my-pi',
    ],
    [
      'such a name where there is no systemd',
      { name: { host: 'My_Pi', node: 'my-pi', isConfigured: false }, hasSystemd: false },
      'host-name',
      'warning',
      'name My_Pi is no DNS name',
      'hostname my-pi, and the same in /etc/hostname',
    ],
    [
      'a resolver on the loopback',
      { resolver: { path: '/etc/resolv.conf', servers: ['127.0.0.1'], isUnreachable: true } },
      'resolver',
      'warning',
      '/etc/resolv.conf names only 127.0.0.1, on the loopback of the host',
      'dnsPolicy None',
    ],
    [
      'no resolver',
      { resolver: { path: '/etc/resolv.conf', servers: [], isUnreachable: true } },
      'resolver',
      'warning',
      '/etc/resolv.conf names no server',
      'resolvConf',
    ],
    [
      'no manifest directory',
      { manifests: { path: '/etc/pods', exists: false } },
      'manifests',
      'warning',
      '/etc/pods',
      'mkdir -p /etc/pods',
    ],
    [
      'manifests that are passed over',
      {
        manifests: {
          path: '/etc/pods',
          exists: true,
          problems: [{ place: { path: '/etc/pods' }, message: 'not read: etcd.manifest', hint: 'rename it' }],
        },
      },
      'manifests',
      'warning',
      '/etc/pods: not read: etcd.manifest',
      'Rename it.',
    ],
  ])('%s', (_, change, name, status, message, hint) => {
    const found = complaints(change)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({
      name,
      status,
      message: expect.stringContaining(message) as string,
      hint: expect.stringContaining(hint) as string,
    })
  })

  it('does not judge what nothing tells about', () => {
    const unknown = complaints({
      firewall: { kind: 'unknown' },
      ...withExternal({ cgroupDriver: undefined, sandboxImage: undefined }),
    })
    expect(unknown.map(({ name, status }) => [name, status])).toEqual([
      ['cgroup-driver', 'skipped'],
      ['sandbox-image', 'skipped'],
      ['iptables', 'skipped'],
    ])
    for (const pid of [undefined, 42]) {
      const [found, ...others] = complaints(withEmbedded({ pid, answers: undefined }))
      expect(found).toEqual({ name: 'runtime', status: 'skipped', message: 'only root can look' })
      expect(others).toEqual([])
    }
    const feature = { name: 'veth', purpose: 'x', option: 'CONFIG_VETH', present: undefined }
    expect(complaints({ kernel: [feature] })).toEqual([])
    expect(complaints({ clock: { wallMs: Date.UTC(2026, 5, 1), synchronized: undefined } })).toEqual([])
    expect(complaints(withDisk({ totalInodes: 0, freeInodes: 0 }))).toEqual([])
  })

  it("does not ask for podd's own programs where another runtime is used", () => {
    const bare = {
      containerd: undefined,
      ctr: undefined,
      ociRuntimes: [{ name: 'runc', program: undefined }],
    }
    expect(complaints({ runtime: external, programs: bare })).toEqual([])
  })

  it('says each trouble once, whatever else is wrong', () => {
    const found = complaints({
      ...withPrograms({ containerd: undefined, ociRuntimes: [{ name: 'runc', program: undefined }] }),
      cgroups: undefined,
      disks: [
        { ...disk, readOnly: true },
        { ...disk, path: '/var/log/pods', freeBytes: 0 },
      ],
    })
    expect(found.map(({ name }) => name)).toEqual(['containerd', 'runc', 'cgroups', 'disk', 'disk'])
  })
})
