import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { formatFieldPath } from '../../../src/pod/schema/issues.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { validatePod } from '../../../src/pod/validation/validate-pod.ts'
import { withFields } from './sample-pod.ts'

function problemsOf(fields: Readonly<Record<string, Json>>): readonly string[] {
  return validatePod(podFromManifest(withFields(fields))).map(
    ({ path, message }) => `${formatFieldPath(path)}: ${message}`,
  )
}

const c0 = 'spec.containers.0'
const main = { name: 'main', image: 'i' }
const side = { name: 'side', image: 'i' }
const tcp = { tcpSocket: { port: 80 } }
const dir = { name: 'dir', emptyDir: {} }

describe('validatePod takes', () => {
  it.each<[string, Record<string, Json>]>([
    ['a name of 210 characters in the namespace default', { 'metadata.name': 'n'.repeat(210) }],
    [
      'a name of 154 characters in a namespace of 63',
      { metadata: { name: 'n'.repeat(154), namespace: 's'.repeat(63) } },
    ],
    ['the least there is', {}],
    ['an override of the hostname of 64 characters', { 'spec.hostnameOverride': `${'h'.repeat(60)}.box` }],
    ['a name with dots', { 'metadata.name': 'web.example.com' }],
    ['labels', { 'metadata.labels': { 'app.kubernetes.io/name': 'web', empty: '', A: 'x_Y.z' } }],
    [
      'annotations with upper case and any value',
      { 'metadata.annotations': { 'Some.Org/Key': 'any\nthing' } },
    ],
    [
      'one port under two protocols',
      {
        [`${c0}.ports`]: [
          { containerPort: 53, hostPort: 53 },
          { containerPort: 53, hostPort: 53, protocol: 'UDP' },
        ],
      },
    ],
    [
      'one host port at two addresses',
      {
        [`${c0}.ports`]: [
          { containerPort: 1, hostPort: 1, hostIP: '10.0.0.1' },
          { containerPort: 2, hostPort: 1, hostIP: 'fd00::1' },
        ],
      },
    ],
    [
      'one host port of a sidecar and a container',
      {
        'spec.initContainers': [
          { ...side, restartPolicy: 'Always', ports: [{ containerPort: 1, hostPort: 80 }] },
        ],
        [`${c0}.ports`]: [{ containerPort: 1, hostPort: 80 }],
      },
    ],
    [
      'an init container with a limit beyond that of its pod',
      {
        'spec.resources': { limits: { memory: '64Mi' } },
        'spec.initContainers': [
          { ...side, resources: { requests: { memory: '1Mi' }, limits: { memory: '65Mi' } } },
        ],
      },
    ],
    [
      'mount paths with colons, which the runtime takes as they are',
      {
        'spec.volumes': [dir],
        [`${c0}.volumeMounts`]: [
          { name: 'dir', mountPath: '/etc/certs.d/registry:5000' },
          { name: 'dir', mountPath: '/dev/serial/by-path/pci-0000:00:14.0' },
        ],
      },
    ],
    [
      'sysctls of namespaces that are its own',
      {
        'spec.hostNetwork': true,
        'spec.securityContext.sysctls': [{ name: 'kernel.shm_rmid_forced', value: '1' }],
      },
    ],
    [
      'env names with dots and dashes',
      {
        [`${c0}.env`]: [
          { name: 'a.b-c', value: '1' },
          { name: '1', value: '' },
        ],
      },
    ],
    [
      'requests below limits',
      { [`${c0}.resources`]: { limits: { cpu: 1 }, requests: { cpu: '250m', memory: '1Mi' } } },
    ],
    [
      'a sidecar with probes',
      {
        'spec.initContainers': [
          {
            ...side,
            restartPolicy: 'Always',
            startupProbe: tcp,
            lifecycle: { preStop: { sleep: { seconds: 1 } } },
          },
        ],
      },
    ],
    [
      'a mounted volume',
      {
        'spec.volumes': [dir],
        [`${c0}.volumeMounts`]: [
          { name: 'dir', mountPath: '/a' },
          { name: 'dir', mountPath: 'b' },
        ],
      },
    ],
    [
      'restart rules',
      {
        [`${c0}.restartPolicy`]: 'Never',
        [`${c0}.restartPolicyRules`]: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
      },
    ],
    [
      'an annotation for AppArmor beside its field, as a dump has it',
      {
        'metadata.annotations': {
          'container.apparmor.security.beta.kubernetes.io/main': 'runtime/default',
        },
        [`${c0}.securityContext.appArmorProfile`]: { type: 'RuntimeDefault' },
      },
    ],
    ['an ephemeral container', { 'spec.ephemeralContainers': [{ ...side, targetContainerName: 'main' }] }],
    ['grace 0', { 'spec.terminationGracePeriodSeconds': 0 }],
    ['a very long grace', { 'spec.terminationGracePeriodSeconds': 9_000_000_000_000 }],
    [
      'the least and the largest divisor, and the one that is none',
      {
        [`${c0}.env`]: ['1m', '1', '0', '1000m'].map((divisor, index) => ({
          name: `CPU${index}`,
          valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor } },
        })),
      },
    ],
    [
      'divisors of bytes',
      {
        [`${c0}.env`]: ['1', '1k', '1Ki', '1E', '1Ei', '1024Ki'].map((divisor, index) => ({
          name: `MEMORY${index}`,
          valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor } },
        })),
      },
    ],
    [
      'fields in an API version, said or not',
      {
        [`${c0}.env`]: ['', 'v1'].map((apiVersion, index) => ({
          name: `NAME${index}`,
          valueFrom: { fieldRef: { apiVersion, fieldPath: "metadata.annotations['Some.Org/Key']" } },
        })),
      },
    ],
  ])('%s', (_what, fields) => {
    expect(problemsOf(fields)).toEqual([])
  })
})

