import type { DaemonPlaces, DaemonStatus } from '../../api/routes.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { mergeConfig, readConfigFlags } from '../../config/config-flags.ts'
import { options } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import type { RunRequest } from '../arguments/deps.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { namedSocket } from '../arguments/socket-path.ts'
import type { VerbContext } from '../arguments/verb.ts'
import { atPlaces } from './at-places.ts'
import { namesPlaces, optionFlags } from './down-target.ts'
import { loadConfig } from './load-config.ts'

/**
 * The settings of the podd that `podd support-bundle` is about, with the places that it reports where it answers: a
 * bundle of two podds would lack the Secrets of one of them.
 *
 * @throws PoddError PLACES_UNKNOWN where nothing tells the directories of a given socket's podd, PLACES_DIFFER, and what
 * loadConfig throws
 */
export async function findBundleTarget({ args, client, env, signal }: VerbContext): Promise<RunRequest> {
  const request = await loadConfig(args)
  const { config } = request
  const { socketPath } = client
  const isOfConfig =
    args.value('config') !== undefined ||
    namedSocket(args.value('socket'), env) === undefined ||
    socketPath === apiSocketPath(config.runDir)
  let places: DaemonPlaces | undefined
  try {
    places = (await client.get<DaemonStatus>('/podd/v1/status', signal)).places
  } catch (error) {
    signal.throwIfAborted()
    if (isOfConfig || namesPlaces(args)) return request
    throw unknownPlaces(errorMessage(error), error)
  }
  if (places === undefined) {
    if (isOfConfig || namesPlaces(args)) return request
    throw unknownPlaces(`podd at ${socketPath} does not report its directories`)
  }
  refuseDifferent(request, places, args, socketPath)
  if (isOfConfig) return { ...request, config: atPlaces(config, places) }
  // The default config file is another podd's.
  const said = mergeConfig({}, readConfigFlags(optionFlags(args)))
  return { config: atPlaces(said, places), configPath: undefined, warnings: [] }
}

function refuseDifferent(
  { config }: RunRequest,
  places: DaemonPlaces,
  args: ParsedArguments,
  socketPath: string,
): void {
  for (const key of ['rootDir', 'runDir'] as const) {
    const { flag, field } = options[key]
    const isNamed =
      args.value('config') !== undefined || (flag !== undefined && args.value(flag) !== undefined)
    if (!isNamed || config[key] === places[key]) continue
    throw new PoddError(
      'PLACES_DIFFER',
      `podd at ${socketPath} has ${field} ${JSON.stringify(places[key])}, not ${JSON.stringify(config[key])}`,
      { hint: 'Name the socket alone, or both --root-dir and --run-dir, without PODD_SOCKET.' },
    )
  }
}

function unknownPlaces(message: string, cause?: unknown): PoddError {
  return new PoddError('PLACES_UNKNOWN', message, {
    cause,
    hint: 'Its directories are not known. Name them, too: podd support-bundle --root-dir DIR --run-dir DIR, or --config FILE.',
  })
}
