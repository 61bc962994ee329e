import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import type { FieldValidation } from '../../../src/pod/schema/check-value.ts'
import type { DecodeResult } from '../../../src/pod/decode/decode-documents.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { isObjectDocument, isPodDocument } from '../../../src/pod/objects/document.ts'
import { formatProblem } from '../../../src/cli/output/report-format.ts'
import { sampleManifest, withField, withFields } from './sample-pod.ts'

const path = 'pods/web.yaml'

const podsOf = ({ documents }: DecodeResult) => documents.filter((document) => isPodDocument(document))

async function decode(text: string | Uint8Array, fieldValidation: FieldValidation = 'Strict') {
  const result = await decodeDocuments(text, { path, fieldValidation })
  return {
    pods: podsOf(result).map(({ pod }) => pod.metadata.name),
    objects: result.documents.filter((document) => isObjectDocument(document)).map(({ object }) => object),
    problems: result.problems.map((problem) => formatProblem(problem).replace(/^pods\/web.yaml:(?! )/, '')),
    held: result.heldObjects,
    holdsAll: result.holdsAll,
    documents: podsOf(result),
  }
}

/** A pod whose spec goes on with these lines. */
const yaml = (...lines: readonly string[]): string =>
  [
    'apiVersion: v1',
    'kind: Pod',
    'metadata:',
    '  name: web',
    'spec:',
    ...lines.map((line) => `  ${line}`),
    '',
  ].join('\n')
const container = (...lines: readonly string[]): string =>
  yaml('containers:', '- name: main', '  image: busybox', ...lines.map((line) => `  ${line}`))

describe('what is taken', () => {
  it.each([
    ['comments', '\n  # nothing\n\n'],
    ['empty documents', '---\n# a: b\n---\n~\n'],
  ])('of %s is nothing, which is said, and ends what the file gave before', async (_what, text) => {
    expect(await decode(text)).toMatchObject({
      pods: [],
      problems: ['pods/web.yaml: holds nothing: there are only comments and empty documents in it'],
      held: [],
      holdsAll: false,
    })
  })

  it('is a defaulted Pod with its manifest as it was written', async () => {
    const { documents, problems } = await decode(
      container('resources:', '  limits: {cpu: 0.5, memory: 64Mi}'),
    )
    expect(problems).toEqual([])
    expect(documents[0]?.place).toEqual({ path, line: 1, column: 1 })
    expect(documents[0]?.pod).toMatchObject({
      metadata: { name: 'web', namespace: 'default', labels: {} },
      spec: {
        restartPolicy: 'Always',
        containers: [
          {
            imagePullPolicy: 'Always',
            resources: { limits: { cpu: '500m', memory: '64Mi' }, requests: { cpu: '500m', memory: '64Mi' } },
          },
        ],
      },
    })
    expect(documents[0]?.manifest).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: {
        containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: 0.5, memory: '64Mi' } } }],
      },
    })
  })

  const one = JSON.stringify(sampleManifest)
  const two = JSON.stringify(withFields({ 'metadata.name': 'two' }))
  const listOf = (kind: string, ...items: string[]): string =>
    `{"apiVersion":"v1","kind":"${kind}","metadata":{"resourceVersion":""},"items":[${items.join(',')}]}`

  it.each([
    ['JSON', one, ['web']],
    ['indented JSON with a byte order mark', `\uFEFF${JSON.stringify(sampleManifest, null, '\t')}`, ['web']],
    ['YAML with Windows line ends', container().replaceAll('\n', '\r\n'), ['web']],
    [
      'several documents, some of them empty',
      `---\n# none\n---\n${one}\n---\n\n---\n${two}\n...\n---\n`,
      ['web', 'two'],
    ],
    ['a document that starts on the line of its marker', `--- ${one}\n--- ${two}\n`, ['web', 'two']],
    ['documents after directives', `%YAML 1.1\n---\n${one}\n`, ['web']],
    ['a List', listOf('List', one, two), ['web', 'two']],
    ['a PodList', listOf('PodList', one, two), ['web', 'two']],
    [
      'a PodList whose items don’t say what they are',
      listOf('PodList', '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"b"}]}}'),
      ['x'],
    ],
    ['an empty list', listOf('List'), []],
    ['--- inside a block text', container('args:', '- |', '  a', '  ---', '  b'), ['web']],
    [
      'anchors, aliases and merges',
      yaml('containers:', '- &a', '  name: main', '  image: busybox', '- <<: *a', '  name: other'),
      ['web'],
    ],
    ['nulls for what is left out', container('ports: null', 'command: ~', 'resources:'), ['web']],
    ['empty words for what has a default', container('imagePullPolicy: ""'), ['web']],
    ['what asks for nothing', container('securityContext: {}', 'stdin: false', 'volumeMounts: []'), ['web']],
    [
      'what a dry run writes',
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","creationTimestamp":null},"spec":{"containers":[{"name":"a","image":"b","resources":{}}]},"status":{}}',
      ['web'],
    ],
  ])('%s', async (_what, text, pods) => {
    expect(await decode(text)).toMatchObject({ pods, problems: [], held: [], holdsAll: false })
  })

  it.each(['', ' \n\t\n', '\uFEFF'])(
    'an empty text (%j) is a problem, and holds what it gave before',
    async (text) => {
      expect(await decode(text)).toMatchObject({
        pods: [],
        problems: [expect.stringContaining('empty: what it gave before stays')],
        holdsAll: true,
      })
    },
  )
})

