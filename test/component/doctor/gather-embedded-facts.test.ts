import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { containerdPlaces } from '../../../src/containerd/containerd-places.ts'
import { gatherEmbeddedFacts } from '../../../src/containerd/gather-embedded-facts.ts'

let folder: string

const gather = () =>
  gatherEmbeddedFacts({
    rootDir: join(folder, 'root'),
    runDir: join(folder, 'run'),
    apiSocketPath: join(folder, 'podd.sock'),
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
  mkdirSync(dirname(logPath), { recursive: true })
  writeFileSync(logPath, 'time="1" level=fatal msg="no bolt" error="invalid database"\n')
  expect(await gather()).toMatchObject({ pid: undefined, failure: undefined })
  const podd = createServer().listen(join(folder, 'podd.sock'))
  try {
    expect((await gather()).failure).toEqual({
      message: 'no bolt: invalid database',
      logPath,
      dataPath: rootDir,
    })
  } finally {
    podd.close()
  }
})
