import { createHook } from 'node:async_hooks'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { makeScratch, podYaml, SourceRun } from './source-rig.ts'

const files = 300

let scratch = ''
let removeScratch = async (): Promise<void> => undefined

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
})

afterEach(() => removeScratch())

/** How many operations on files pass through Node's threads while `act` runs. */
async function countOperations(act: () => Promise<void>): Promise<number> {
  let count = 0
  const hook = createHook({
    init(_id, type) {
      if (type.startsWith('FSREQ')) count += 1
    },
  }).enable()
  try {
    await act()
  } finally {
    hook.disable()
  }
  return count
}

it.each(['.web.yaml.new', 'web.tmp'])(
  'a manifest that is replaced by a rename of %s has no other one looked at',
  async (temporary) => {
    const pods = join(scratch, 'pods')
    await mkdir(pods)
    await Promise.all(
      Array.from({ length: files }, (_, at) => writeFile(join(pods, `p${at}.yaml`), podYaml(`p${at}`))),
    )
    const run = new SourceRun(
      createDirectorySource({
        name: 'file',
        path: pods,
        clock: systemClock,
        logger: silentLogger,
        lastGood: createLastGoodStore(join(scratch, 'state')),
        decode: createDecodeSource(systemClock),
      }),
    )
    try {
      await run.untilReady()
      await run.until((summary) => summary.pods.length === files)
      const replace = async (image: string): Promise<void> => {
        await writeFile(join(pods, temporary), podYaml('p7', image))
        await rename(join(pods, temporary), join(pods, 'p7.yaml'))
        await run.until((summary) => summary.pods.includes(`p7=${image}`))
        await systemClock.sleep(100)
      }
      // The watch has begun, too, when it tells of a change.
      await replace('i:0')
      await systemClock.sleep(500)
      const operations = await countOperations(async () => {
        for (const image of ['i:1', 'i:2', 'i:3']) await replace(image)
      })
      expect(operations).toBeLessThan(files / 2)
    } finally {
      await run.stop()
    }
  },
)
