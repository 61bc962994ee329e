import { expect, it, onTestFinished } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import type { PodDocument } from '../../../src/pod/objects/document.ts'
import { PodRig, podManifest, toDocument } from './pod-rig.ts'

/**
 * How many files of src/control a manifest may pass from its source to StartContainer: those that a reader of that
 * path has to know.
 */
const maxFiles = 24

/** The files of src/control among the callers of a function. */
function callersInControl(): readonly string[] {
  return [...(new Error('here').stack ?? '').matchAll(/src\/control\/[\w/-]+\.ts/gu)].map(([file]) => file)
}

/** A copy that calls `onRead` whenever something of it is read. */
function watched<T>(value: T, onRead: () => void): T
function watched(value: unknown, onRead: () => void): unknown {
  if (typeof value !== 'object' || value === null) return value
  const copy: object = Array.isArray(value) ? [] : {}
  for (const [key, inner] of Object.entries(value)) {
    const own = watched(inner, onRead)
    Object.defineProperty(copy, key, {
      enumerable: true,
      configurable: true,
      get: () => {
        onRead()
        return own
      },
    })
  }
  return copy
}

/** Follows a manifest through the control loops: where it is read, and who called for that. */
async function followManifest(manifest: JsonObject): Promise<readonly string[]> {
  const rig = new PodRig()
  const passed = new Set<string>()
  const isStarted = (): boolean => rig.fake.calls('StartContainer').length > 0
  const onRead = (): void => {
    if (!isStarted()) for (const file of callersInControl()) passed.add(file)
  }
  const { stackTraceLimit } = Error
  onTestFinished(() => void (Error.stackTraceLimit = stackTraceLimit))
  Error.stackTraceLimit = 100
  await rig.start()
  const document: PodDocument = toDocument('file', manifest)
  const pods = [{ ...document, pod: watched(document.pod, onRead) }]
  rig.system.offerSnapshot({ ...rig.snapshot('file'), pods })
  await rig.settle()
  expect(rig.running()).toEqual(['web/main'])
  await rig.terminate()
  return [...passed].toSorted()
}

it(`a manifest passes at most ${maxFiles} files of control from its source to StartContainer`, async () => {
  const passed = await followManifest(podManifest('web'))
  expect(passed).toContain('src/control/pod/start.ts')
  expect(passed).toContain('src/control/desired/desired-pods.ts')
  expect(passed.length > maxFiles ? passed : []).toEqual([])
})