describe('what a text says, whatever podd understands of it', () => {
  const written = async (text: string): Promise<string | undefined> => {
    const { documents } = await decodeDocuments(text, { path })
    expect(documents.length).toBeGreaterThan(0)
    expect(new Set(documents.map((document) => document.written)).size).toBe(1)
    return documents[0]?.written
  }
  const account = '---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n'
  const config = '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n'

  it.each([
    ['comments and blank lines', `# a pod\n\n${container('stdin: true # reads')}\n`],
    [
      'JSON for YAML, and another order of the keys',
      '{"spec":{"containers":[{"stdin":true,"image":"busybox","name":"main"}]},"metadata":{"name":"web"},"kind":"Pod","apiVersion":"v1"}',
    ],
    [
      'what an API server adds',
      container('stdin: true')
        .replace('  name: web\n', '  name: web\n  uid: u-1\n  resourceVersion: "7"\n')
        .concat('status: {phase: Running}\n'),
    ],
  ])('stays with %s', async (_what, text) => {
    expect(await written(text)).toBe(await written(container('stdin: true')))
  })

  it('stays with another order of its documents', async () => {
    const pod = container('stdin: true')
    expect(await written(`${pod}${config}`)).toBe(await written(`${config}---\n${pod}`))
  })

  it.each([
    [
      'a field that podd takes without effect',
      yaml('serviceAccountName: web', 'containers: [{name: main, image: busybox}]'),
    ],
    ['a document that podd takes without effect', `${container()}${account}`],
    ['another document', `${container()}${config}`],
    ['a null', container('command: null')],
  ])('changes with %s', async (_what, text) => {
    expect(await written(text)).not.toBe(await written(container()))
  })

  it('is told of its good documents alone: what is bad counts in the form that it had before', async () => {
    const bad = '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndta: {}\n'
    expect(await written(`${container()}${bad}`)).toBe(await written(container()))
  })
})

describe('a negative terminationGracePeriodSeconds', () => {
  const spec = ['containers: [{name: a, image: b}]', 'terminationGracePeriodSeconds: -7'] as const

  it('is read as 1, in the record too, with the API server’s warning', async () => {
    const { documents, problems } = await decode(yaml(...spec))
    expect(problems).toEqual([
      '7:3: spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
    ])
    expect(documents[0]?.pod.spec.terminationGracePeriodSeconds).toBe(1)
    expect(documents[0]?.manifest['spec']).toMatchObject({ terminationGracePeriodSeconds: 1 })
  })

  it('counts as 1 for what has to fit into it', async () => {
    const sleep = 'lifecycle: {preStop: {sleep: {seconds: 2}}}'
    const { problems } = await decode(yaml(`containers: [{name: a, image: b, ${sleep}}]`, spec[1]))
    expect(problems).toContainEqual(
      expect.stringContaining('must be non-negative and less than terminationGracePeriodSeconds (1)'),
    )
  })

  it.each([-1, 0])('of a probe is refused, as in Kubernetes: %d', async (grace) => {
    const probe = `livenessProbe: {tcpSocket: {port: 80}, terminationGracePeriodSeconds: ${grace}}`
    const { pods, problems } = await decode(container(probe))
    expect(pods).toEqual([])
    expect(problems).toEqual([expect.stringContaining(`Invalid value: ${grace}: must be greater than 0`)])
  })
})

describe('YAML means what it means to Kubernetes', () => {
  it('in numbers, words and tags', async () => {
    const { documents } = await decode(
      yaml(
        'containers: [{name: a, image: b}]',
        'terminationGracePeriodSeconds: 0644',
        'hostNetwork: yes',
        'hostname: !!str 12',
        'activeDeadlineSeconds: !!int "7"',
      ),
    )
    expect(documents[0]?.pod.spec).toMatchObject({
      terminationGracePeriodSeconds: 420,
      hostNetwork: true,
      hostname: '12',
      activeDeadlineSeconds: 7,
    })
  })

  it.each([
    ['env: [{name: A, value: 8080}]', 'the number 8080', '"8080"'],
    ['env: [{name: A, value: yes}]', 'the boolean true', '"yes"'],
    ['env: [{name: A, value: 1.20}]', 'the number 1.2', '"1.20"'],
    ['env: [{name: A, value: 0123}]', 'the number 83', '"0123"'],
    ['args: [1_000]', 'the number 1000', '"1_000"'],
  ])('%s is no string', async (line, what, quoted) => {
    const { problems } = await decode(container(line))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(`must be a string, not ${what} (put quotes around it: ${quoted})`)
  })
})

it('takes a Namespace beside a pod, of which nothing is to be made', async () => {
  const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n'
  const text = `${namespace}---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: a, image: b}]}\n`
  expect(await decode(text)).toMatchObject({ pods: ['web'], problems: [] })
})

