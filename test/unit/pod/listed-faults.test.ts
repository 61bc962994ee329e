import { describe, expect, it } from 'vitest'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { fuzzedText } from '../../judge/fuzzed-text.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { slowness } from '../../support/slowness.ts'

const head = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n'
const good = `${head}spec: {containers: [{name: a, image: b}]}\n`
const spec = (fields: string): string => `${head}spec: {containers: [{name: a, image: b}], ${fields}}\n`
const container = (fields: string): string => `${head}spec: {containers: [{name: a, image: b, ${fields}}]}\n`

async function errorsOf(text: string): Promise<readonly string[]> {
  const { problems } = await decodeDocuments(text, { path: 'p.yaml' })
  return problems
    .filter(({ severity }) => severity === 'error')
    .map(({ place, field, message }) => {
      const at = `${place.line}:${place.column}`
      return field === undefined ? `${at}: ${message}` : `${at}: ${field}: ${message}`
    })
}

describe('refused as by the API server', () => {
  it.each([
    [spec('affinity: 5'), 'spec.affinity: Invalid value: must be an object'],
    [spec('affinity: {nodeAfinity: {}}'), 'unknown field "nodeAfinity" in spec.affinity'],
    [spec('nodeSelector: [a]'), 'spec.nodeSelector: Invalid value'],
    [
      spec('tolerations: [{key: a, operator: Foo}]'),
      'spec.tolerations[0].operator: Unsupported value: "Foo"',
    ],
    [
      spec('topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]'),
      'maxSkew: Invalid value: 0: must be greater than zero',
    ],
    [spec('automountServiceAccountToken: "no"'), 'automountServiceAccountToken: Invalid value'],
    [spec('enableServiceLinks: 3'), 'enableServiceLinks: Invalid value'],
    [spec('preemptionPolicy: Foo'), 'preemptionPolicy: Unsupported value: "Foo"'],
    [spec('serviceAccountName: Foo_Bar'), 'serviceAccountName: Invalid value: "Foo_Bar"'],
    [spec('nodeName: Foo_Bar'), 'nodeName: Invalid value: "Foo_Bar"'],
    [spec('priorityClassName: Foo_Bar'), 'priorityClassName: Invalid value: "Foo_Bar"'],
    [spec('runtimeClassName: A_B'), 'runtimeClassName: Invalid value: "A_B"'],
    [spec('dnsConfig: {searches: ["-x"]}'), 'dnsConfig.searches[0]: Invalid value: "-x"'],
    [
      spec('securityContext: {supplementalGroupsPolicy: ""}'),
      'supplementalGroupsPolicy: Unsupported value: ""',
    ],
    [
      container('resources: {limits: {requests.example.com/a: 1}}'),
      `"requests.example.com/a": doesn't follow extended resource name standard`,
    ],
    [spec(`hostNetwork: "${'x'.repeat(60)}"`), `must be true or false, not the string "${'x'.repeat(60)}"`],
    [spec(`hostNetwork: "${'x'.repeat(61)}"`), `the string "${'x'.repeat(60)}…"`],
    [
      container('resources: {limits: {cpu: null}, requests: {cpu: 1}}'),
      'resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 0',
    ],
    [
      container('securityContext: {appArmorProfile: {type: Localhost, localhostProfile: " a"}}'),
      'must not be padded with whitespace',
    ],
    [
      spec('hostNetwork: true, securityContext: {sysctls: [{name: net.core.somaxconn, value: "1"}]}'),
      `sysctls[0].name: Invalid value: "net.core.somaxconn": may not be specified when 'hostNetwork' is true`,
    ],
    [
      spec('resources: {limits: {ephemeral-storage: 1Gi}}'),
      'spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage"',
    ],
    [
      container('lifecycle: {stopSignal: SIGINT}'),
      'lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`',
    ],
    [container('args: ["a\u0001b"]'), '4:50: a control character (U+0001)'],
    [container('args: [.inf]'), 'a number that JSON has no word for'],
    [`%YAML 1.2\n---\n${good}`, '1:1: Kubernetes reads YAML 1.1'],
    [`%FOO bar\n---\n${good}`, '1:1: a line that begins with `%` is a directive'],
  ])('%j', async (text, expected) => {
    expect((await errorsOf(text)).join('\n')).toContain(expected)
  })
})

