import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { completeConfig } from '../../../src/config/options.ts'
import { RuntimeAccess } from '../../../src/control/runtime/runtime-access.ts'
import { readHostInfo } from '../../../src/host/facts/host-info.ts'
import { FakeRuntimeServer } from '../../support/fake-runtime-server.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'

let dir: string
let fake: FakeRuntime
let server: FakeRuntimeServer
let access: RuntimeAccess

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podd-access-'))
  fake = new FakeRuntime({ clock: systemClock })
  server = await FakeRuntimeServer.start(fake, { socketPath: join(dir, 'cri.sock') })
  const config = {
    ...completeConfig({}),
    rootDir: join(dir, 'root'),
    runDir: join(dir, 'run'),
    containerRuntimeEndpoint: server.endpoint,
  }
  const events = { record: () => {}, recordNode: () => {} }
  access = new RuntimeAccess({
    config,
    hostInfo: readHostInfo(),
    events,
    clock: systemClock,
    logger: silentLogger,
  })
})

afterEach(() => {
  access.close()
  server.stop()
  rmSync(dir, { recursive: true })
})

describe('the version of the container runtime', () => {
  it('is that of the release that runs now, when another one has taken the place of the first', async () => {
    expect(await access.open(new AbortController().signal)).toBeUndefined()
    expect([access.name, access.version]).toEqual(['containerd', '2.1.9'])
    server.stop()
    fake.settings.version = '2.3.0'
    await server.start()
    await access.runtime.version({})
    expect([access.name, access.version]).toEqual(['containerd', '2.3.0'])
  })

  it('is held against the runtime API that podd speaks', async () => {
    fake.settings.apiVersion = '0.2.0'
    expect(await access.open(new AbortController().signal)).toMatch(
      /can't be used: containerd speaks version 0\.2\.0 of the runtime API, and podd needs 0\.1\.0/u,
    )
  })
})