describe('what is refused', () => {
  const noClaims =
    '9:17: spec.containers[0].resources.claims: not supported: dynamic resource allocation needs a control plane'
  it.each<[string, string, readonly string[]]>([
    [
      'a field that podd does not have, whatever is in it',
      container('resources: {claims: [{name: ""}]}'),
      [noClaims],
    ],
    [
      'in such a field what Kubernetes could not read either: a value of another type',
      container('resources: {claims: [{name: [a]}]}'),
      [
        noClaims,
        '9:27: spec.containers[0].resources.claims[0].name: Invalid value: must be a string, not a list',
      ],
    ],
    [
      'in such a field what Kubernetes could not read either: an unknown field',
      container('resources: {claims: [{name: a, zzzzzz: b}]}'),
      [
        noClaims,
        '9:36: spec.containers[0].resources.claims[0].zzzzzz: unknown field "zzzzzz" in spec.containers[0].resources.claims[0]',
      ],
    ],
    [
      'an unknown field',
      yaml('contaners: []'),
      ['6:3: spec.contaners: unknown field "contaners" in spec; did you mean "containers"?'],
    ],
    [
      'a field in the wrong case',
      container('Image: x'),
      ['9:5: spec.containers[0].Image: unknown field "Image" in spec.containers[0]; did you mean "image"?'],
    ],
    [
      'a field that is like no other',
      container('zzzzzz: 1'),
      ['9:5: spec.containers[0].zzzzzz: unknown field "zzzzzz" in spec.containers[0]'],
    ],
    [
      'a field of objects’ own language',
      container('constructor: 1'),
      ['9:5: spec.containers[0].constructor: unknown field "constructor" in spec.containers[0]'],
    ],
    [
      'an unknown field at the top',
      `${container()}specc: {}\n`,
      ['9:1: specc: unknown field "specc" in the document; did you mean "spec"?'],
    ],
    ['a missing field', yaml('containers: [{name: a}]'), ['6:16: spec.containers[0].image: Required value']],
    [
      'a list for an object',
      yaml('containers: {}'),
      ['6:3: spec.containers: Invalid value: must be a list, not an object'],
    ],
    [
      'a word that is not allowed',
      container('imagePullPolicy: Sometimes'),
      [
        '9:5: spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
      ],
    ],
    [
      'a quantity that is none',
      container('resources: {limits: {cpu: 1x}}'),
      [
        `9:26: spec.containers[0].resources.limits[cpu]: Invalid value: "1x": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      ],
    ],
    [
      'a fraction for an integer',
      container('ports: [{containerPort: 1.5}]'),
      [
        '9:14: spec.containers[0].ports[0].containerPort: Invalid value: must be an integer, not the number 1.5',
      ],
    ],
    [
      'an integer too large',
      yaml('containers: [{name: a, image: b}]', 'terminationGracePeriodSeconds: 9223372036854775807'),
      ['7:3: spec.terminationGracePeriodSeconds: Invalid value: 9223372036854776000: out of range'],
    ],
    [
      'a refused field',
      container('lifecycle: {postStart: {tcpSocket: {port: 1}}}'),
      [
        '9:29: spec.containers[0].lifecycle.postStart.tcpSocket: not supported: Kubernetes never implemented tcpSocket hooks: they always fail there',
      ],
    ],
    [
      'a refused volume',
      yaml('containers: [{name: a, image: b}]', 'volumes: [{name: v, nfs: {server: s, path: /}}]'),
      [
        '7:23: spec.volumes[0].nfs: not supported: network volumes are not supported; mount it on the host and use a hostPath',
      ],
    ],
    [
      'what validation finds',
      container('ports:', '- containerPort: 70000'),
      [
        '10:7: spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
      ],
    ],
    ['one key twice', container('image: x'), ['9:5: key "image" stands twice']],
    [
      'an anchor that isn’t there',
      yaml('containers: *a'),
      ['6:15: an alias whose anchor does not stand before it; a value that begins with `*` needs quotes'],
    ],
    [
      'an anchor inside itself',
      yaml('containers: &a [*a]'),
      ['6:19: an alias that refers to what it stands in'],
    ],
    [
      'an unknown tag',
      yaml('containers: !foo []'),
      ['6:20: podd does not know this tag; a value that begins with `!` needs quotes'],
    ],
    ['a merge of no mapping', yaml('<<: 1'), ['6:3: << takes a mapping, or a list of mappings']],
    [
      'a port of an ephemeral container',
      yaml(
        'containers: [{name: c, image: i}]\n  ephemeralContainers: [{name: e, image: i, ports: [{containerPort: 1}]}]',
      ),
      ['7:45: spec.ephemeralContainers[0].ports: not supported for ephemeral containers, in Kubernetes too'],
    ],
    ['no object', '- a\n', ['1:1: must be an object with apiVersion and kind']],
    ['no kind', 'apiVersion: v1\nmetadata: {name: web}\n', ['1:1: kind: Required value']],
    [
      'another version',
      container().replace('v1', 'v2'),
      ['1:1: apiVersion: Unsupported value: "v2": supported values: "v1"'],
    ],
    [
      'JSON with one key twice',
      '{"apiVersion":"v1","kind":"Pods","kind":"Pod"}',
      ['1:34: key "kind" stands twice'],
    ],
  ])('%s', async (_what, text, problems) => {
    expect(await decode(text)).toMatchObject({ pods: [], problems })
  })

  it.each([
    ['ReplicaSet', 'not supported: podd makes no pods from a ReplicaSet (write a Deployment)', false],
    [
      'Ingress',
      'not supported: Ingress needs a control plane (run a reverse proxy as a pod of its own, and open its port with hostPort)',
      false,
    ],
    [
      'HorizontalPodAutoscaler',
      'not supported: HorizontalPodAutoscaler needs a control plane (remove it, and write how many pods shall run)',
      false,
    ],
    [
      'NetworkPolicy',
      'not supported: podd enforces no NetworkPolicy, and takes none without effect, as the pods that it protects would be open (bound the network by the firewall of the host, or remove the document where its pods may be open to all pods of this host)',
      false,
    ],
    [
      'Role',
      'not supported: a Role of another group than rbac.authorization.k8s.io (write its apiVersion as Kubernetes has it)',
      false,
    ],
    ['Lease', 'not supported: podd keeps a Lease only for clients of its API', false],
    ['pod', 'not supported: "pod"; did you mean "Pod"?', true],
    [
      'Quux',
      'not supported: "Quux"; podd takes Pod, PodList, List, ConfigMap, Secret, PersistentVolumeClaim, Service, RuntimeClass, PriorityClass, Deployment, StatefulSet, DaemonSet, Job, CronJob',
      true,
    ],
  ])('kind %s', async (kind, message, holds) => {
    const { problems, held, holdsAll } = await decode(
      `apiVersion: v1\nkind: ${kind}\nmetadata: {name: web}\n`,
    )
    expect(problems).toEqual([`2:1: kind: ${message}`])
    // A typo in the kind may be a pod that runs; a ReplicaSet never was one.
    expect({ held, holdsAll }).toEqual({
      held: holds
        ? [
            'default/web',
            'ConfigMap/default/web',
            'Secret/default/web',
            'PersistentVolumeClaim/default/web',
            'Service/default/web',
            'RuntimeClass/web',
            'PriorityClass/web',
            'Deployment/default/web',
            'StatefulSet/default/web',
            'DaemonSet/default/web',
            'Job/default/web',
            'CronJob/default/web',
          ]
        : [],
      holdsAll: false,
    })
  })

  it('takes what has no effect on one host, with one warning for the text', async () => {
    const given = [
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n',
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: web}\nrules: []\n',
      container(),
      'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n',
      'apiVersion: monitoring.example/v1\nkind: ServiceMonitor\nmetadata: {name: web}\n',
    ].join('---\n')
    const { documents, problems } = await decodeDocuments(given, { path, ignoreKinds: ['ServiceMonitor'] })
    expect(documents).toHaveLength(1)
    expect(problems).toEqual([
      {
        severity: 'warning',
        place: { path, line: 1, column: 1 },
        message:
          'taken without effect, as nothing on one host goes by it: ServiceAccount web, Role web, PodDisruptionBudget web, ServiceMonitor web',
        idle: ['ServiceAccount web', 'Role web', 'PodDisruptionBudget web', 'ServiceMonitor web'],
      },
    ])
  })

  it.each([
    ['storage.k8s.io/v1', 'StorageClass'],
    ['networking.k8s.io/v1', 'IngressClass'],
    ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
  ])('takes what only describes what podd leaves out, with a warning: %s %s', async (apiVersion, kind) => {
    const text = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: fast}\n`
    expect(await decode(text)).toMatchObject({
      problems: [`1:1: taken without effect, as nothing on one host goes by it: ${kind} fast`],
      held: [],
      holdsAll: false,
    })
    expect((await decode(text.replace(apiVersion, 'v1'))).problems).toMatchObject([
      expect.stringContaining(`a ${kind} of another group than ${apiVersion.split('/')[0]}`),
    ])
  })

  it('refuses custom objects that ignoreKinds does not name, and holds no pod of their names', async () => {
    const monitor = 'apiVersion: monitoring.example/v1\nkind: ServiceMonitor\nmetadata: {name: web}\n'
    expect(await decode(monitor)).toMatchObject({
      problems: [
        '2:1: kind: not supported: a "ServiceMonitor" of monitoring.example is a custom object, for which there is nobody on this host (where its pods do without it, have it taken without effect: ignoreKinds: [ServiceMonitor] in podd\'s configuration)',
      ],
      held: [],
      holdsAll: false,
    })
  })

  it('says that the pull secrets of a ServiceAccount have no effect', async () => {
    const account =
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\nimagePullSecrets: [{name: a}]\n'
    const { problems } = await decodeDocuments(account, { path })
    expect(problems.map(({ severity, field, message }) => [severity, field, message])).toEqual([
      ['warning', undefined, 'taken without effect, as nothing on one host goes by it: ServiceAccount web'],
      ['warning', 'imagePullSecrets', 'has no effect: podd takes none from a ServiceAccount'],
    ])
  })

  it.each([
    ['List', 'not supported: a List inside another list (put its items into the outer one)'],
    ['PodList', 'not supported: a PodList inside another list (put its items into the outer one)'],
  ])('a %s in a List', async (kind, message) => {
    const nested = `{"apiVersion":"v1","kind":"${kind}","items":[]}`
    const { problems } = await decode(`{"apiVersion":"v1","kind":"List","items":[${nested}]}`)
    expect(problems).toEqual([`1:62: items[0].kind: ${message}`])
  })

  it('takes a key that stands twice with one value, with a warning, in YAML and in JSON', async () => {
    expect(await decode(container('image: busybox'))).toMatchObject({
      pods: ['web'],
      problems: ['9:5: key "image" stands twice, with the same value'],
    })
    const text = '{"apiVersion":"v1","kind":"ConfigMap","kind":"ConfigMap","metadata":{"name":"a"}}'
    expect(await decode(text)).toMatchObject({
      objects: [{ kind: 'ConfigMap' }],
      problems: ['1:39: key "kind" stands twice, with the same value'],
    })
  })

  it('takes a list of objects of one kind, whose items need not say it', async () => {
    const configs =
      'apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- {kind: ConfigMap, metadata: {name: b}}\n'
    const roles = 'apiVersion: apps/v1\nkind: DeploymentList\nmetadata: {}\nitems: []\n'
    expect(await decode(`${configs}---\n${roles}`)).toMatchObject({
      objects: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
      holdsAll: false,
    })
    const other = 'apiVersion: v1\nkind: ConfigMapList\nitems:\n- {kind: Pod, metadata: {name: a}}\n'
    expect((await decode(other)).problems).toEqual(['4:3: items[0].spec.containers: Required value'])
  })

  it('a list of objects of one kind in a List', async () => {
    const nested = '{"apiVersion":"v1","kind":"ConfigMapList","items":[]}'
    const { problems } = await decode(`{"apiVersion":"v1","kind":"List","items":[${nested}]}`)
    expect(problems).toEqual([
      '1:62: items[0].kind: not supported: a ConfigMapList inside another list (put its items into the outer one)',
    ])
  })

  it.each<[string, string | Uint8Array, string]>([
    ['bytes that are no text', new Uint8Array([0x61, 0xff]), '1:2: not a text in UTF-8'],
    ['a NUL', 'a: "\0"', '1:5: not a text: there is a NUL byte in it'],
    ['11 MiB', 'x'.repeat(11 * 1024 * 1024), `${path}: larger than 10 MiB`],
  ])('%s', async (_what, text, message) => {
    expect(await decode(text)).toMatchObject({ problems: [message], holdsAll: true })
  })

  it('a YAML document that is larger than an object may be, and takes the others', async () => {
    const good = container()
    const large = `${container()}# ${'x'.repeat(3 * 1024 * 1024)}\n`
    const { pods, problems } = await decode([good, large, good].join('---\n'))
    expect(pods).toEqual(['web', 'web'])
    expect(problems).toEqual([
      expect.stringMatching(/^\d+:\d+: the document has \d+ bytes, and a Kubernetes object/u),
    ])
  })

  it('a YAML document of more keys and values than podd reads, and takes the others', async () => {
    const many = `${container()}    args: [${'a,'.repeat(100_001)}]\n`
    const { pods, problems } = await decode([container(), many].join('---\n'))
    expect(pods).toEqual(['web'])
    expect(problems).toEqual([
      expect.stringMatching(/^\d+:\d+: the document has more than 100000 keys and values/u),
    ])
  })

  it('only what is wrong in a JSON document, which may have more', async () => {
    const args = Array.from({ length: 100_001 }, () => 'a')
    const spec = { containers: [{ name: 'main', image: 'a', args, imgae: 'b' }] }
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec })
    const { problems } = await decode(text)
    expect(problems).toEqual([expect.stringContaining('unknown field "imgae"')])
  })

  it('a document that grows without end from a few lines', async () => {
    const levels = Array.from({ length: 9 }, (_, index) =>
      index === 0
        ? 'a0: &a0 [x,x,x,x,x,x,x,x,x,x]'
        : `a${index}: &a${index} [${Array(10)
            .fill(`*a${index - 1}`)
            .join(',')}]`,
    )
    const { problems } = await decode(levels.join('\n'))
    expect(problems).toEqual([expect.stringContaining('aliases add more than 100000 values')])
  })

  it.each(['[', '{a: ', '- '])('a document that nests %j without end', async (opening) => {
    const { problems, holdsAll } = await decode(opening.repeat(50_000))
    expect(problems).toHaveLength(1)
    expect(holdsAll).toBe(true)
  })
})

