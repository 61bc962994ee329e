import { expect, it } from 'vitest'
import type { PodObject } from '../../../src/api/resource.ts'
import { ResourceStore, Revisions, createShown } from '../../../src/control/serving/resource-store.ts'
import { StatusStore, TerminationCounter } from '../../../src/control/serving/status-store.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

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

const sinceMs = Date.UTC(2026, 0, 1, 0, 0, 30, 500)

function ended(finishedAt: string, exitCode = 1): PodObject {
  const terminated = { exitCode, reason: 'Error', finishedAt }
  return podObject({
    name: 'web',
    status: { containerStatuses: [containerStatus('main', { state: { terminated } })] },
  })
}

it('counts each end of a container once, from its start on', () => {
  const { pods } = createShown(sinceMs)
  const counter = new TerminationCounter(sinceMs)
  counter.begin(pods)
  const running = podObject({
    name: 'web',
    status: { containerStatuses: [containerStatus('main', { state: { running: {} } })] },
  })
  pods.put('uid-web', ended('2026-01-01T00:00:29Z'))
  expect(counter.counts()).toEqual([])
  for (const object of [running, ended('2026-01-01T00:00:30Z'), ended('2026-01-01T00:00:30Z')])
    pods.put('uid-web', object)
  pods.put('uid-web', running)
  pods.put('uid-web', ended('2026-01-01T00:00:40Z'))
  pods.put('uid-web', running)
  pods.put('uid-web', ended('2026-01-01T00:00:50Z', 139))
  expect(counter.counts()).toEqual([
    { type: 'container', exitCode: 1, reason: 'Error', count: 2 },
    { type: 'container', exitCode: 139, reason: 'Error', count: 1 },
  ])
})
