import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SourceObject } from '../../src/api/sources.ts'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod, yamlPod } from '../support/shell-pods.ts'

/** A server of one answer, changed by assigning `served`. */
let served: { readonly code: number; readonly text: string } = { code: 503, text: '' }
let server: Server
const port = await freePort()

beforeAll(async () => {
  server = createServer((_, response) => response.writeHead(served.code).end(served.text))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const config = {
  sources: [{ name: 'fleet', url: `http://127.0.0.1:${port}/pods`, checkFrequency: '500ms', push: 'Off' }],
  podSecurity: { url: { level: 'privileged' } },
}

describePodd('sources of a fleet', { config }, (rig) => {
  const sourceOf = async (name: string): Promise<SourceObject['status']> => {
    const object: SourceObject = JSON.parse(await rig().cliOk('get', 'sources', name, '-o', 'json'))
    return object.status
  }

  it('are held at what runs, over a restart too, until they are resumed', async () => {
    const podd = rig()
    const fleetPod = yamlPod('fleet-pod', podd.shared)
    served = { code: 200, text: fleetPod }
    podd.drop('local', shellPod('local', podd.shared, 'say start; stay'))
    await podd.untilReady('local')
    await podd.untilReady('fleet-pod')
    expect(await podd.cliOk('hold')).toBe('source file is held\nsource http:fleet is held\n')
    podd.removeManifest('local')
    podd.drop('late', shellPod('late', podd.shared, 'say start; stay'))
    served = { code: 200, text: fleetPod.replace('name: fleet-pod', 'name: other-pod') }
    const pending = await podd.until('what waits', async () => {
      const [local, fleet] = await Promise.all([sourceOf('file'), sourceOf('fleet')])
      const isSeen = local.pending?.added.length === 1 && fleet.pending?.added.length === 1
      return isSeen ? [local, fleet] : undefined
    })
    expect(pending).toMatchObject([
      { state: 'Held', pending: { added: ['Pod default/late'], removed: ['Pod default/local'] } },
      { state: 'Held', pending: { added: ['Pod default/other-pod'], removed: ['Pod default/fleet-pod'] } },
    ])
    await podd.restartDaemon()
    // Both are read again after the restart, and what they give is still not applied.
    await podd.until('both to be read', async () => {
      const states = await Promise.all([sourceOf('file'), sourceOf('fleet')])
      return states.every((status) => status.pending?.added.length === 1)
    })
    const names = (await podd.pods()).map(({ metadata }) => metadata.name).toSorted()
    expect(names).toEqual(['fleet-pod', 'local'])
    for (const name of names) expect(await podd.untilWords(name, 1)).toEqual(['start'])
    expect(await podd.notes()).toMatch(/held since .+pending: 1 added, 1 removed/u)
    expect(await podd.cliOk('status')).toMatch(/^file +yes, held/mu)
    expect((await podd.cli('doctor', '--root-dir', podd.rootDir)).stdout).toMatch(
      /hold +the source file is held/u,
    )
    expect(await podd.cliOk('resume', 'file')).toBe('source file is followed again\n')
    await podd.untilReady('late')
    await podd.untilGone('local')
    expect(await podd.untilWords('fleet-pod', 1)).toEqual(['start'])
    await podd.cliOk('resume')
    await podd.untilReady('other-pod')
    await podd.untilGone('fleet-pod')
    expect(await podd.notes()).not.toContain('held')
  })
})