describe('an apostrophe behind a backslash in double quotes', () => {
  const command = (text: string): string => container('command:', `  - ${text}`)

  it.each([
    [
      String.raw`"echo \"ADDRESS=\'address\'\nURL=\'x\'\" > /data/config.env"`,
      `echo "ADDRESS='address'\nURL='x'" > /data/config.env`,
    ],
    [String.raw`"\'"`, `'`],
    [String.raw`"\\'\'"`, String.raw`\''`],
    [String.raw`'\'''`, String.raw`\'`],
  ])('is one, as Kubernetes reads it: %s', async (text, expected) => {
    const { documents, problems } = await decode(command(text))
    expect(problems).toEqual([])
    expect(documents[0]?.pod.spec.containers[0]?.command).toEqual([expected])
  })

  it.each([String.raw`\q`, String.raw`\$`, String.raw`\xq`, String.raw`\1`])(
    'and %s is none',
    async (escape) => {
      const { problems } = await decode(command(String.raw`"a${escape} \'"`))
      expect(problems).toEqual([expect.stringMatching(/^\d+:\d+: in double quotes a backslash/u)])
    },
  )

  it('moves no place that it reports', async () => {
    const places = async (quote: string) => {
      const lines = [`args: ["${quote}", "${quote}", 7, {a: 1}]`, 'imag: x', `tty: "${quote}"`]
      const { problems } = await decode(container(...lines))
      return problems.map((problem) => problem.split(' ')[0])
    }
    // Two characters that are one, and two that are two.
    expect(await places(String.raw`\'`)).toEqual(await places('ab'))
  })
})

