import { isJsonObject } from '../base/json.ts'
import type { Json } from '../base/json.ts'
import type { CgroupDriver } from '../host/cgroups/layout.ts'
import { isCriError } from './cri-error.ts'
import type { RuntimeService } from './cri-runtime.ts'

/**
 * The runtime's cgroup driver as it reports it; undefined where it doesn't. From containerd 2.0 on there is a call for
 * it, 1.x has it in its verbose status (`containerd.runtimes.<default>.options.SystemdCgroup`). Throws what the calls
 * throw, but for the one that an older runtime lacks: a guess would put containers outside their pods' cgroups.
 */
export async function askCgroupDriver(
  runtime: Pick<RuntimeService, 'runtimeConfig' | 'status'>,
  options?: Parameters<RuntimeService['status']>[1],
): Promise<CgroupDriver | undefined> {
  try {
    const { linux } = await runtime.runtimeConfig({}, options)
    if (linux !== null) return linux.cgroupDriver === 'SYSTEMD' ? 'systemd' : 'cgroupfs'
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_UNSUPPORTED')) throw error
  }
  const { info } = await runtime.status({ verbose: true }, options)
  return configuredDriver(info['config'])
}

function configuredDriver(config: string | undefined): CgroupDriver | undefined {
  const containerd = member(parse(config), 'containerd')
  const name = member(containerd, 'defaultRuntimeName')
  const runtime = member(
    member(containerd, 'runtimes'),
    typeof name === 'string' && name !== '' ? name : 'runc',
  )
  const type = member(runtime, 'runtimeType')
  if (typeof type !== 'string' || type === '') return undefined
  return member(member(runtime, 'options'), 'SystemdCgroup') === true ? 'systemd' : 'cgroupfs'
}

function member(value: Json | undefined, name: string): Json | undefined {
  return isJsonObject(value) ? value[name] : undefined
}

function parse(text: string | undefined): Json | undefined {
  try {
    const value: Json = JSON.parse(text ?? '')
    return value
  } catch {
    // Only JSON holds the field.
    return undefined
  }
}