it.each([
  ['[', ']'],
  ['{a: ', '}'],
])('takes %j within itself a hundred levels deep and no deeper', async (open, close) => {
  const errors = async (levels: number) =>
    errorsOf(
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: ${open.repeat(levels)}${close.repeat(levels)}\n`,
    )
  expect((await errors(90)).join()).not.toContain('nested deeper')
  expect((await errors(110)).join()).toContain('nested deeper than 100 levels')
})

it('takes several JSON documents of which one is none for no documents', async () => {
  const one =
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b"}]}}'
  const { documents, problems } = await decodeDocuments(`${one}\n{"b":}\n`, { path: 'p.json' })
  expect(documents).toEqual([])
  expect(problems).toMatchObject([{ place: { line: 2, column: 1 } }])
})

it('looks into the first of several handlers alone, in the order of the API', async () => {
  const handlers = ['exec: {command: []}', 'httpGet: {port: 0}', 'tcpSocket: {port: 0}', 'grpc: {port: 0}']
  for (const [at, field] of ['exec.command', 'httpGet.port', 'tcpSocket.port', 'grpc.port'].entries()) {
    const errors = await errorsOf(container(`readinessProbe: {${handlers.slice(at).reverse().join(', ')}}`))
    const inside = errors.flatMap((error) => /Probe\.(\w+\.(?:port|command))/u.exec(error)?.[1] ?? [])
    expect(inside).toEqual([field])
  }
})

describe('taken as by the API server', () => {
  it.each([
    container('args: ["it\\\'s"]'),
    good.replaceAll('\n', '\r'),
    container('args: [!!binary aGVsbG8=]'),
    container('resources: {limits: {cpu: "1 "}}'),
    container('args: [null]'),
    spec('terminationGracePeriodSeconds: -5'),
    `${head}spec: {initContainers: [{name: s, image: b, restartPolicy: Always, ports: [&p {containerPort: 80, hostPort: 80}]}], containers: [{name: a, image: b, ports: [*p]}]}\n`,
    `${head}spec: {resources: {limits: {cpu: 1}}, initContainers: [{name: i, image: b, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}], containers: [{name: a, image: b}]}\n`,
    `${head}spec: {volumes: [{name: v, image: {reference: c}}], containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /v, subPath: x}]}]}\n`,
    `${head}spec: {os: {name: linux}, containers: [{name: a, image: b, lifecycle: {stopSignal: SIGRTMIN+3}}]}\n`,
    container('readinessProbe: {httpGet: {port: 1, httpHeaders: [{name: A}]}}'),
    container(
      'restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: []}}]',
    ),
    'apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\n',
    'apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}\n',
  ])('%j', async (text) => {
    expect(await errorsOf(text)).toEqual([])
  })

  it('JSON documents one after the other, with the places of what is wrong', async () => {
    const one = (name: string, image: string): string =>
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"containers":[{"name":"a","image":${image}}]}}`
    const { documents } = await decodeDocuments(`${one('a', '"b"')}\n${one('b', '"b"')}\n`, {
      path: 'p.json',
    })
    expect(documents).toHaveLength(2)
    expect(await errorsOf(`${one('a', '"b"')}\n${one('b', '5')}`)).toEqual([
      expect.stringMatching(/^2:\d+: spec.containers\[0\].image: Invalid value: must be a string/),
    ])
  })
})

describe('all at once', () => {
  it('whatever is wrong with types, names, values and support', async () => {
    const text = `${head}spec:
  hostNetwork: "yes"
  contaners: []
  dnsPolicy: Foo
  schedulingGates: [{name: a}]
  containers:
  - name: A_B
    ports: [{containerPort: 0}]
`
    expect((await errorsOf(text)).map((error) => error.replace(/^\d+:\d+: ([^:]+):.*$/s, '$1'))).toEqual([
      'spec.hostNetwork',
      'spec.contaners',
      'spec.dnsPolicy',
      'spec.schedulingGates',
      'spec.containers[0].image',
      'spec.containers[0].name',
      'spec.containers[0].ports[0].containerPort',
    ])
  })

  it('inside of fields that podd refuses, of types and names: values there count for nothing', async () => {
    const text = `${head}spec:
  schedulingGates: [{name: "-"}]
  resourceClaims: [{name: c}]
  containers:
  - name: a
    image: b
    lifecycle: {postStart: {tcpSocket: {port: 0}}}
    volumeDevices: [{name: d}]
  volumes:
  - name: v
    csi: {readOnly: "yes"}
  - name: w
    nfs: {server: s, path: p}
`
    const errors = (await errorsOf(text)).filter((error) => !error.includes('not supported'))
    expect(errors.map((error) => error.replace(/^\d+:\d+: ([^:]+): .*$/s, '$1')).sort()).toEqual([
      'spec.containers[0].lifecycle.postStart.tcpSocket.port',
      'spec.volumes[0].csi.readOnly',
    ])
  })

  it('of several handlers or kinds of volume the first alone', async () => {
    const probe = 'readinessProbe: {exec: {command: [a]}, httpGet: {port: 0, scheme: FTP}}'
    expect(await errorsOf(container(probe))).toEqual([
      expect.stringContaining('httpGet: Forbidden: may not specify more than 1 handler type'),
    ])
    const volume = 'volumes: [{name: v, emptyDir: {}, hostPath: {path: ""}, csi: {driver: d}}]'
    expect((await errorsOf(spec(volume))).filter((error) => error.includes('Forbidden'))).toHaveLength(2)
  })

  it('without what merely follows from another error', async () => {
    expect(await errorsOf(good.replace('name: web', 'generateName: web-'))).toEqual([
      expect.stringContaining('metadata.generateName'),
    ])
    expect(await errorsOf(container('readinessProbe: {htpGet: {port: 1}}'))).toEqual([
      expect.stringContaining('unknown field "htpGet"'),
    ])
  })
})

