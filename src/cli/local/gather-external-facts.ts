import { existsSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { askCgroupDriver, CriClient } from '../../runtime/cri-client.ts'
import type { ExternalRuntimeFacts } from '../../decide/doctor/host-facts.ts'
import { readCniPlaces } from '../../translate/observe.ts'

const embeddedFlag = '--container-runtime-endpoint embedded'

/** The timeout of each call to the runtime. */
const deadlineMs = 5_000

/** Asks a runtime about itself. One that doesn't answer is a fact too: this never throws. */
export async function gatherExternalFacts(
  endpoint: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<ExternalRuntimeFacts> {
  const silent = {
    kind: 'external',
    endpoint,
    name: '',
    version: '',
    conditions: [],
    cniPluginDirs: [],
  } as const
  const unknown = { cniConfDir: undefined, cgroupDriver: undefined, sandboxImage: undefined }
  const socketPath = /^unix:\/\/(.+)$/.exec(endpoint)?.[1]
  if (socketPath !== undefined && !existsSync(socketPath)) {
    const hint = `Start the runtime (systemctl start containerd), or let podd run one: ${embeddedFlag}.`
    return { ...silent, ...unknown, failure: { message: `there is no socket at ${socketPath}`, hint } }
  }
  try {
    const client = new CriClient({ endpoint, clock, reconnectWaitMs: 0 })
    try {
      return await askRuntime(client, endpoint, signal)
    } finally {
      client.close()
    }
  } catch (error) {
    const said = error instanceof PoddError && error.hint !== undefined ? `${error.hint}\n` : ''
    const hint = `${said}Or let podd run a containerd of its own: ${embeddedFlag}.`
    return { ...silent, ...unknown, failure: { message: errorMessage(error), hint } }
  }
}

async function askRuntime(
  client: CriClient,
  endpoint: string,
  signal: AbortSignal,
): Promise<ExternalRuntimeFacts> {
  const options = { signal, deadlineMs }
  const { runtimeName, runtimeVersion } = await client.connect(signal)
  const { status, info } = await client.runtime.status({ verbose: true }, options)
  const { images } = await client.images.listImages({}, options)
  const config = parseObject(info['config'])
  const sandboxName = textOf(config['sandboxImage'])
  const pinned = images.find((image) => image.pinned)?.repoTags[0]
  const names = new Set(images.flatMap((image) => image.repoTags))
  return {
    kind: 'external',
    endpoint,
    failure: undefined,
    name: runtimeName,
    version: runtimeVersion,
    conditions: status?.conditions ?? [],
    ...readCniPlaces(info),
    // A runtime that doesn't tell it has no such finding.
    cgroupDriver: await askCgroupDriver(client.runtime, options).catch(() => undefined),
    // Newer versions don't report it, but pin it.
    sandboxImage:
      sandboxName !== undefined
        ? { name: sandboxName, present: names.has(sandboxName) }
        : pinned === undefined
          ? undefined
          : { name: pinned, present: true },
  }
}

function parseObject(text: string | undefined): JsonObject {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isJsonObject(value) ? value : {}
  } catch {
    // Only JSON holds the field.
    return {}
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
