import { once } from 'node:events'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createDecodeSource } from '../../../src/sources/decode-source.ts'
import { createDirectorySource } from '../../../src/sources/directory/directory-source.ts'
import { FollowedHostValues } from '../../../src/sources/followed-values.ts'
import { createHttpSource } from '../../../src/sources/http/http-source.ts'
import { HostValueReader, decodeWithValues, urlWithValues } from '../../../src/sources/host-values.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import type { WatchDirectory } from '../../../src/sources/watch-directory.ts'
import { SourceRun, makeScratch, podYaml } from './source-rig.ts'

let scratch = ''
let removeScratch = async (): Promise<void> => undefined

beforeEach(async () => {
  const made = await makeScratch()
  scratch = made.path
  removeScratch = made.remove
})
afterEach(async () => removeScratch())

/** Values of one file, `TAG`, and what sources need to follow them. */
function followTag(file: string, watch?: WatchDirectory) {
  const reader = new HostValueReader({}, { TAG: file })
  const values = new FollowedHostValues({
    reader,
    clock: systemClock,
    logger: silentLogger,
    ...(watch && { watch }),
  })
  return {
    decode: decodeWithValues(createDecodeSource(systemClock), reader),
    values,
    clock: systemClock,
    logger: silentLogger,
    lastGood: createLastGoodStore(join(scratch, 'state')),
  }
}

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}

describe('values of the host', () => {
  it('are followed when their files change: what they stand in is decoded again', async () => {
    const file = join(scratch, 'tag')
    const pods = join(scratch, 'pods')
    await mkdir(pods)
    await writeFile(file, '1')
    await writeFile(join(pods, 'a.yaml'), podYaml('a', 'app:${TAG}'))
    await writeFile(join(pods, 'b.yaml'), podYaml('b', 'app:0'))
    const run = new SourceRun(createDirectorySource({ ...followTag(file), name: 'file', path: pods }))
    await run.until((seen) => seen.pods.join() === 'a=app:1,b=app:0')
    await replace(file, '2\n')
    await run.until((seen) => seen.pods.join() === 'a=app:2,b=app:0')
    await writeFile(file, '3')
    await run.until((seen) => seen.pods.join() === 'a=app:3,b=app:0')
    // One that is gone for good is an error, and what there was stays.
    await rm(file)
    await run.until(({ problems }) => problems.some((problem) => problem.includes('cannot use the value')))
    expect(run.last()?.pods).toHaveLength(2)
    await writeFile(file, '4')
    await run.until((seen) => seen.pods.join() === 'a=app:4,b=app:0' && seen.problems.length === 0)
    await run.stop()
  })

  it('are followed through links, as those of a projected volume', async () => {
    const mount = join(scratch, 'values')
    for (const version of ['1', '2']) {
      await mkdir(join(mount, `..${version}`), { recursive: true })
      await writeFile(join(mount, `..${version}`, 'tag'), version)
    }
    await symlink('..1', join(mount, '..data'))
    await symlink('..data/tag', join(mount, 'tag'))
    const path = join(scratch, 'a.yaml')
    await writeFile(path, podYaml('a', 'app:${TAG}'))
    const run = new SourceRun(createDirectorySource({ ...followTag(join(mount, 'tag')), name: 'file', path }))
    await run.until((seen) => seen.pods[0] === 'a=app:1')
    await symlink('..2', join(mount, '..tmp'))
    await rename(join(mount, '..tmp'), join(mount, '..data'))
    await run.until((seen) => seen.pods[0] === 'a=app:2')
    expect(run.last()?.problems).toEqual([])
    await run.stop()
  })

  it('are read again and again where nothing tells of changes', async () => {
    const file = join(scratch, 'tag')
    const path = join(scratch, 'a.yaml')
    await writeFile(file, '1')
    await writeFile(path, podYaml('a', 'app:${TAG}'))
    const watch: WatchDirectory = () => {
      throw Object.assign(new Error('no more watches'), { code: 'ENOSPC' })
    }
    const run = new SourceRun(createDirectorySource({ ...followTag(file, watch), name: 'file', path }))
    await run.until((seen) => seen.pods[0] === 'a=app:1')
    await writeFile(file, '2')
    await run.until((seen) => seen.pods[0] === 'a=app:2', 10_000)
    expect(run.last()?.problems).toEqual([])
    await run.stop()
  })

  it('have the whole answer of a URL asked for again, also while the server holds its answer back', async () => {
    const file = join(scratch, 'tag')
    await writeFile(file, '1')
    const asked: (string | undefined)[] = []
    const server = createServer((request, response) => {
      const validator = request.headers['if-none-match']
      asked.push(validator)
      const headers = { etag: '"1"', 'preference-applied': 'wait=60' }
      if (validator === undefined) response.writeHead(200, headers).end(podYaml('a', 'app:${TAG}'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const source = createHttpSource({
      ...followTag(file),
      name: 'http',
      url: `http://127.0.0.1:${port}/`,
      headers: {},
      periodMs: 3_600_000,
      env: {},
    })
    const run = new SourceRun(source)
    try {
      await run.until((seen) => seen.pods[0] === 'a=app:1')
      await expect.poll(() => asked.length).toBe(2)
      await replace(file, '2')
      await run.until((seen) => seen.pods[0] === 'a=app:2')
      await expect.poll(() => asked).toEqual([undefined, '"1"', undefined, '"1"'])
      expect(run.last()?.problems).toEqual([])
    } finally {
      await run.stop()
      server.closeAllConnections()
      server.close()
    }
  })

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
