import { expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import type { SourceDocument } from '../../../src/pod/document.ts'
import { objectFromManifest } from '../../../src/pod/local-object.ts'
import { LastGoodSaver } from '../../../src/sources/last-good-saver.ts'
import type { LastGoodStore } from '../../../src/store/last-good.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function document(value: string): SourceDocument {
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data: { value } }
  return { object: objectFromManifest(manifest), manifest, place: { path: 'a.yaml' } }
}

function setUp() {
  const saved: string[] = []
  const clock = new ManualClock()
  const store: LastGoodStore = {
    load: async () => [document('1')],
    save: async (_source, _location, documents) =>
      void saved.push(documents.map(({ manifest }) => JSON.stringify(manifest['data'])).join()),
  }
  const options = {
    source: 'file',
    location: '/etc/pods',
    logger: silentLogger,
    onProblem: () => {},
  } as const
  return { saver: new LastGoodSaver({ ...options, store, clock }), saved, clock }
}

it('saves what changes after a set that was on disk already', async () => {
  const { saver, saved } = setUp()
  await saver.load()
  saver.save([document('1')])
  await saver.flush()
  expect(saved).toEqual([])
  saver.save([document('2')])
  await saver.flush()
  expect(saved).toEqual(['{"value":"2"}'])
})

it('waits a second, and writes what came meanwhile once', async () => {
  const { saver, saved, clock } = setUp()
  saver.save([document('2')])
  await clock.advance(600)
  saver.save([document('3')])
  await clock.advance(399)
  expect(saved).toEqual([])
  await clock.advance(1)
  expect(saved).toEqual(['{"value":"3"}'])
  saver.save([document('4')])
  await clock.advance(1000)
  expect(saved).toEqual(['{"value":"3"}', '{"value":"4"}'])
})
