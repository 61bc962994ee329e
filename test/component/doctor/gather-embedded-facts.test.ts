import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { containerdPlaces } from '../../../src/containerd/containerd-places.ts'
import { gatherEmbeddedFacts } from '../../../src/containerd/gather-embedded-facts.ts'

let folder: string

const gather = (daemonSays: string | undefined) =>
  gatherEmbeddedFacts({
    rootDir: join(folder, 'root'),
    runDir: join(folder, 'run'),
    askDaemon: async () => daemonSays,
    clock: systemClock,
    podCidrs: ['10.99.0.0/24'],
    pauseProgram: undefined,
  })

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podd-facts-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('tells why containerd does not run only while podd does', async () => {
  const { logPath, rootDir } = containerdPlaces(join(folder, 'root'), join(folder, 'run'))
  expect(await gather(undefined)).toMatchObject({ pid: undefined, failure: undefined })
  const { failure } = await gather('invalid database')
  expect(failure).toEqual({ message: 'invalid database', logPath, dataPath: rootDir })
})