describe('what is no YAML', () => {
  it.each([
    ['!hunter2', 'a value that begins with `!` needs quotes'],
    ['!!hunter2', 'a value that begins with `!` needs quotes'],
    ['!<hunter2', 'a value that begins with `!` needs quotes'],
    ['!a!hunter2 x', 'a value that begins with `!` needs quotes'],
    ['*hunter2', 'a value that begins with `*` needs quotes'],
    ['*hunter2 x', ''],
    ['|hunter2', 'a value that begins with `|` or `>` needs quotes'],
    ['>-hunter2', 'a value that begins with `|` or `>` needs quotes'],
    ['@hunter2', 'a value that begins with `@`'],
    ['%hunter2', 'a value that begins with `@`, `%`'],
    ['`hunter2', 'a value that begins with `@`'],
    ['"\\hunter2"', 'in double quotes a backslash begins an escape sequence'],
    ['"hunter2', ''],
    ['"a" hunter2', ''],
    ['a: hunter2', ''],
    ['[hunter2', ''],
    ['a] hunter2: }', ''],
    ['x\n  - hunter2: *', ''],
    ['x\n%hunter2', ''],
    ['x\n%hunter2\n---\n', ''],
    ['x\n]hunter2', ''],
    ['x\n  hunter2', ''],
    ['&hunter2 *hunter2', ''],
    ['!hunter2 !hunter2 x', ''],
  ])('is told without a word of it: %j', async (value, message) => {
    const text = `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: ${value}\n`
    const { problems } = await decode(text)
    expect(problems.join('\n')).toContain(message)
    expect(problems.join('\n')).not.toContain('hunter2')
  })
})

