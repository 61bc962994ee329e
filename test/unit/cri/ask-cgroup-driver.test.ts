import { describe, expect, it } from 'vitest'
import { askCgroupDriver } from '../../../src/runtime/cri-client.ts'
import { CriError } from '../../../src/runtime/cri-runtime.ts'
import type { RuntimeService } from '../../../src/runtime/cri-runtime.ts'

type Reply = Awaited<ReturnType<RuntimeService['runtimeConfig']>>

const saying = (driver: 'SYSTEMD' | 'CGROUPFS' | undefined): Reply => ({
  linux: driver === undefined ? null : { cgroupDriver: driver },
})

function ask(runtimeConfig: () => Promise<Reply>, config = ''): ReturnType<typeof askCgroupDriver> {
  return askCgroupDriver({
    runtimeConfig,
    status: async () => ({ status: null, info: { config }, runtimeHandlers: [] }) as never,
  })
}

const lacking = async (): Promise<Reply> => {
  throw new CriError('RUNTIME_UNSUPPORTED', 'unknown method RuntimeConfig')
}
const configOf = (options: object, name = 'runc'): string =>
  JSON.stringify({
    containerd: {
      defaultRuntimeName: name,
      runtimes: { [name]: { runtimeType: 'io.containerd.runc.v2', options } },
    },
  })

describe("a runtime's cgroup driver", () => {
  it('is what the runtime says of it', async () => {
    expect(await ask(async () => saying('SYSTEMD'))).toBe('systemd')
    expect(await ask(async () => saying('CGROUPFS'))).toBe('cgroupfs')
  })

  it('stands in the config of an older containerd, for the runtime that is its default', async () => {
    expect(await ask(lacking, configOf({ SystemdCgroup: true }))).toBe('systemd')
    expect(await ask(lacking, configOf({ SystemdCgroup: false }))).toBe('cgroupfs')
    expect(await ask(lacking, configOf({}, 'crun'))).toBe('cgroupfs')
  })

  it('is unknown where nothing tells', async () => {
    expect(await ask(lacking, '')).toBeUndefined()
    expect(await ask(lacking, '{"containerd":{}}')).toBeUndefined()
    expect(await ask(async () => saying(undefined))).toBeUndefined()
  })

  it('is not guessed where the runtime could not be asked', async () => {
    const away = async (): Promise<Reply> => {
      throw new CriError('RUNTIME_UNAVAILABLE', 'no connection')
    }
    await expect(ask(away)).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
  })
})
