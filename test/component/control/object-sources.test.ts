import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { openRules } from '../../support/object-rules.ts'
import type { ObjectDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { defaultObjectPolicies, plainObjectRules } from '../../support/object-rules.ts'
import { PodRig, podManifest } from './pod-rig.ts'
import type { PodRigOptions } from './pod-rig.ts'

function given(kind: string, name: string, fields: JsonObject, path = '/http'): ObjectDocument {
  const apiVersion = { RuntimeClass: 'node.k8s.io/v1', PriorityClass: 'scheduling.k8s.io/v1' }[kind] ?? 'v1'
  const manifest = {
    apiVersion,
    kind,
    metadata: kind === 'RuntimeClass' ? { name } : { name, namespace: 'default' },
    ...fields,
  }
  return { object: objectFromManifest(manifest), manifest, place: { path } }
}

const gvisor = (handler: string, path?: string) => given('RuntimeClass', 'gvisor', { handler }, path)
const tls = given('Secret', 'tls', { stringData: { key: 'value' } }, '/file/tls.yaml')
const reader = podManifest('reader', {
  containers: [{ name: 'main', image: 'app:1', envFrom: [{ secretRef: { name: 'tls' } }] }],
})
const sandboxed = podManifest('web', { runtimeClassName: 'gvisor' })

async function start(options: PodRigOptions = {}): Promise<PodRig> {
  const rig = new PodRig({ sources: ['file', 'http'], ...options })
  await rig.start()
  await rig.offer('file')
  await rig.offer('http')
  return rig
}

function handlers(rig: PodRig): readonly (string | undefined)[] {
  return rig.fake.calls('RunPodSandbox').map(({ request }) => {
    const { runtimeHandler } = request as { runtimeHandler?: string }
    return runtimeHandler
  })
}

describe('a RuntimeClass of the URL', () => {
  it('does not override that of the configuration', async () => {
    const runtimeClasses = new Map([['gvisor', { handler: 'runsc' }]])
    const rig = await start({
      admission: { ...openRules({ maxPods: 110 }), runtimeClasses },
      objectRules: { ...plainObjectRules, runtimeClasses },
    })
    rig.givenByUrl = [gvisor('runc')]
    await rig.offer('http')
    await rig.apply(sandboxed)
    expect(handlers(rig)).toEqual(['runsc'])
    expect(rig.system.problems()).toMatchObject([
      {
        place: { path: '/http' },
        object: 'RuntimeClass/gvisor',
        hint: expect.stringContaining('givesClusterObjects'),
      },
    ])
  })

  it('does not override that of the directory, nor gives its own pods one', async () => {
    const rig = await start()
    rig.givenByUrl = [gvisor('runc')]
    await rig.offer('http')
    await rig.put('http', sandboxed)
    expect(rig.pod('web').status).toMatchObject({
      phase: 'Pending',
      reason: 'FailedCreate',
      message: expect.stringContaining('"gvisor" not found'),
    })
    rig.given = [gvisor('runsc', '/file/gvisor.yaml')]
    await rig.offer('file')
    expect(handlers(rig)).toEqual(['runsc'])
  })
})

describe('a Secret of the directory', () => {
  it('is not given to pods of the URL, which say what would allow it', async () => {
    const rig = await start()
    rig.given = [tls]
    await rig.offer('file')
    await rig.put('http', reader)
    expect(rig.running()).toEqual([])
    expect(rig.pod('reader').status.containerStatuses).toMatchObject([
      {
        state: {
          waiting: {
            reason: 'CreateContainerConfigError',
            message: expect.stringMatching(/^secret "tls" not found: .*podSecurity\.url\.readsObjectsOf/u),
          },
        },
      },
    ])
    // Its own does, whatever the directory has.
    rig.givenByUrl = [given('Secret', 'tls', { stringData: { key: 'own' } })]
    await rig.offer('http')
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['reader/main'])
  })

  it('is given to them where the configuration says so', async () => {
    const http = { readsObjectsOf: ['file'] as const, givesClusterObjects: false }
    const policies = { ...defaultObjectPolicies, http }
    const rig = await start({ objectRules: { ...plainObjectRules, policies } })
    rig.given = [tls]
    await rig.offer('file')
    await rig.put('http', reader)
    expect(rig.running()).toEqual(['reader/main'])
  })

  it('stays with a container that has it when its pod moves to the URL, and no new one gets it', async () => {
    const rig = await start()
    rig.given = [tls]
    await rig.apply(reader)
    expect(rig.running()).toEqual(['reader/main'])
    await rig.put('http', reader)
    await rig.remove('reader')
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['reader/main'])
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual([])
    expect(rig.container('reader').state).toMatchObject({ waiting: { reason: 'CreateContainerConfigError' } })
  })
})

describe('a pod that another source takes over', () => {
  it('is the same pod where its manifest is', async () => {
    const rig = await start()
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    await rig.put('http', podManifest('web'))
    await rig.remove('web')
    await rig.clock.advance(1000)
    expect(rig.pod('web').metadata).toMatchObject({ uid, annotations: { 'podd.dev/source': 'http' } })
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })

  it('is another pod where anything is changed, so that it gets nothing of what the first was given', async () => {
    const rig = await start()
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    const changed = podManifest('web', { containers: [{ name: 'main', image: 'app:2' }] })
    await rig.put('http', changed)
    await rig.remove('web')
    await rig.clock.advance(60_000)
    expect(rig.pod('web').metadata.uid).not.toBe(uid)
    expect(rig.container('web').image).toBe('app:2')
    expect(rig.tornDown).toContain(uid)
  })
})

describe('a claim that two sources give', () => {
  it('is that of the source whose data it holds, when podd starts', async () => {
    const storage = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const claim = (path: string) => given('PersistentVolumeClaim', 'data', { spec: storage }, path)
    const rig = new PodRig({ sources: ['file', 'http'] })
    rig.claimOwners = new Map([['PersistentVolumeClaim/default/data', 'http']])
    rig.given = [claim('/file/claim.yaml')]
    rig.givenByUrl = [claim('/http')]
    await rig.start()
    await rig.offer('file')
    await rig.offer('http')
    expect(rig.system.problems()).toMatchObject([{ place: { path: '/file/claim.yaml' } }])
  })
})