describe('in plain words', () => {
  const text = (begin: string, last: string): string =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  main.c: ${begin}\n    a\n    ${last}`

  it.each([
    [container('args: [{{ .Values.x }}]'), 'a template that was not rendered'],
    [`${head}spec:\n  {{- if .Values.x }}\n  containers: []\n`, 'a template that was not rendered'],
    [
      `${head}<<<<<<< HEAD\nspec: {containers: []}\n=======\nspec: {}\n>>>>>>> b\n`,
      'a conflict that git could not',
    ],
    [
      `${head}spec:\n\u00A0\u00A0containers:\n\u00A0\u00A0- {name: main, image: b}\n`,
      'U+00A0 at the beginning of a line',
    ],
    [`// the web\n{"kind": "Pod",\n"apiVersion": "v1"}\n`, 'comments begin with `#` here'],
    [`// the web\n{"kind": "Pod"}\n`, 'comments begin with `#` here'],
    [`${head}// the web\nspec: {}\n`, 'comments begin with `#` here'],
    [`${text('|', '// end')}\n other: x\n`, 'begins at another column'],
    [`${text('>-', '/* end */')}\n\n other: x\n`, 'begins at another column'],
    [`${text('"', '// end"')}\n other: x\n`, 'begins at another column'],
    [`${text('|', '\u00A0end')}\n other: x\n`, 'begins at another column'],
    [`${text('"\\', '// \\d"')}\n`, 'in double quotes a backslash'],
    [`${text('|', 'Heading\n    =======')}\n other: x\n`, 'begins at another column'],
    ['<!DOCTYPE html>\n<html><body>Log in</body></html>\n', 'a page of HTML'],
    [container('image: "b" c'), 'text behind a value that is complete'],
    [`${head}spec: {containers: [\n`, 'is not closed'],
    [container('args: ["a]'), 'a quote that is opened here or above is not closed'],
    [container('args: ["a" b]'), 'a `,` is missing in brackets'],
    [`${head}spec: - a\n`, 'a list begins on a line of its own'],
    [container('args: [a, , b]'), 'a `,` too many in brackets'],
    [`${head}spec: }\n`, 'a bracket closes here that none opened'],
    [container('workingDir: &a &b /x'), 'two anchors'],
    [container('workingDir: !!str !!int 5'), 'two tags'],
    ['- - a\n b\n', 'an item of a list without its `-`'],
    [`${head}spec:\n  a: b\nc\n`, 'a `:` is missing behind the name of a field'],
    ['apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n', 'a tab at the beginning of a line'],
    ['apiVersion: v1\nkind Pod\nmetadata: {name: a}\n', 'or none on the line above'],
    ['apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n labels: {}\n', 'begins at another column'],
    [
      'apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n',
      'not supported: ResourceClaim needs a control plane',
    ],
    ['apiVersion: apps/v1\nkind: Deploymnt\n', 'not supported: "Deploymnt"; did you mean "Deployment"?'],
    [spec('os: {name: plan9}'), 'Unsupported value: "plan9": supported values: "linux"'],
  ])('%j', async (text, expected) => {
    const errors = await errorsOf(text)
    expect(errors.join('\n')).toContain(expected)
    expect(errors.join('\n')).not.toMatch(/scalar|flow|collection|token|node|block-seq|"windows"/i)
  })
})

describe('bytes that are no text', () => {
  it.each([
    [Buffer.from(`\uFEFF${good}`, 'utf16le'), '1:1: not a text in UTF-8 but in UTF-16'],
    [Buffer.concat([Buffer.from('a: b\nc: '), Buffer.from([0xff])]), '2:4: not a text in UTF-8'],
    [Buffer.from('a: b\nc: d\nef\0'), '3:3: not a text: there is a NUL byte in it'],
  ])('have a place: %#', async (bytes, expected) => {
    const { problems } = await decodeDocuments(bytes, { path: 'p.yaml' })
    expect(problems.map(({ place, message }) => `${place.line}:${place.column}: ${message}`)).toEqual([
      expect.stringContaining(expected),
    ])
  })
})

describe('good documents that are cut off, mutated or changed byte by byte', () => {
  it(
    'never throw, and are complained of or held in their last good form',
    async () => {
      const random = seededRandom(7)
      for (let index = 0; index < 1500; index += 1) {
        const text = fuzzedText(random)
        const { documents, problems, heldObjects, holdsAll } = await decodeDocuments(text, { path: 'p.yaml' })
        const isBad = problems.some(({ severity }) => severity === 'error')
        const isOther = problems.some(({ field }) => field?.endsWith('kind') === true)
        const isHeld = holdsAll || heldObjects.length > 0 || documents.length > 0 || isOther
        expect({ text, isLost: isBad && !isHeld }).toEqual({ text, isLost: false })
        expect(problems.map(({ message }) => message).join()).not.toContain('podd cannot check')
      }
    },
    300_000 * slowness,
  )
})
