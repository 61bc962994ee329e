import { expect, it } from 'vitest'
import { BatchJobs } from '../../../src/control/desired/batch-jobs.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'

const template = {
  spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'app:1' }] },
}
const manifest = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'once', namespace: 'default' },
  spec: { activeDeadlineSeconds: 600, template },
}
const document = { object: objectFromManifest(manifest), manifest, place: { path: 'once.yaml', index: 0 } }
const yearMs = 365 * 24 * 3_600_000
/** A board whose clock begins in 1970, and is set a minute after its boot. */
const before = { wallMs: 60_000, uptimeMs: 60_000 }
const after = (ms: number) => ({ wallMs: 56 * yearMs + 60_000 + ms, uptimeMs: 60_000 + ms })

it('moves the times of Jobs that were being written when the clock was set', async () => {
  const disk = Promise.withResolvers<void>()
  const file = { path: '/jobs.json', read: async () => undefined, write: () => disk.promise }
  const batch = new BatchJobs(file, { jobs: {}, cronJobs: {} }, before)
  const step = (now: typeof before) => batch.step('file', [document], new Map(), true, now)
  const saved = batch.save(step(before))
  step(after(1000))
  disk.resolve()
  await saved
  const next = step(after(2000))
  expect(next.pods).toHaveLength(1)
  expect(next.state.jobs['file default/once']).toMatchObject({
    createdAtMs: after(0).wallMs,
    startedAtMs: after(0).wallMs,
  })
})