describe('one bad document', () => {
  it('takes no other with it, and says which object to hold', async () => {
    const good = container()
    const texts = [
      good,
      good.replace('image:', 'imagee:').replace('web', 'bad'),
      'a: [\n',
      good.replace('web', 'last'),
    ]
    expect(await decode(texts.join('---\n'))).toMatchObject({
      pods: ['web', 'last'],
      problems: [
        expect.stringContaining('17:5: spec.containers[0].imagee'),
        expect.stringMatching(/^20:1: /),
      ],
      held: ['default/bad'],
      holdsAll: true,
    })
  })

  it('in a list is told by its index and place', async () => {
    const items = [sampleManifest, withField(sampleManifest, 'spec.containers.0.image', 1)]
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 1)
    const { pods, problems } = await decode(text)
    expect(pods).toEqual(['web'])
    expect(problems).toEqual([
      '30:7: items[1].spec.containers[0].image: Invalid value: must be a string, not the number 1 (put quotes around it: "1")',
    ])
  })

  it('among very many is counted, not listed', async () => {
    const { problems, held } = await decode(`${'- 1\n---\n'.repeat(120)}${container('x: 1')}`)
    expect(problems).toHaveLength(101)
    expect(problems.at(-1)).toBe(`${path}: and 21 more`)
    expect(held).toEqual(['default/web'])
  })

  it('holds everything when the list itself is broken', async () => {
    expect(await decode('{"apiVersion":"v1","kind":"PodList","itemz":[]}')).toMatchObject({
      problems: [expect.stringContaining('unknown field "itemz"')],
      holdsAll: true,
    })
  })
})

