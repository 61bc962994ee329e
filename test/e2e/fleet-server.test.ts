import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const port = await freePort()
const url = `http://127.0.0.1:${port}`
const example = join(import.meta.dirname, '../../examples/fleet-server.ts')
let directory = ''
let server: ChildProcess

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-fleet-'))
  server = spawn(process.execPath, [example, directory, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (server.stdout !== null) await once(server.stdout, 'data')
})

afterAll(async () => {
  const closed = once(server, 'close')
  server.kill()
  await closed
  await rm(directory, { recursive: true, force: true })
})

const config = {
  sources: [{ name: 'fleet', url: `${url}/pods`, checkFrequency: '500ms', push: 'Off' }],
  updates: { minReady: '1s', crashes: 2 },
  podSecurity: { url: { level: 'privileged' } },
  report: { url: `${url}/report`, period: '1s' },
}
const table = async (): Promise<string> => (await fetch(url)).text()

describePodd('the example server of a fleet', { config }, (rig) => {
  it('stops a bad update on the first host, which runs the old one and has told so', async () => {
    const podd = rig()
    const pod = (command: string): string => JSON.stringify(shellPod('web', podd.shared, command))
    await writeFile(join(directory, 'old.yaml'), pod('stay'))
    await podd.untilReady('web')
    await podd.until('a healthy host with its report', async () => / healthy +- +1\/1 /u.test(await table()))
    await writeFile(join(directory, 'new.yaml'), pod('exit 3'))
    await podd.until('the end of the rollout', async () =>
      (await table()).includes('rollout: stopped at 5 %'),
    )
    await podd.untilReady('web')
    await podd.until('the old one, healthy', async () => / healthy +Failed +1\/1 /u.test(await table()))
    const logged = (): string => readFileSync(join(podd.directory, 'podd.log'), 'utf8')
    // podd writes its log a moment after it reports.
    await podd.until('its line', () => logged().includes('"the unit is rolled back"'))
    const log = logged()
    expect(log.match(/"the unit is rolled back"/gu)).toHaveLength(1)
    expect(log.match(/"reason":"CrashLoopBackOff".*"a container does not run"/gu)).toHaveLength(1)
  })

  it('logs a manifest that is not followed once', async () => {
    const podd = rig()
    const lines = (): number =>
      readFileSync(join(podd.directory, 'podd.log'), 'utf8').match(/"a manifest is not followed"/gu)
        ?.length ?? 0
    podd.drop('bad', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'bad' }, spec: {} })
    await podd.until('its line', () => lines() > 0)
    podd.drop('good', shellPod('good', podd.shared, 'stay'))
    await podd.untilReady('good')
    expect(lines()).toBe(1)
  })
})
