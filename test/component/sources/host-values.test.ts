import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { HostValueReader, decodeWithValues, urlWithValues } from '../../../src/sources/host-values.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

let scratch = ''
let removeScratch = async (): Promise<void> => undefined

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
})
afterEach(async () => removeScratch())

describe('values of the host', () => {
  it('come from the config and from files; while one can’t be read, nothing is decoded', async () => {
    const file = join(scratch, 'tag')
    const path = join(scratch, 'pod.yaml')
    await writeFile(path, podYaml('web-${SITE}', 'web:${TAG}'))
    const decode = decodeWithValues(
      createDecodeSource(systemClock),
      new HostValueReader({ SITE: 'berlin' }, { TAG: file }),
    )
    const run = new SourceRun(
      createDirectorySource({
        name: 'file',
        path,
        decode,
        clock: systemClock,
        logger: silentLogger,
        lastGood: createLastGoodStore(join(scratch, 'state')),
      }),
    )
    await run.until(({ problems }) =>
      problems.some((problem) => problem.includes(`cannot use the value in ${file}`)),
    )
    expect(run.last()).toMatchObject({ ready: false, pods: [] })
    await writeFile(file, '1.2\n')
    await run.until(({ pods }) => pods[0] === 'web-berlin=web:1.2')
    await run.stop()
  })

  it.each(['x'.repeat(64 * 1024 + 1), Buffer.from([0xff])])(
    'refuses what is no such value',
    async (content) => {
      const file = join(scratch, 'value')
      await writeFile(file, content)
      await expect(new HostValueReader({}, { A: file }).read()).rejects.toThrow(
        `cannot use the value in ${file}`,
      )
    },
  )

  it('stand in URLs encoded, and have to be known', () => {
    const values = { NODE_NAME: 'box-1', SITE: 'a/../b?c' }
    expect(urlWithValues('https://x/${NODE_NAME}/${SITE}', values)).toBe('https://x/box-1/a%2F..%2Fb%3Fc')
    expect(() => urlWithValues('https://x/${NODE}', values)).toThrow('this host has no value ${NODE}')
  })
})