describe('annotations that the API server looks into', () => {
  const annotated = (key: string, value: string): JsonObject =>
    withFields({ 'metadata.annotations': { [key]: value } })
  const errorsOf = async (manifest: JsonObject): Promise<readonly string[]> =>
    (await decodeDocuments(JSON.stringify(manifest), { path })).problems
      .filter(({ severity }) => severity === 'error')
      .map(({ message }) => message)

  it.each(['0', '7', '-05', '-0', '-2147483648'])('take %s as a deletion cost', async (value) => {
    expect(await errorsOf(annotated('controller.kubernetes.io/pod-deletion-cost', value))).toEqual([])
  })

  it.each(['05', '+5', '', '-', '--5', '5.0', '2147483648'])('take %j as no deletion cost', async (value) => {
    expect(await errorsOf(annotated('controller.kubernetes.io/pod-deletion-cost', value))).toEqual([
      `Invalid value: ${JSON.stringify(value)}: must be a 32bit integer`,
    ])
  })

  it.each([
    ['seccomp.security.alpha.kubernetes.io/pod', 'runtime/default', []],
    ['seccomp.security.alpha.kubernetes.io/pod', 'docker/default', []],
    ['container.seccomp.security.alpha.kubernetes.io/main', 'unconfined', []],
    ['container.seccomp.security.alpha.kubernetes.io/main', 'localhost/a/b.json', []],
    [
      'container.seccomp.security.alpha.kubernetes.io/main',
      'Unconfined',
      ['Invalid value: "Unconfined": must be a valid seccomp profile'],
    ],
    [
      'seccomp.security.alpha.kubernetes.io/pod',
      'localhost/../a',
      [`Invalid value: "../a": must not contain '..'`],
    ],
  ])('have a seccomp profile as the API server takes it: %s: %s', async (key, value, messages) => {
    expect(await errorsOf(annotated(key, value))).toEqual(messages)
  })
})

describe('a word that a field doesn’t know', () => {
  it.each([
    ['TERM', 'did you mean "SIGTERM"?'],
    ['SIGTRM', 'did you mean "SIGTERM" or "SIGALRM"?'],
    ['sigusr1', 'did you mean "SIGUSR1" or "SIGUSR2"?'],
    ['15', undefined],
  ])('is told the nearest ones: %s', async (value, hint) => {
    const manifest = withFields({ 'spec.containers.0.lifecycle': { stopSignal: value } })
    const { problems } = await decodeDocuments(JSON.stringify(manifest), { path })
    const problem = problems.find(({ field }) => field?.endsWith('stopSignal'))
    expect(problem?.message).toMatch(/^Unsupported value: /)
    expect(problem?.hint).toBe(hint)
  })
})

describe('a key that YAML reads as something else', () => {
  it('is told, and stands at its own line', async () => {
    const { problems } = await decode(container('y: 1', 'tty: true', 'env:', '- name: a', '  n: b'))
    expect(problems).toEqual([
      '9:5: YAML reads the key y as a boolean, so that it becomes "true" (put quotes around it: "y")',
      '13:7: YAML reads the key n as a boolean, so that it becomes "false" (put quotes around it: "n")',
      '9:5: spec.containers[0].true: unknown field "true" in spec.containers[0]',
      '13:7: spec.containers[0].env[0].false: unknown field "false" in spec.containers[0].env[0]',
    ])
  })

  it('is reported where it is taken, too', async () => {
    const text =
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  on: x\n  010: b\n  "no": z\n  8080: w\n'
    const { objects, problems } = await decode(text)
    expect(objects).toMatchObject([{ data: { true: 'x', '8': 'b', no: 'z', '8080': 'w' } }])
    expect(problems).toEqual([
      '5:3: YAML reads the key on as a boolean, so that it becomes "true" (put quotes around it: "on")',
      '6:3: YAML reads the key 010 as a number, so that it becomes "8" (put quotes around it: "010")',
    ])
  })
})

