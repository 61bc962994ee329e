import { expect, it } from 'vitest'
import type { PodObject } from '../../../src/api/resource.ts'
import { ResourceStore, Revisions } from '../../../src/control/serving/resource-store.ts'
import { StatusStore } from '../../../src/control/serving/status-store.ts'
import { podObject } from '../../support/pod-objects.ts'

it('a pod has a provisional status until its worker speaks, and then that of its worker alone', () => {
  const statuses = new StatusStore(new ResourceStore<PodObject>(new Revisions(0)))
  const shown = (): readonly string[] => statuses.list().map(({ status }) => status.phase)
  const uid = 'uid-web'
  statuses.publishProvisional(uid, podObject({ status: { phase: 'Pending' } }))
  expect(shown()).toEqual(['Pending'])
  statuses.publish(uid, podObject({ status: { phase: 'Running' } }))
  statuses.publishProvisional(uid, podObject({ status: { phase: 'Pending' } }))
  statuses.removeProvisional(uid)
  expect(shown()).toEqual(['Running'])
  statuses.remove(uid)
  expect(shown()).toEqual([])
  statuses.publishProvisional(uid, podObject({ status: { phase: 'Pending' } }))
  statuses.removeProvisional(uid)
  expect(shown()).toEqual([])
})
