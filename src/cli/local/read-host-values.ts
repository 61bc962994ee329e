import { startDeadline } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { HostValues } from '../../pod/decode/substitute-values.ts'
import type { VerbContext } from '../arguments/verb.ts'

/** How long the daemon may take to say its name: another one is known without it. */
const patienceMs = 2000

/**
 * What may become `${NODE_NAME}` once it is parsed: characters of JSON and YAML strings can be escaped by their numbers.
 */
const maybeNodeName = /\$\{NODE_NAME\}|\\[uUx]/u

/** The values for the text of a manifest. */
export type ValuesOf = (text: Uint8Array | string) => Promise<HostValues>

/**
 * The values of the config and of the host itself. The daemon is asked for the node's name, once, where a manifest has it.
 * @throws PoddError SOURCE_FILE, and what reading the config throws
 */
export async function readHostValues(context: VerbContext): Promise<ValuesOf> {
  const { loadConfig } = await import('./load-config.ts')
  const { HostValueReader, readHostFacts } = await import('../../sources/host-values.ts')
  const { config } = await loadConfig(context)
  const given = { ...readHostFacts(config.hostnameOverride), ...config.values }
  const values = await new HostValueReader(given, config.valueFiles).read()
  // The config that was named may be of another host than this one.
  const isNamed = context.args.value('config') !== undefined && config.hostnameOverride !== undefined
  if (isNamed) return async () => values
  let named: Promise<HostValues> | undefined
  const ask = async (): Promise<HostValues> => {
    const nodeName = await askNodeName(context, values['NODE_NAME'])
    return nodeName === undefined ? values : { ...values, NODE_NAME: nodeName }
  }
  return (text) => {
    const readable = typeof text === 'string' ? text : Buffer.from(text).toString('latin1')
    return maybeNodeName.test(readable) ? (named ??= ask()) : Promise.resolve(values)
  }
}

/**
 * The name under which the daemon runs, which its command line may set; undefined where none answers.
 * @param otherwise the name that is taken then
 */
async function askNodeName(
  { client, clock, signal, notify }: VerbContext,
  otherwise: string | undefined,
): Promise<string | undefined> {
  using patience = startDeadline(clock, patienceMs)
  try {
    return (await client.status(AbortSignal.any([signal, patience.signal]))).nodeName
  } catch (error) {
    signal.throwIfAborted()
    // Without a daemon there is nobody to ask.
    if (errorCode(error) === 'DAEMON_NOT_RUNNING') return undefined
    const reason = patience.signal.aborted
      ? `podd at ${client.socketPath} does not answer`
      : errorMessage(error)
    notify(`podd: ${reason}; \${NODE_NAME} is taken to be ${otherwise}`)
    return undefined
  }
}
