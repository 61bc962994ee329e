import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { removeDeletedBundles } from '../../../src/runtime/containerd/leaks.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-bundles-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('what a containerd left that was killed in a removal goes, and nothing that a shim may use or that is mounted', async () => {
  const places = { stateDir: join(directory, 'state'), rootDir: join(directory, 'root') }
  await removeDeletedBundles(places)
  const bundles = join(places.stateDir, 'io.containerd.runtime.v2.task/k8s.io')
  for (const name of ['running', '.deleted', '.mounted/rootfs'])
    mkdirSync(join(bundles, name), { recursive: true })
  writeFileSync(join(bundles, '.deleted/config.json'), '{}')
  await removeDeletedBundles(places)
  expect(readdirSync(bundles)).toEqual(['.mounted', 'running'])
})
