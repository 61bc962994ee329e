import { describe, expect, it } from 'vitest'
import { exclusiveClaimProblem } from '../../../src/decide/admission/admit-pod.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'

const podUsing = (name: string, claims: readonly string[], namespace = 'default'): Pod =>
  podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      containers: [{ name: 'app', image: 'a' }],
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    },
  })

const beside = (pod: Pod): { readonly key: string; readonly pod: Pod } => ({
  key: `${pod.metadata.namespace}/${pod.metadata.name}`,
  pod,
})

const isExclusive = (name: string): boolean => name.startsWith('own')

describe('a claim for one pod alone', () => {
  it('keeps a second pod waiting, and names the first', () => {
    const neighbours = [beside(podUsing('bystander', ['all'])), beside(podUsing('first', ['all', 'own']))]
    expect(exclusiveClaimProblem(podUsing('second', ['all', 'own']), neighbours, isExclusive)).toEqual({
      kind: 'blocked',
      reason: 'Blocked',
      message:
        'persistentvolumeclaim "own" uses the ReadWriteOncePod access mode and is already in use by pod default/first',
      at: ['spec', 'volumes', 1, 'persistentVolumeClaim', 'claimName'],
    })
  })

  it.each<[string, Pod]>([
    ['a pod that uses another claim', podUsing('first', ['own-other'])],
    ['a pod that uses none', podUsing('first', [])],
    ['a pod with a claim of that name elsewhere', podUsing('first', ['own'], 'elsewhere')],
    ['the version of the pod before', podUsing('second', ['own'])],
  ])('is free beside %s', (_what, other) => {
    expect(exclusiveClaimProblem(podUsing('second', ['own']), [beside(other)], isExclusive)).toBeUndefined()
  })

  it('is no matter where it is for all', () => {
    const first = beside(podUsing('first', ['all']))
    expect(exclusiveClaimProblem(podUsing('second', ['all']), [first], isExclusive)).toBeUndefined()
  })
})
