import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { formatFieldPath } from '../../../src/pod/schema/issues.ts'
import { decodeObject } from '../../../src/pod/decode/decode-pod.ts'
import { isWorkloadKind } from '../../../src/pod/objects/workload-kinds.ts'
import type { WorkloadKind } from '../../../src/pod/objects/workload-kinds.ts'

const labels = { app: 'web' }
const selector = { matchLabels: labels }
const container = { name: 'main', image: 'app:1' }
const pod = (spec: JsonObject = {}, metadata: JsonObject = { labels }): JsonObject => ({
  metadata,
  spec: { containers: [container], ...spec },
})

function problemsOf(
  kind: WorkloadKind,
  spec: JsonObject,
  options: { readonly requireDigest?: boolean } = {},
): readonly string[] {
  const manifest = {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'web' },
    spec: { selector, template: pod(), ...spec },
  }
  return decodeObject(kind, manifest, 'Strict', options).problems.map(
    ({ path, message }) => `${formatFieldPath(path)}: ${message}`,
  )
}

/** Source: pkg/apis/apps/validation and ValidatePodTemplateSpec in pkg/apis/core/validation, 1.36. */
describe('a workload is refused as the API server refuses it, at its own path', () => {
  it.each<[kind: WorkloadKind, what: string, spec: JsonObject, problems: readonly string[]]>([
    [
      'Deployment',
      'a field of a container that there isn’t',
      { template: pod({ containers: [{ ...container, imagee: 'x' }] }) },
      [
        'spec.template.spec.containers[0].imagee: unknown field "imagee" in spec.template.spec.containers[0]; did you mean "image"?',
      ],
    ],
    [
      'Deployment',
      'a bad value in a container',
      { template: pod({ containers: [{ ...container, ports: [{ containerPort: 0 }] }] }) },
      ['spec.template.spec.containers[0].ports[0].containerPort: Required value'],
    ],
    [
      'Deployment',
      'no containers',
      { template: pod({ containers: [] }) },
      ['spec.template.spec.containers: Required value'],
    ],
    [
      'Deployment',
      'no template',
      { template: null },
      [
        'spec.template.spec.containers: Required value',
        'spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`',
      ],
    ],
    [
      'StatefulSet',
      'an empty selector',
      { selector: {} },
      [
        'spec.selector: Invalid value: {"matchLabels":{},"matchExpressions":[]}: empty selector is invalid for statefulset',
      ],
    ],
    [
      'Deployment',
      'labels that its selector doesn’t select',
      { template: pod({}, { labels: { app: 'other' } }) },
      [
        'spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does not match template `labels`',
      ],
    ],
    [
      'Deployment',
      'labels that an expression of its selector doesn’t select',
      { selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] } },
      [
        'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
      ],
    ],
    [
      'Deployment',
      'replicas below 0',
      { replicas: -1 },
      ['spec.replicas: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [
      'DaemonSet',
      'a pod that ends',
      { template: pod({ restartPolicy: 'Never' }) },
      ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ],
    [
      'Deployment',
      'a pod with a deadline',
      { template: pod({ activeDeadlineSeconds: 5 }) },
      [
        'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
      ],
    ],
    [
      'Deployment',
      'Recreate with what a rolling update has',
      { strategy: { type: 'Recreate', rollingUpdate: { maxUnavailable: 1 } } },
      ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ],
    [
      'Deployment',
      'no pod that may be missing, and none beside',
      { strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: '0%' } } },
      [
        'spec.strategy.rollingUpdate.maxSurge: has no effect: a pod is replaced by one of its own name, as soon as that could start',
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0',
      ],
    ],
    [
      'Deployment',
      'a deadline before the pods could be ready',
      { minReadySeconds: 10, progressDeadlineSeconds: 10 },
      ['spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds'],
    ],
    [
      'StatefulSet',
      'pods of two templates',
      { updateStrategy: { rollingUpdate: { partition: 1 } } },
      [
        'spec.updateStrategy.rollingUpdate.partition: not supported: no older template is kept for pods that are made later: set `type: OnDelete`, and delete each pod that is to change',
      ],
    ],
    [
      'StatefulSet',
      'data that would be removed with the pods',
      { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } },
      [
        'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: has no effect: podd removes data only when it is told to, by `podd delete pvc`',
      ],
    ],
    [
      'StatefulSet',
      'a claim without a size',
      { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } }] },
      ['spec.volumeClaimTemplates[0].spec.resources[storage]: Required value'],
    ],
  ])('%s with %s', (kind, _what, spec, problems) => {
    expect(problemsOf(kind, spec)).toEqual(problems)
  })

  it.each<[string, JsonObject]>([
    ['all pods ended before new ones begin', { strategy: { type: 'Recreate' } }],
    ['what says nothing of a rolling update', { strategy: { type: 'Recreate', rollingUpdate: null } }],
    ['shares of 100 %', { strategy: { rollingUpdate: { maxUnavailable: '100%' } } }],
    ['no pod that may be missing, and one beside', { strategy: { rollingUpdate: { maxUnavailable: 0 } } }],
    ['a deadline after the pods could be ready', { minReadySeconds: 10, progressDeadlineSeconds: 11 }],
    ['no ephemeral container', { template: pod({ ephemeralContainers: [] }) }],
    [
      'a selector by expressions alone',
      { selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
    ],
    [
      'a selector by labels and expressions',
      {
        selector: {
          matchLabels: labels,
          matchExpressions: [
            { key: 'app', operator: 'In', values: ['db', 'web'] },
            { key: 'none', operator: 'DoesNotExist' },
            { key: 'none', operator: 'NotIn', values: ['web'] },
          ],
        },
      },
    ],
  ])('takes a Deployment with %s', (_what, spec) => {
    expect(problemsOf('Deployment', spec)).toEqual([])
  })

  it.each<[string, JsonObject]>([
    ['one label of two that differs', { matchLabels: { app: 'web', tier: 'front' } }],
    ['a key that is missing', { matchExpressions: [{ key: 'none', operator: 'Exists' }] }],
    ['a key that is there', { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }],
    [
      'a value of a key that is missing',
      { matchExpressions: [{ key: 'none', operator: 'In', values: ['x'] }] },
    ],
    ['another value', { matchExpressions: [{ key: 'app', operator: 'In', values: ['db'] }] }],
  ])('knows labels that a selector does not select: %s', (_what, given) => {
    expect(problemsOf('Deployment', { selector: given })).toEqual([
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ])
  })

  it.each<[string, JsonObject, RegExp]>([
    ['a share above 100 %', { maxUnavailable: '101%' }, /maxUnavailable: .*must not be greater than 100%/u],
    ['a share that is none', { maxUnavailable: 'half' }, /maxUnavailable: .*a valid percent string/u],
    ['a number below 0', { maxUnavailable: -1 }, /maxUnavailable: .*must be greater than or equal to 0/u],
    ['a surge that is none', { maxSurge: 'half' }, /maxSurge: .*a valid percent string/u],
    ['nothing in percent', { maxUnavailable: '0%', maxSurge: 0 }, /maxUnavailable: .*may not be 0/u],
  ])('refuses a rolling update with %s', (_what, rollingUpdate, problem) => {
    expect(problemsOf('Deployment', { strategy: { rollingUpdate } })).toContainEqual(
      expect.stringMatching(problem),
    )
  })

  it.each<[WorkloadKind, JsonObject, string]>([
    ['Deployment', { replicas: 1001 }, 'replicas'],
    ['StatefulSet', { replicas: 2_147_483_647 }, 'replicas'],
    ['Job', { parallelism: 100_000, template: pod({ restartPolicy: 'Never' }) }, 'parallelism'],
    [
      'Job',
      { parallelism: 1001, completions: 2000, template: pod({ restartPolicy: 'Never' }) },
      'parallelism',
    ],
  ])('refuses a %s with more pods than podd can keep: %j', (kind, spec, field) => {
    expect(problemsOf(kind, spec)).toContainEqual(
      `spec.${field}: not supported: more than 1000 pods of a workload on one host`,
    )
  })

  it.each<[WorkloadKind, JsonObject]>([
    ['Deployment', { replicas: 1000 }],
    ['StatefulSet', { replicas: 1000 }],
  ])('takes a %s with as many pods as podd can keep', (kind, spec) => {
    expect(problemsOf(kind, spec)).toEqual([])
  })

  it.each([252, 253])(
    'says so where its name has %i characters, which only those of its pods are too long for',
    (length) => {
      const metadata = { name: 'b'.repeat(length) }
      const manifest = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata,
        spec: { selector, template: pod() },
      }
      const { accepted, problems } = decodeObject('Deployment', manifest, 'Strict')
      expect([accepted, problems.length]).toEqual([undefined, 1])
      expect(formatFieldPath(problems[0]?.path ?? [])).toBe('metadata.name')
    },
  )

  it('counts no more pods of a Job than it has completions', () => {
    const spec = { parallelism: 5000, completions: 3, template: pod({ restartPolicy: 'Never' }) }
    expect(problemsOf('Job', spec)).not.toContainEqual(expect.stringContaining('parallelism'))
  })

  it('takes what dumps and generators write', () => {
    const template = pod({}, { labels, creationTimestamp: null, name: 'x' })
    expect(problemsOf('Deployment', { template, replicas: 2, strategy: {} })).toEqual([])
  })

  it('lets containers mount the claims of a StatefulSet, which its template doesn’t have as volumes', () => {
    const mounts = [{ name: 'data', mountPath: '/data' }]
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const manifest = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        selector,
        template: pod({ containers: [{ ...container, volumeMounts: mounts }] }),
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
      },
    }
    const { accepted, problems } = decodeObject('StatefulSet', manifest, 'Strict')
    expect(problems).toEqual([])
    expect(accepted?.manifest).toMatchObject({ spec: { template: { spec: { volumes: [] } } } })
  })

  it('requires digests of its images where its source does', () => {
    expect(problemsOf('Deployment', {}, { requireDigest: true })).toEqual([
      'spec.template.spec.containers[0].image: Invalid value: "app:1": must have a digest, as imagePolicy.requireDigest of this source says',
    ])
  })

  it('points to the line of a field of its pod', async () => {
    const text = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: app:1
        comand: [sh]
`
    const { problems } = await decodeDocuments(text, { path: 'web.yaml' })
    expect(problems).toMatchObject([
      {
        place: { line: 12, column: 9 },
        field: 'spec.template.spec.containers[0].comand',
        object: 'Deployment/default/web',
      },
    ])
  })
})

it('knows the kinds of workloads, and no others', () => {
  const known = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob']
  const kinds = [...known, 'Pod', 'ReplicaSet', 'toString', 3, undefined]
  expect(kinds.filter((kind) => isWorkloadKind(kind))).toEqual(known)
})

/** Source: ValidateJobSpec (validatePodFailurePolicyRuleOnExitCodes) in pkg/apis/batch/validation, 1.36. */
it.each([
  ['In', [1, 0], ['Invalid value: 0: must not be 0 for the In operator']],
  ['In', [1, 2], []],
  ['NotIn', [1, 0], []],
])('a rule of a Job for exit codes %s %j has these problems: %j', (operator, values, problems) => {
  const rules = [{ action: 'FailJob', onExitCodes: { operator, values } }]
  const spec = { template: pod({ restartPolicy: 'Never' }), podFailurePolicy: { rules } }
  const manifest = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec }
  const found = decodeObject('Job', manifest, 'Strict').problems
  expect(found.map(({ message }) => message)).toEqual(problems)
})

it('the manifest of a StatefulSet that was taken has the volumes of its template and none of its claims', () => {
  const claim = (name: string): JsonObject => ({
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })
  const mounts = ['data', 'logs', 'tmp'].map((name) => ({ name, mountPath: `/${name}` }))
  const containers = [{ ...container, volumeMounts: mounts }]
  const template = pod({ containers, volumes: [{ name: 'tmp', emptyDir: {} }] })
  const manifest = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db' },
    spec: { selector, template, volumeClaimTemplates: [claim('data'), claim('logs')] },
  }
  const { accepted, problems } = decodeObject('StatefulSet', manifest, 'Strict')
  expect(problems).toEqual([])
  expect(accepted?.manifest).toMatchObject({
    spec: { template: { spec: { volumes: [{ name: 'tmp', emptyDir: {} }] } } },
  })
})