describe('warnings', () => {
  it('name each field that has no effect here', async () => {
    const { pods, problems } = await decode(yaml('containers: [{name: a, image: b}]', 'nodeSelector: {a: b}'))
    expect(pods).toEqual(['web'])
    expect(problems).toEqual(['7:3: spec.nodeSelector: has no effect: there is one host and no scheduler'])
  })

  it('come once for all that a dump of a live pod carries', async () => {
    const dump: JsonObject = {
      ...withFields({
        'metadata.uid': 'x',
        'metadata.resourceVersion': '1',
        'metadata.generateName': 'web-',
        'metadata.managedFields': [{}],
        'metadata.ownerReferences': [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'y' }],
        'spec.nodeName': 'node',
        'spec.serviceAccountName': 'default',
        'spec.schedulerName': 'default-scheduler',
        'spec.enableServiceLinks': true,
        'spec.preemptionPolicy': 'PreemptLowerPriority',
        'spec.priority': 0,
        'spec.securityContext': {},
        'spec.tolerations': [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
        'spec.containers.0.volumeMounts': [
          {
            name: 'kube-api-access-x7k2p',
            mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
            readOnly: true,
          },
          { name: 'data', mountPath: '/data', recursiveReadOnly: 'Disabled' },
        ],
        'spec.volumes': [
          {
            name: 'kube-api-access-x7k2p',
            projected: { defaultMode: 420, sources: [{ serviceAccountToken: { path: 'token' } }] },
          },
          { name: 'data', emptyDir: {} },
        ],
      }),
      status: { phase: 'Running' },
    }
    const { documents, problems } = await decode(JSON.stringify(dump))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(
      /dropped what a cluster writes into a pod: metadata.uid, .*status.*, the volume of the service account token$/,
    )
    expect(documents[0]?.manifest).toEqual(
      withFields({
        'spec.containers.0.volumeMounts': [
          { name: 'data', mountPath: '/data', recursiveReadOnly: 'Disabled' },
        ],
        'spec.enableServiceLinks': true,
        'spec.preemptionPolicy': 'PreemptLowerPriority',
        'spec.priority': 0,
        'spec.securityContext': {},
        'spec.tolerations': [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
        'spec.volumes': [{ name: 'data', emptyDir: {} }],
      }),
    )
  })

  it('hide no field of objects’ own language', async () => {
    const volume = '{"name":"kube-api-access-x","projected":{}}'
    const container = '{"name":"a","image":"b","volumeMounts":[],"__proto__":{"tty":true}}'
    const { problems } = await decode(
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"volumes":[${volume}],"containers":[${container}]}}`,
    )
    expect(problems.join()).toContain('unknown field "__proto__" in spec.containers[0]')
  })

  it('keep their places although the token’s volume was taken out before them', async () => {
    const { problems } = await decode(
      yaml(
        'containers: [{name: a, image: b}]',
        'volumes:',
        '- name: kube-api-access-x',
        '  projected: {}',
        '- name: data',
        '  emptyDir: {medium: Disk}',
      ),
    )
    expect(problems.at(-1)).toMatch(/^11:16: spec.volumes\[1\].emptyDir.medium: not supported/)
  })

  it('stand for unknown fields where they are allowed, but never in a securityContext', async () => {
    const text = container('newField: {a: 1}')
    expect(await decode(text, 'Warn')).toMatchObject({
      pods: ['web'],
      problems: ['9:5: spec.containers[0].newField: unknown field "newField" in spec.containers[0]'],
    })
    const unsafe = container('securityContext: {runAsNotRoot: true}')
    expect((await decode(unsafe, 'Warn')).pods).toEqual([])
  })
})

describe('whatever the text', () => {
  const piece = fc.constantFrom(
    'apiVersion: v1',
    'kind: Pod',
    'metadata:',
    '  name: web',
    'spec:',
    '  containers:',
    '  - name: a',
    '    image: b',
    '---',
    '...',
    '- ',
    '&a',
    '*a',
    '<<: *a',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '|',
    ': ',
    '!!int',
    '\t',
    '# x',
    '\0',
    '%',
    '? ',
  )

  it('decoding never throws, and says why it took nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.array(piece).map((pieces) => pieces.join('\n')),
          fc.json(),
        ),
        async (text) => {
          const { pods, problems, held, holdsAll } = await decode(text)
          expect(pods.length === 0 || problems.length >= 0).toBe(true)
          expect(held.length > 0 || holdsAll ? problems.length > 0 : true).toBe(true)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('a manifest gives the same pod as JSON, as YAML, and read back from its record', async () => {
    const value = fc.dictionary(fc.string(), fc.string())
    await fc.assert(
      fc.asyncProperty(value, async (annotations) => {
        const manifest = withFields({ 'metadata.annotations': { ...annotations } })
        const json = await decodeDocuments(JSON.stringify(manifest), { path })
        const asYaml = await decodeDocuments(`# yaml\n${JSON.stringify(manifest)}`, { path })
        expect(podsOf(asYaml).map(({ pod }) => pod)).toEqual(podsOf(json).map(({ pod }) => pod))
      }),
      { numRuns: 60 },
    )
  })
})

describe('images, where each must have a digest,', () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const decodeStrictly = (text: string) => decodeDocuments(text, { path, requireDigest: true })

  it('are refused without one, by field and place, and the pod of before stays', async () => {
    const text = yaml(
      'initContainers:',
      '- {name: init, image: "busybox:1.36"}',
      'containers:',
      `- {name: main, image: "r.example:5000/app:2@${digest}"}`,
      '- {name: side, image: r.example/side}',
      'volumes:',
      '- {name: data, image: {reference: "r.example/data:1"}}',
    )
    const result = await decodeStrictly(text)
    expect(result.documents).toEqual([])
    expect(result.heldObjects).toEqual(['default/web'])
    const why = 'must have a digest, as imagePolicy.requireDigest of this source says'
    expect(result.problems.map(({ field, place, message }) => [field, place.line, message])).toEqual([
      ['spec.initContainers[0].image', 7, `Invalid value: "busybox:1.36": ${why}`],
      ['spec.containers[1].image', 10, `Invalid value: "r.example/side": ${why}`],
      ['spec.volumes[0].image.reference', 12, `Invalid value: "r.example/data:1": ${why}`],
    ])
    expect(result.problems[0]?.hint).toContain('busybox:1.36@sha256:…')
    expect((await decodeDocuments(text, { path })).problems).toEqual([])
  })

  it('are taken with one', async () => {
    const text = container().replace('image: busybox', `image: busybox@${digest}`)
    expect((await decodeStrictly(text)).problems).toEqual([])
  })
})
