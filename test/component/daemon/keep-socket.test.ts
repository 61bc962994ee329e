import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { keepSocketJob } from '../../../src/daemon/daemon-jobs.ts'
import type { NodeJob } from '../../../src/control/node/node-jobs.ts'

let parent = ''
let directory = ''
let path = ''
let ending: AbortController
let job: NodeJob
let running: Promise<unknown> = Promise.resolve()
const reasons: string[] = []

beforeEach(async () => {
  parent = mkdtempSync(join(tmpdir(), 'podd-keep-'))
  directory = join(parent, 'run')
  path = join(directory, 'podd.sock')
  mkdirSync(directory)
  writeFileSync(path, 'socket')
  reasons.length = 0
  ending = new AbortController()
  const { signal } = ending
  job = keepSocketJob({
    path,
    renew: async () => {
      if (existsSync(path)) return false
      writeFileSync(path, 'socket')
      return true
    },
    wake: () => void (running = running.then(() => job.run(signal))),
    events: { recordNode: ({ reason }) => void reasons.push(reason) },
    logger: silentLogger,
    signal,
  })
  await job.run(signal)
})

afterEach(async () => {
  ending.abort()
  await running
  rmSync(parent, { recursive: true, force: true })
})

it('makes the socket again, and says so, when the directory tells that it is gone', async () => {
  rmSync(path)
  await expect.poll(() => reasons).toEqual(['ApiSocketRestored'])
  expect(existsSync(path)).toBe(true)
})

it('makes the directory again, and watches the new one', async () => {
  rmSync(directory, { recursive: true })
  await expect.poll(() => reasons).toEqual(['ApiSocketRestored'])
  expect(statSync(directory).mode & 0o777).toBe(0o711)
  await running
  rmSync(path)
  await expect.poll(() => reasons).toHaveLength(2)
})

it('says nothing where nothing was wrong', async () => {
  writeFileSync(join(directory, 'other'), '')
  await job.run(ending.signal)
  expect(reasons).toEqual([])
})