const label = /a lowercase RFC 1123 label must consist of lower case/
const range = 'must be between 1 and 65535, inclusive'

describe('validatePod refuses', () => {
  it.each<[string, Record<string, Json>, string | RegExp]>([
    ['an empty name', { 'metadata.name': '' }, 'metadata.name: Required value'],
    [
      'a name in upper case',
      { 'metadata.name': 'Web' },
      /^metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must/,
    ],
    ['a long name', { 'metadata.name': 'a'.repeat(254) }, /must be no more than 253 characters$/],
    ['a namespace with dots', { 'metadata.namespace': 'a.b' }, /must not contain dots$/],
    [
      'a label key with two slashes',
      { 'metadata.labels': { 'a/b/c': 'x' } },
      /a valid label key must consist of .* with an optional DNS subdomain prefix and '\/'/,
    ],
    [
      'a label value with a space',
      { 'metadata.labels': { a: 'x y' } },
      /^metadata.labels: Invalid value: "x y": a valid label must be an empty string or/,
    ],
    [
      'too many annotations',
      { 'metadata.annotations': { a: 'x'.repeat(262_144) } },
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    ],
    ['no containers', { 'spec.containers': [] }, 'spec.containers: Required value'],
    ['a container without a name', { [`${c0}.name`]: '' }, 'spec.containers[0].name: Required value'],
    ['a container named badly', { [`${c0}.name`]: 'a_b' }, label],
    [
      'one name twice',
      { 'spec.containers': [main, side, main] },
      'spec.containers[2].name: Duplicate value: "main"',
    ],
    [
      'one name in two lists',
      { 'spec.initContainers': [main] },
      'spec.initContainers[0].name: Duplicate value: "main"',
    ],
    ['no image', { [`${c0}.image`]: '' }, 'spec.containers[0].image: Required value'],
    ['an image with spaces', { [`${c0}.image`]: ' busybox' }, /must not have leading or trailing whitespace/],
    [
      'port 0',
      { [`${c0}.ports`]: [{ containerPort: 0 }] },
      'spec.containers[0].ports[0].containerPort: Required value',
    ],
    [
      'port 65536',
      { [`${c0}.ports`]: [{ containerPort: 65_536 }] },
      `spec.containers[0].ports[0].containerPort: Invalid value: 65536: ${range}`,
    ],
    [
      'a negative host port',
      { [`${c0}.ports`]: [{ containerPort: 1, hostPort: -1 }] },
      `spec.containers[0].ports[0].hostPort: Invalid value: -1: ${range}`,
    ],
    [
      'a port name without letters',
      { [`${c0}.ports`]: [{ name: '80', containerPort: 80 }] },
      /must contain at least one letter/,
    ],
    [
      'a long port name',
      { [`${c0}.ports`]: [{ name: 'a'.repeat(16), containerPort: 80 }] },
      /must be no more than 15 characters/,
    ],
    [
      'one port name twice',
      {
        [`${c0}.ports`]: [
          { name: 'a', containerPort: 1 },
          { name: 'a', containerPort: 2 },
        ],
      },
      'spec.containers[0].ports[1].name: Duplicate value: "a"',
    ],
    [
      'a bad hostIP',
      { [`${c0}.ports`]: [{ containerPort: 1, hostPort: 1, hostIP: 'host' }] },
      /hostIP: not supported: "host" is no IP address/,
    ],
    [
      'one host port twice',
      {
        'spec.containers': [
          { ...main, ports: [{ containerPort: 1, hostPort: 80 }] },
          { ...side, ports: [{ containerPort: 2, hostPort: 80 }] },
        ],
      },
      'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
    ],
    [
      'one host port twice in a sidecar',
      {
        'spec.initContainers': [
          {
            ...side,
            restartPolicy: 'Always',
            ports: [
              { containerPort: 1, hostPort: 80 },
              { containerPort: 2, hostPort: 80 },
            ],
          },
        ],
      },
      'spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
    ],
    [
      'a sysctl of the host’s network',
      {
        'spec.hostNetwork': true,
        'spec.securityContext.sysctls': [{ name: 'net/ipv4/tcp_syncookies', value: '1' }],
      },
      /sysctls\[0\].name: Invalid value: "net\/ipv4\/tcp_syncookies": may not be specified when 'hostNetwork' is true/,
    ],
    [
      'a sysctl of the host’s IPC',
      {
        'spec.hostIPC': true,
        'spec.securityContext.sysctls': [{ name: 'kernel.msgmax', value: '1' }],
      },
      /sysctls\[0\].name: Invalid value: "kernel.msgmax": may not be specified when 'hostIPC' is true/,
    ],
    [
      'a limit on the disk of a whole pod',
      { 'spec.resources': { limits: { 'ephemeral-storage': '1Gi' } } },
      'spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"',
    ],
    [
      'a device for a whole pod',
      { 'spec.resources': { limits: { 'nvidia.com/gpu': 1 } } },
      /limits\[nvidia.com\/gpu\]: Unsupported value: "nvidia.com\/gpu": supported values/,
    ],
    [
      'another host port on the host’s network',
      { 'spec.hostNetwork': true, [`${c0}.ports`]: [{ containerPort: 80, hostPort: 81 }] },
      /must match `containerPort` when `hostNetwork` is true/,
    ],
    [
      'two containers on one port of the host’s network',
      {
        'spec.hostNetwork': true,
        'spec.containers': [
          { ...main, ports: [{ containerPort: 80 }] },
          { ...side, ports: [{ containerPort: 80 }] },
        ],
      },
      'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
    ],
    [
      'env without a name',
      { [`${c0}.env`]: [{ name: '', value: 'x' }] },
      'spec.containers[0].env[0].name: Required value',
    ],
    [
      'env with = in its name',
      { [`${c0}.env`]: [{ name: 'a=b', value: 'x' }] },
      /must consist only of printable ASCII characters other than '='/,
    ],
    [
      'a negative quantity',
      { [`${c0}.resources.requests`]: { cpu: '-1' } },
      'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
    [
      'requests over limits',
      { [`${c0}.resources`]: { limits: { memory: '1Gi' }, requests: { memory: '2Gi' } } },
      'spec.containers[0].resources.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi',
    ],
    [
      'huge pages alone',
      { [`${c0}.resources.limits`]: { 'hugepages-2Mi': '4Mi' } },
      'spec.containers[0].resources: Forbidden: HugePages require cpu or memory',
    ],
    [
      'huge pages beyond their limit',
      {
        [`${c0}.resources`]: {
          requests: { cpu: 1, 'hugepages-2Mi': '2Mi' },
          limits: { 'hugepages-2Mi': '4Mi' },
        },
      },
      /resources.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 4Mi/,
    ],
    [
      'half a huge page',
      {
        'spec.overhead': { 'hugepages-2Mi': '3Mi' },
      },
      /hugepages-2Mi\]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi/,
    ],
    [
      'a pod that requests less than its containers',
      { 'spec.resources': { requests: { cpu: '500m' } }, [`${c0}.resources.requests`]: { cpu: 1 } },
      'spec.resources.requests[cpu]: Invalid value: "500m": must be greater than or equal to aggregate container requests of 1',
    ],
    [
      'a container with a limit beyond that of its pod',
      {
        'spec.resources': { limits: { memory: '64Mi' } },
        [`${c0}.resources`]: { requests: { memory: '1Mi' }, limits: { memory: '65Mi' } },
      },
      /^spec.resources.containers\[0\]\[memory\].limits: Invalid value: "65Mi": must be less than or equal to pod limits of 64Mi/,
    ],
    [
      'a volume without a name',
      { 'spec.volumes': [{ name: '', emptyDir: {} }] },
      'spec.volumes[0].name: Required value',
    ],
    ['one volume name twice', { 'spec.volumes': [dir, dir] }, 'spec.volumes[1].name: Duplicate value: "dir"'],
    [
      'a volume of two kinds',
      { 'spec.volumes': [{ ...dir, hostPath: { path: '/x' } }] },
      /may not specify more than 1 volume type/,
    ],
    [
      'a host path that leads back',
      { 'spec.volumes': [{ name: 'a', hostPath: { path: '/a/../b' } }] },
      /must not contain '..'/,
    ],
    [
      'a relative host path',
      { 'spec.volumes': [{ name: 'a', hostPath: { path: 'a' } }] },
      /path: not supported: "a" is no absolute path/,
    ],
    [
      'an empty host path',
      { 'spec.volumes': [{ name: 'a', hostPath: { path: '' } }] },
      'spec.volumes[0].hostPath.path: Required value',
    ],
    [
      'an unknown medium',
      { 'spec.volumes': [{ name: 'a', emptyDir: { medium: 'Disk' } }] },
      /not supported: unknown medium "Disk"/,
    ],
    [
      'a mount of no volume',
      { [`${c0}.volumeMounts`]: [{ name: 'x', mountPath: '/x' }] },
      'spec.containers[0].volumeMounts[0].name: Not found: "x"',
    ],
    [
      'two mounts in one place',
      {
        'spec.volumes': [dir],
        [`${c0}.volumeMounts`]: [
          { name: 'dir', mountPath: '/a' },
          { name: 'dir', mountPath: '/a' },
        ],
      },
      'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
    ],
    [
      'a deadline of 0',
      { 'spec.activeDeadlineSeconds': 0 },
      'spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive',
    ],
    ['a host name with dots', { 'spec.hostname': 'a.b' }, /must not contain dots$/],
    ['an unknown system', { 'spec.os': { name: 'plan9' } }, /^spec.os: Unsupported value: "plan9"/],
    [
      'hostPID with a shared namespace',
      { 'spec.hostPID': true, 'spec.shareProcessNamespace': true },
      /ShareProcessNamespace and HostPID cannot both be enabled/,
    ],
    [
      'dnsPolicy None without servers',
      { 'spec.dnsPolicy': 'None' },
      /^spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None$/,
    ],
    [
      'a probe that does nothing',
      { [`${c0}.readinessProbe`]: { periodSeconds: 1 } },
      'spec.containers[0].readinessProbe: Required value: must specify a handler type',
    ],
    [
      'a probe that does two things',
      { [`${c0}.readinessProbe`]: { ...tcp, exec: { command: ['x'] } } },
      /may not specify more than 1 handler type/,
    ],
    [
      'liveness with two successes',
      { [`${c0}.livenessProbe`]: { ...tcp, successThreshold: 2 } },
      'spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1',
    ],
    [
      'readiness with a grace',
      { [`${c0}.readinessProbe`]: { ...tcp, terminationGracePeriodSeconds: 1 } },
      /must not be set for readinessProbes/,
    ],
    [
      'a probe’s grace of 0',
      { [`${c0}.livenessProbe`]: { ...tcp, terminationGracePeriodSeconds: 0 } },
      /must be greater than 0/,
    ],
    [
      'a negative period',
      { [`${c0}.livenessProbe`]: { ...tcp, periodSeconds: -1 } },
      /periodSeconds: Invalid value: -1: must be greater than or equal to 0/,
    ],
    [
      'a probe of port 0',
      { [`${c0}.livenessProbe`]: { tcpSocket: { port: 0 } } },
      /tcpSocket.port: Invalid value: 0/,
    ],
    [
      'a bad HTTP header',
      { [`${c0}.livenessProbe`]: { httpGet: { port: 'web', httpHeaders: [{ name: 'a b', value: '' }] } } },
      /a valid HTTP header must/,
    ],
    [
      'an empty command',
      { [`${c0}.livenessProbe`]: { exec: {} } },
      'spec.containers[0].livenessProbe.exec.command: Required value',
    ],
    [
      'a sleep longer than the grace',
      { [`${c0}.lifecycle`]: { preStop: { sleep: { seconds: 31 } } } },
      /must be non-negative and less than terminationGracePeriodSeconds \(30\)/,
    ],
    ['a hook that does nothing', { [`${c0}.lifecycle`]: { postStart: {} } }, /must specify a handler type/],
    [
      'probes on an init container',
      { 'spec.initContainers': [{ ...side, readinessProbe: tcp }] },
      'spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ],
    [
      'a part of a volume in an ephemeral container',
      {
        'spec.volumes': [dir],
        'spec.ephemeralContainers': [
          { ...side, volumeMounts: [{ name: 'dir', mountPath: '/d', subPath: 'a' }] },
        ],
      },
      'spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container',
    ],
    [
      'an ephemeral container’s target that isn’t there',
      { 'spec.ephemeralContainers': [{ ...side, targetContainerName: 'x' }] },
      'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
    ],
    ...(
      [
        [{ volumeName: 'none' }, 'volumeName: Not found: "none"'],
        [
          { volumeName: 'host' },
          'volumeName: Invalid value: "host": referenced volume must be of type emptyDir',
        ],
        [{ path: '' }, 'path: Required value'],
        [{ path: '/env' }, 'path: not supported: "/env" is no path of a file within the volume'],
        [{ path: 'a/../../env' }, `path: Invalid value: "a/../../env": must not contain '..'`],
        [{ path: './' }, 'path: not supported: "./" is no path of a file within the volume'],
        [{ key: '' }, 'key: Required value'],
        [{ key: 'A=B' }, /key: Invalid value: "A=B": a valid environment variable name/],
      ] as const
    ).map(([fields, complaint]): [string, Record<string, Json>, string | RegExp] => [
      `a file for a variable with ${JSON.stringify(fields).slice(0, 40)}`,
      {
        'spec.volumes': [dir, { name: 'host', hostPath: { path: '/etc' } }],
        [`${c0}.env`]: [
          { name: 'A', valueFrom: { fileKeyRef: { volumeName: 'dir', path: 'env', key: 'K', ...fields } } },
        ],
      },
      typeof complaint === 'string'
        ? `spec.containers[0].env[0].valueFrom.fileKeyRef.${complaint}`
        : complaint,
    ]),
    ...(
      [
        ['hostNetwork', 'hostNetwork'],
        ['hostPID', 'HostPID'],
        ['hostIPC', 'HostIPC'],
      ] as const
    ).map(([field, name]): [string, Record<string, Json>, string] => [
      `${field} with users of its own`,
      { 'spec.hostUsers': false, [`spec.${field}`]: true },
      `spec.${name}: Forbidden: when \`hostUsers\` is false`,
    ]),
    ...(
      [
        ['kubernetes.io/ingress-bandwidth', 'the network of pods has no limits of bandwidth'],
        ['kubernetes.io/egress-bandwidth', 'the network of pods has no limits of bandwidth'],
        [
          'cdi.k8s.io/gpu',
          'podd hands out no devices: mount them by a hostPath, into a privileged container',
        ],
        [
          'container.apparmor.security.beta.kubernetes.io/main',
          'deprecated in Kubernetes: set securityContext.appArmorProfile',
        ],
      ] as const
    ).map(([key, reason]): [string, Record<string, Json>, string] => [
      `the annotation ${key}`,
      { 'metadata.annotations': { [key]: '1M' } },
      `metadata.annotations[${key}]: not supported: ${reason}`,
    ]),
    ...(
      [
        [{ name: 'n'.repeat(211) }, 218],
        [{ name: 'n'.repeat(253) }, 260],
        [{ name: 'n'.repeat(155), namespace: 's'.repeat(63) }, 218],
      ] as const
    ).map(([metadata, length]): [string, Record<string, Json>, string] => [
      `a name and a namespace of ${length} characters (${Object.keys(metadata).join(', ')})`,
      { metadata },
      `metadata.name: not supported: a pod's name and namespace may have 217 characters together, and these have ${length}: both are in the name of the directory of its logs; shorten the name`,
    ]),
    [
      'a name that is too long for a name',
      { 'metadata.name': 'n'.repeat(254) },
      /^metadata\.name: Invalid value: "n+": must be no more than 253 characters$/u,
    ],
    [
      'an emptyDir of huge pages',
      { 'spec.volumes': [{ name: 'v', emptyDir: { medium: 'HugePages-2Mi' } }] },
      'spec.volumes[0].emptyDir.medium: not supported: podd mounts no huge pages; hugepages-<size> limits work with mmap and shmget',
    ],
    [
      'an emptyDir of less than nothing',
      { 'spec.volumes': [{ name: 'v', emptyDir: { sizeLimit: '-1Mi' } }] },
      'spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity',
    ],
    [
      'an emptyDir of an unknown medium',
      { 'spec.volumes': [{ name: 'v', emptyDir: { medium: 'Disk' } }] },
      'spec.volumes[0].emptyDir.medium: not supported: unknown medium "Disk"; known are "" and "Memory"',
    ],
    ...(['a', './a', 'a/b', 'a//b/c'] as const).map((path): [string, Record<string, Json>, string] => [
      `two sources with ${path.startsWith('a/') ? 'a file where the other has a directory' : 'one file'} (${path})`,
      {
        'spec.volumes': [
          {
            name: 'v',
            projected: {
              sources: [
                { configMap: { name: 'c', items: [{ key: 'k', path: 'a' }] } },
                { downwardAPI: { items: [{ path, fieldRef: { fieldPath: 'metadata.name' } }] } },
              ],
            },
          },
        ],
      },
      path === 'a'
        ? 'spec.volumes[0].projected: Invalid value: "a": conflicting duplicate paths'
        : `spec.volumes[0].projected.sources[1].downwardAPI.items[0].path: not supported: ${JSON.stringify(path)} is in the way of "a"`,
    ]),
    [
      'a restart on resize that may not be',
      {
        'spec.restartPolicy': 'Never',
        [`${c0}.resizePolicy`]: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
      },
      /must be 'NotRequired' when pod `restartPolicy` is 'Never'/,
    ],
    [
      'restart rules without a policy',
      { [`${c0}.restartPolicyRules`]: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }] },
      /must specify restartPolicy when restart rules are used/,
    ],
    [
      'a deadline of more than 31 bits',
      { 'spec.activeDeadlineSeconds': 2 ** 31 },
      /activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647/,
    ],
    [
      'an overhead below zero',
      { 'spec.overhead': { cpu: -1 } },
      /^spec.overhead.limits\[cpu\]: Invalid value: "-1"/,
    ],
    ...[
      ['limits.cpu', '3', '1m and 1 are supported with the cpu resource'],
      ['limits.cpu', '-1', '1m and 1 are supported with the cpu resource'],
      ['requests.memory', '1m', 'Pi, 1Ei are supported with the memory resource'],
      ['limits.ephemeral-storage', '2k', 'Pi, 1Ei are supported with the local ephemeral storage resource'],
      ['limits.hugepages-2Mi', '10', 'Pi, 1Ei are supported with the hugepages resource'],
    ].map(([resource = '', divisor = '', message = '']): [string, Record<string, Json>, RegExp] => [
      `a divisor of ${divisor} for ${resource}`,
      { [`${c0}.env`]: [{ name: 'A', valueFrom: { resourceFieldRef: { resource, divisor } } }] },
      new RegExp(
        `env\\[0\\].valueFrom.resourceFieldRef.divisor: Invalid value: "${resource}": .*${message}$`,
      ),
    ]),
    [
      'such a divisor in a volume',
      {
        'spec.volumes': [
          {
            name: 'v',
            downwardAPI: {
              items: [
                {
                  path: 'a',
                  resourceFieldRef: { containerName: 'main', resource: 'limits.cpu', divisor: '3' },
                },
              ],
            },
          },
        ],
      },
      /downwardAPI.resourceFieldRef.divisor: Invalid value: "limits.cpu"/,
    ],
    [
      'a field of another API version',
      {
        [`${c0}.env`]: [
          { name: 'A', valueFrom: { fieldRef: { apiVersion: 'v7', fieldPath: 'metadata.name' } } },
        ],
      },
      /fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v7$/,
    ],
    ...["labels['a b']", "labels['a'b']", "annotations['a/b/c']"].map(
      (field): [string, Record<string, Json>, RegExp] => [
        `the field ${field}`,
        { [`${c0}.env`]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: `metadata.${field}` } } }] },
        /fieldRef: Invalid value: .*(?:name part must|a valid label key must)/,
      ],
    ),
  ])('%s', (_what, fields, expected) => {
    const problems = problemsOf(fields)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(expected)
  })

  it.each<[string, Record<string, Json>, readonly RegExp[]]>([
    [
      'a label key without a name',
      { 'metadata.labels': { 'a/': 'x' } },
      [/"a\/": name part must be non-empty$/, /"a\/": name part must consist of alphanumeric/],
    ],
    [
      'a field of a label without a name',
      { [`${c0}.env`]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['']" } } }] },
      [
        /fieldRef: Invalid value: "": name part must be non-empty$/,
        /fieldRef: Invalid value: "": name part must consist/,
      ],
    ],
    [
      'an unknown resource',
      { [`${c0}.resources.requests`]: { disk: 1 } },
      [
        /resources.requests\[disk\]: Invalid value: "disk": must be a standard resource type or fully qualified$/,
        /resources.requests\[disk\]: Invalid value: "disk": must be a standard resource for containers$/,
      ],
    ],
    [
      'a resource of quotas',
      { [`${c0}.resources.requests`]: { storage: 1 } },
      [
        /resources.requests\[storage\]: Invalid value: "storage": must be a standard resource for containers$/,
      ],
    ],
    [
      'an overhead of nothing there is',
      { 'spec.overhead': { memroy: 3 } },
      [
        /^spec.overhead.limits\[memroy\]: Invalid value: "memroy": must be a standard resource type or fully qualified$/,
        /^spec.overhead.limits\[memroy\]: Invalid value: "memroy": must be a standard resource for containers$/,
      ],
    ],
    [
      'an unknown resource of the whole pod',
      { 'spec.resources': { requests: { disk: 1 } } },
      [/requests\[disk\]: Invalid value: "disk": must be a standard resource type or fully qualified$/],
    ],
  ])('%s, with all that is wrong about it', (_what, fields, expected) => {
    expect(problemsOf(fields)).toEqual(expected.map((pattern): unknown => expect.stringMatching(pattern)))
  })

  it('everything at once, not only the first', () => {
    expect(problemsOf({ 'metadata.name': 'A', [`${c0}.name`]: 'B', [`${c0}.image`]: '' })).toHaveLength(3)
  })

  it('only warns of fractions of bytes', () => {
    const pod = podFromManifest(
      withFields({
        [`${c0}.resources`]: { limits: { memory: '100m' }, requests: { memory: '50m' } },
        'spec.volumes': [{ name: 'dir', emptyDir: { sizeLimit: '1m' } }],
        'spec.overhead': { memory: '1.5', cpu: '1m' },
      }),
    )
    const warning = (path: string, amount: string): string =>
      `warning ${path}: fractional byte value "${amount}" is invalid, must be an integer`
    expect(
      validatePod(pod).map(
        ({ severity, path, message }) => `${severity} ${formatFieldPath(path)}: ${message}`,
      ),
    ).toEqual([
      warning('spec.overhead.limits[memory]', '1500m'),
      warning('spec.volumes[0].emptyDir.sizeLimit', '1m'),
      warning('spec.containers[0].resources.limits[memory]', '100m'),
      warning('spec.containers[0].resources.requests[memory]', '50m'),
    ])
  })

  it('only warns of a port of the host’s IPv6 loopback, which no packet comes to a pod from', () => {
    const problems = (hostIP: string, hostNetwork: boolean) => {
      const ports = [{ containerPort: 80, hostPort: 80, hostIP }]
      return validatePod(
        podFromManifest(withFields({ [`${c0}.ports`]: ports, 'spec.hostNetwork': hostNetwork })),
      )
    }
    expect(problems('::1', false)).toMatchObject([
      { severity: 'warning', path: ['spec', 'containers', 0, 'ports', 0, 'hostIP'] },
    ])
    expect([...problems('::1', true), ...problems('127.0.0.1', false), ...problems('::', false)]).toEqual([])
  })

  it('only warns of resources that it hands out none of', () => {
    const limits = { 'ephemeral-storage': '1Gi', 'nvidia.com/gpu': '1' }
    const pod = podFromManifest(withFields({ [`${c0}.resources.limits`]: limits }))
    expect(validatePod(pod)).toEqual([
      {
        severity: 'warning',
        path: ['spec', 'containers', 0, 'resources', 'limits', 'nvidia.com/gpu'],
        message: 'podd hands out no devices: the status of the node must say that it has them',
      },
    ])
  })
})
