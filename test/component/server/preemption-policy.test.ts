import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { isJsonObject } from '../../../src/base/json.ts'
import type { ApiAnswer } from '../../support/call-api.ts'
import type { WritingRig } from '../../support/writing-rig.ts'
import { startWritingRig } from '../../support/writing-rig.ts'

const pods = '/api/v1/namespaces/default/pods'
const classes = '/apis/scheduling.k8s.io/v1/priorityclasses'

function pod(name: string, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'web:1' }], ...spec },
  }
}

function withClass(rig: WritingRig, fields: JsonObject = {}): Promise<ApiAnswer> {
  return rig.ask('POST', classes, {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'batch' },
    value: 1000,
    preemptionPolicy: 'Never',
    ...fields,
  })
}

/** Of `plugin/pkg/admission/priority` in the API server, 1.36. */
function refusal(given: string, computed: string): string {
  return `pods "a" is forbidden: the string value of PreemptionPolicy (${given}) must not be provided in pod spec; priority admission controller computed ${computed} from the given PriorityClass name`
}

describe('the preemption policy of a pod that is created', () => {
  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    [
      'is that of its class',
      {},
      { priorityClassName: 'batch' },
      { priority: 1000, preemptionPolicy: 'Never' },
    ],
    [
      'may be named beside its class, if it is the same',
      {},
      { priorityClassName: 'batch', preemptionPolicy: 'Never' },
      { priority: 1000, preemptionPolicy: 'Never' },
    ],
    [
      'is to preempt where its class names none',
      { preemptionPolicy: null },
      { priorityClassName: 'batch' },
      { priority: 1000, preemptionPolicy: 'PreemptLowerPriority' },
    ],
    ['is to preempt without a class', {}, {}, { priority: 0, preemptionPolicy: 'PreemptLowerPriority' }],
    [
      'is that of the default class without one of its own',
      { globalDefault: true },
      {},
      { priority: 1000, preemptionPolicy: 'Never' },
    ],
    [
      'is that of a class of the system',
      {},
      { priorityClassName: 'system-node-critical' },
      { priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' },
    ],
  ])('%s', async (_what, ofClass, spec, expected) => {
    await using rig = await startWritingRig()
    expect(await withClass(rig, ofClass)).toMatchObject({ code: 201 })
    const dry = await rig.ask('POST', `${pods}?dryRun=All`, pod('a', spec))
    expect(dry).toMatchObject({ code: 201, body: { spec: expected } })
    expect(await rig.ask('POST', pods, pod('a', spec))).toMatchObject({ code: 201 })
    const [kept] = rig.objects.list('Pod')
    expect(kept?.manifest['spec']).toMatchObject({ preemptionPolicy: expected['preemptionPolicy'] })
  })

  it.each<[string, JsonObject, JsonObject, string]>([
    [
      'other than its class’s',
      {},
      { priorityClassName: 'batch', preemptionPolicy: 'PreemptLowerPriority' },
      refusal('PreemptLowerPriority', 'Never'),
    ],
    [
      'other than that of pods without a class',
      {},
      { preemptionPolicy: 'Never' },
      refusal('Never', 'PreemptLowerPriority'),
    ],
    [
      'other than the default class’s',
      { globalDefault: true },
      { preemptionPolicy: 'PreemptLowerPriority' },
      refusal('PreemptLowerPriority', 'Never'),
    ],
  ])('is refused where it is one %s', async (_what, ofClass, spec, message) => {
    await using rig = await startWritingRig()
    await withClass(rig, ofClass)
    const refused = await rig.ask('POST', pods, pod('a', spec))
    expect(refused).toMatchObject({ code: 403, body: { reason: 'Forbidden', message } })
    expect(rig.objects.list('Pod')).toEqual([])
  })

  it('is invalid where it is none, which the API server calls forbidden', async () => {
    await using rig = await startWritingRig()
    const refused = await rig.ask('POST', pods, pod('a', { preemptionPolicy: 'Sometimes' }))
    expect(refused).toMatchObject({
      code: 422,
      body: {
        message:
          'Pod "a" is invalid: spec.preemptionPolicy: Unsupported value: "Sometimes": supported values: "Never", "PreemptLowerPriority"',
      },
    })
  })
})

describe('the preemption policy of a pod that is updated', () => {
  it('stays where the update omits it, and may not change', async () => {
    await using rig = await startWritingRig()
    await withClass(rig)
    await rig.ask('POST', pods, pod('a', { priorityClassName: 'batch' }))
    const patched = await rig.ask(
      'PATCH',
      `${pods}/a`,
      { metadata: { labels: { app: 'a' } }, spec: { preemptionPolicy: null } },
      'application/merge-patch+json',
    )
    expect(patched).toMatchObject({ code: 200, body: { metadata: { labels: { app: 'a' } } } })
    const [kept] = rig.objects.list('Pod')
    expect(kept?.manifest['spec']).toMatchObject({ preemptionPolicy: 'Never' })
    const changed = await rig.ask(
      'PATCH',
      `${pods}/a`,
      { spec: { preemptionPolicy: 'PreemptLowerPriority' } },
      'application/merge-patch+json',
    )
    expect(changed).toMatchObject({ code: 422, body: { reason: 'Invalid' } })
    const { message } = isJsonObject(changed.body) ? changed.body : {}
    expect(message).toContain('spec: Forbidden: pod updates may not change fields other than')
  })
})
