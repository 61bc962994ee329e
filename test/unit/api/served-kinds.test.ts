import { describe, expect, it } from 'vitest'
import { findKind, namesOfKind, servedKinds } from '../../../src/api/served-kinds.ts'
import { isObjectKind, objectKinds } from '../../../src/pod/objects/object-kinds.ts'
import { ShownResources } from '../../../src/control/serving/resource-store.ts'
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
    expect(new ShownResources(0)[resource].list()).toEqual([])
  })

  it.each(servedKinds.flatMap((kind) => (isObjectKind(kind.kind) ? [[kind.kind, kind] as const] : [])))(
    'have the names under which sources give them: %s',
    (name, { resource, singular, shortNames, namespaced }) => {
      const known = objectKinds[name]
      expect({ plural: resource, singular, short: shortNames }).toEqual(known.resource)
      expect(namespaced).toBe(known.scope === 'Namespaced')
    },
  )

  it('have no cells for an object of another kind', () => {
    for (const kind of servedKinds)
      expect(kind.cells(podObject(), 0)).toHaveLength(kind.kind === 'Pod' ? kind.columns.length : 0)
  })
})
