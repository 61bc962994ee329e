import { describe, expect, it } from 'vitest'
import { columnsFor } from '../../../src/api/served-kind.ts'
import { findKind, namesOfKind, servedKinds } from '../../../src/api/served-kinds.ts'
import { isObjectKind, objectKinds } from '../../../src/pod/objects/object-kinds.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import { podObject } from '../../support/pod-objects.ts'

describe('the kinds that are served', () => {
  it('have names that no other kind has', () => {
    const names = servedKinds.flatMap((kind) => namesOfKind(kind))
    expect(new Set(names).size).toBe(names.length)
    for (const kind of servedKinds)
      for (const name of namesOfKind(kind)) expect(findKind(name.toUpperCase())).toBe(kind)
    expect(findKind('constructor')).toBeUndefined()
  })

  it.each(servedKinds.map((kind) => [kind.resource, kind] as const))('have a store: %s', (resource) => {
    expect(createShown(0)[resource].list()).toEqual([])
  })

  it.each(servedKinds.flatMap((kind) => (isObjectKind(kind.kind) ? [[kind.kind, kind] as const] : [])))(
    'have a namespace where sources give them with one: %s',
    (name, { namespaced }) => {
      expect(namespaced).toBe(objectKinds[name].scope === 'Namespaced')
    },
  )

  it('show nothing in the columns of an object of another kind', () => {
    const others = servedKinds.filter(({ kind }) => kind !== 'Pod').flatMap(({ columns }) => columns)
    expect(others.filter(({ cell }) => cell(podObject(), 0) !== '')).toEqual([])
  })

  it('give no column twice to kubectl or podd get, and each of them the name first', () => {
    for (const kind of servedKinds)
      for (const reader of ['kubectl', 'podd'] as const) {
        const names = columnsFor(reader, kind).map(({ name }) => name)
        expect(new Set(names).size).toBe(names.length)
        expect(names).toContain('Name')
      }
  })

  it.each<[kind: string, kubectl: readonly string[], podd: readonly string[]]>([
    ['ConfigMap', [], ['Keys']],
    ['Event', ['Last Seen'], ['Last Seen']],
    ['Lease', [], []],
    ['Namespace', [], []],
    ['Node', ['External-IP'], []],
    ['PersistentVolumeClaim', ['Volume', 'VolumeAttributesClass'], ['Used', 'Directory']],
    ['Pod', ['Node', 'Nominated Node', 'Readiness Gates'], ['Source']],
    ['PodTemplate', [], []],
    ['Secret', [], ['Keys']],
    ['ServiceAccount', [], []],
    ['Role', [], []],
    ['RoleBinding', [], []],
    ['ClusterRole', [], []],
    ['ClusterRoleBinding', [], []],
    ['PodDisruptionBudget', ['Allowed Disruptions'], []],
    ['PriorityClass', [], []],
    ['RuntimeClass', [], []],
    ['Deployment', [], []],
    ['StatefulSet', [], []],
    ['DaemonSet', ['Node Selector'], []],
    ['Job', [], []],
    ['CronJob', [], []],
  ])('differ between kubectl and podd get in few columns alone: %s', (name, kubectl, podd) => {
    const columns = servedKinds.find(({ kind }) => kind === name)?.columns ?? []
    const only = (reader: string) => columns.filter((each) => each.only === reader).map((each) => each.name)
    expect(only('kubectl')).toEqual(kubectl)
    expect(only('podd')).toEqual(podd)
    expect(columns.filter((each) => each.only === undefined)).not.toEqual([])
  })
})
