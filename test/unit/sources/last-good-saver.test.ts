import { expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { LastGoodSaver } from '../../../src/sources/source.ts'
import type { LastGoodStore } from '../../../src/store/last-good.ts'

function document(value: string): SourceDocument {
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data: { value } }
  return { object: objectFromManifest(manifest), manifest, place: { path: 'a.yaml' } }
}

it('has nothing to complain about once what is on disk is what is wanted again', async () => {
  const store: LastGoodStore = {
    load: async () => undefined,
    save: async (_source, _location, documents) => {
      if (documents[0]?.manifest === second.manifest) throw new Error('no space left')
    },
  }
  let calls = 0
  const [first, second] = [document('1'), document('2')]
  const saver = new LastGoodSaver(store, 'file', '/etc/pods', silentLogger, () => void (calls += 1))
  saver.save([first])
  await saver.flush()
  saver.save([second])
  await saver.flush()
  expect(saver.problem()?.message).toContain('no space left')
  saver.save([first])
  await saver.flush()
  expect([saver.problem(), calls]).toEqual([undefined, 2])
})

it('saves what changes after a set that was on disk already', async () => {
  const saved: (readonly SourceDocument[])[] = []
  const store: LastGoodStore = {
    load: async () => ({ documents: [document('1')], isComplete: true }),
    save: async (_source, _location, documents) => void saved.push(documents),
  }
  const saver = new LastGoodSaver(store, 'file', '/etc/pods', silentLogger, () => {})
  await saver.load()
  saver.save([document('1')])
  await saver.flush()
  expect(saved).toEqual([])
  saver.save([document('2')])
  await saver.flush()
  expect(saved).toEqual([[document('2')]])
})
