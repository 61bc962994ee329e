import { describe, expect, it } from 'vitest'
import {
  decideUnrecorded,
  inOrderOfAdmission,
  newPodRecord,
} from '../../../../src/decide/sources/new-pod-record.ts'
import type { PodDocument } from '../../../../src/pod/objects/document.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { ObservedPod } from '../../../../src/pod/state/observed.ts'
import { observedContainer, observedSandbox } from '../../../support/pod-builders.ts'

function documentOf(name: string): PodDocument {
  const manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'i:1' }] },
  }
  return { manifest, pod: podFromManifest(manifest), place: { path: `/etc/pods/${name}.yaml` } }
}

function recordOf(name: string, nowMs: number, createdAtMs?: number) {
  return newPodRecord({ uid: name, document: documentOf(name), source: 'file', nowMs, createdAtMs })
}

describe('newPodRecord', () => {
  it('begins with what the document says, and with no kill for memory', () => {
    expect(recordOf('web', 1000)).toMatchObject({
      uid: 'web',
      namespace: 'default',
      name: 'web',
      source: 'file',
      path: '/etc/pods/web.yaml',
      acceptedAtMs: 1000,
      oomKills: 0,
    })
    expect(recordOf('web', 1000).startedAtMs).toBeUndefined()
  })

  it('names what the pod was expanded from', () => {
    const owner = { kind: 'Deployment', name: 'web' }
    const document = { ...documentOf('web-0'), owner }
    const record = newPodRecord({ uid: 'u', document, source: 'file', nowMs: 0, createdAtMs: undefined })
    expect(record.owner).toEqual(owner)
    expect(recordOf('web', 0)).not.toHaveProperty('owner')
  })

  it('takes the time of a pod that runs already from its sandbox, and leaves its kills to be counted', () => {
    const record = recordOf('web', 1000, 400)
    expect(record).toMatchObject({ acceptedAtMs: 400, startedAtMs: 400 })
    expect(record.oomKills).toBeUndefined()
  })
})

describe('inOrderOfAdmission', () => {
  it('has those that were let in first, each by the time they came', () => {
    const records = [recordOf('waits', 1), recordOf('late', 9, 8), recordOf('early', 9, 3)]
    expect(inOrderOfAdmission(records).map(({ name }) => name)).toEqual(['early', 'late', 'waits'])
  })
})

const remains: ObservedPod = {
  uid: 'u',
  namespace: 'default',
  name: 'web',
  sandboxes: [observedSandbox({ ready: false })],
  containers: [observedContainer('main', { state: 'exited' })],
}
const inSandbox: ObservedPod = { ...remains, sandboxes: [observedSandbox({ ready: true })] }
const running: ObservedPod = { ...remains, containers: [observedContainer('main', { state: 'running' })] }
const unknown: ObservedPod = { ...remains, containers: [observedContainer('main', { state: 'unknown' })] }

const besideExited: ObservedPod = {
  ...remains,
  sandboxes: [observedSandbox({ ready: false }), observedSandbox({ ready: true })],
  containers: [],
}
const runningBesideExited: ObservedPod = {
  ...remains,
  containers: [
    observedContainer('init', { state: 'exited' }),
    observedContainer('main', { state: 'running' }),
  ],
}

describe('decideUnrecorded', () => {
  it.each([
    ['nothing of it runs', remains, { isUnreadable: false, isWanted: false }, 'end'],
    ['it runs and has no record', running, { isUnreadable: false, isWanted: false }, 'end'],
    ['it runs and is wanted as it is', running, { isUnreadable: false, isWanted: true }, 'adopt'],
    [
      'its record is unreadable and it is wanted as it is',
      running,
      { isUnreadable: true, isWanted: true },
      'adopt',
    ],
    [
      'its record is unreadable and a container runs',
      running,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and a container may run',
      unknown,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and its sandbox is ready',
      inSandbox,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and one of its sandboxes is ready',
      besideExited,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and one of its containers runs',
      runningBesideExited,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and nothing of it runs',
      remains,
      { isUnreadable: true, isWanted: false },
      'end',
    ],
  ] as const)('%s', (_, observed, facts, fate) => {
    expect(decideUnrecorded({ observed, ...facts })).toBe(fate)
  })
})
