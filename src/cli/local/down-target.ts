import { readFile } from 'node:fs/promises'
import type { DaemonPlaces, DaemonStatus } from '../../api/routes.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import { completeConfig, listOptions, options } from '../../config/options.ts'
import type { OptionKey, PoddConfig } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import { readConfigFile } from '../../config/read-config-file.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { namedSocket } from '../arguments/socket-path.ts'
import type { DownRequest, RunRequest, VerbContext } from '../arguments/verb.ts'
import { formatProblem } from '../output/report-format.ts'
import { loadConfig, readFlags } from './load-config.ts'

const placeKeys = [
  'rootDir',
  'runDir',
  'podLogsDir',
  'containerLogsDir',
  'containerRuntimeEndpoint',
  'imageServiceEndpoint',
  'cgroupRoot',
  'cgroupDriver',
] as const satisfies readonly (keyof DaemonPlaces)[]

/**
 * With a given socket, the podd that answers there, with the places that it reports; where none answers, the one whose
 * places the flags name. Without a socket, the one of the config file, flags and defaults.
 *
 * @throws PoddError DAEMON_NOT_RUNNING or another of ApiClient's, PLACES_DIFFER, BAD_CONFIG
 */
export async function findDownTarget(
  context: VerbContext,
): Promise<Pick<DownRequest, 'config' | 'socketPath'>> {
  const { args, client, env, signal } = context
  if (namedSocket(args.value('socket'), env) === undefined) return { config: await loadUsableConfig(context) }
  const { socketPath } = client
  let status: DaemonStatus
  try {
    status = await client.status(signal)
  } catch (error) {
    signal.throwIfAborted()
    if (namesPlaces(args)) return { config: await loadUsableConfig(context) }
    throw errorCode(error) === 'DAEMON_NOT_RUNNING' ? nobodyThere(socketPath, error) : error
  }
  const { places } = status
  if (places === undefined) {
    if (namesPlaces(args)) return { config: await loadUsableConfig(context), socketPath }
    throw unknownPlaces(socketPath, status.version)
  }
  // The default config file may be another podd's.
  const said =
    args.value('config') === undefined ? completeConfig(readFlags(args)) : await loadUsableConfig(context)
  const hint =
    'Name either the socket or the directories; `env -u PODD_SOCKET podd down …` ignores the socket.'
  refuseDifferent(said, places, args, socketPath, hint, placeKeys)
  return { config: atPlaces(said, places), socketPath }
}

/** Whether the flags alone name all places. */
function namesPlaces(args: ParsedArguments): boolean {
  const isGiven = (flag: string | undefined): boolean => flag !== undefined && args.value(flag) !== undefined
  return isGiven('config') || (isGiven(options.rootDir.flag) && isGiven(options.runDir.flag))
}

/** Throws where the given ones of these places differ from those of the socket's podd: it is unclear which is meant. */
function refuseDifferent(
  said: PoddConfig,
  places: DaemonPlaces,
  args: ParsedArguments,
  socketPath: string,
  hint: string,
  keys: readonly (typeof placeKeys)[number][],
): void {
  const given = new Set<OptionKey>(args.value('config') === undefined ? [] : ['rootDir', 'runDir'])
  for (const [key, { flag }] of listOptions())
    if (flag !== undefined && args.value(flag) !== undefined) given.add(key)
  const other = keys.find((key) => given.has(key) && said[key] !== places[key])
  if (other === undefined) return
  const [theirs, ours] = [places[other], said[other]].map((place) => JSON.stringify(place ?? ''))
  const message = `podd at ${socketPath} has ${options[other].field} ${theirs}, not ${ours}`
  throw new PoddError('PLACES_DIFFER', message, { hint })
}

function nobodyThere(socketPath: string, cause: unknown): PoddError {
  return new PoddError('DAEMON_NOT_RUNNING', errorMessage(cause), {
    cause,
    hint: `Without an answer its directories are not known. Name them: podd down --root-dir DIR --run-dir DIR, or --config FILE. Without --socket and PODD_SOCKET (${socketPath}) the default ones apply.`,
  })
}

function unknownPlaces(socketPath: string, version: string): PoddError {
  return new PoddError('PLACES_UNKNOWN', `podd ${version} at ${socketPath} does not report its directories`, {
    hint: 'Name them, too: podd down --root-dir DIR --run-dir DIR, or --config FILE.',
  })
}

/** Where one of these is wrong, podd would search pods in the wrong place. */
const neededFields: readonly string[] = [
  'apiVersion',
  'kind',
  options.rootDir.field,
  options.runDir.field,
  options.containerRuntimeEndpoint.field,
  options.cgroupRoot.field,
  options.cgroupDriver.field,
]

/** Whether an error makes the file unusable: its text, or one of the needed fields, possibly misspelt. */
function isNeeded({ field }: Problem): boolean {
  return field === undefined || nearestName(field, neededFields) !== undefined
}

/** The settings, also of a file with errors elsewhere: these must not keep pods running. */
async function loadUsableConfig({ args, usual, notify }: VerbContext): Promise<PoddConfig> {
  try {
    return (await loadConfig({ args, usual })).config
  } catch (error) {
    if (errorCode(error) !== 'BAD_CONFIG') throw error
    const path = args.value('config') ?? usual.configPath
    const { values, problems } = await readConfigFile(await readFile(path, 'utf8'), path)
    const errors = problems.filter(({ severity }) => severity === 'error')
    if (errors.some((problem) => isNeeded(problem))) {
      throw new PoddError('BAD_CONFIG', errorMessage(error), {
        cause: error,
        hint: 'Fix it, or run without it: --config /dev/null, with --root-dir, --run-dir where they are not the usual ones.',
      })
    }
    for (const problem of errors) notify(`ignored: ${formatProblem(problem)}`)
    return completeConfig({ ...values, ...readFlags(args) })
  }
}

/**
 * The settings of the podd that `podd support-bundle` is about, with the places that it reports where it answers: a
 * bundle of two podds would lack the Secrets of one of them.
 *
 * @throws PoddError PLACES_UNKNOWN where nothing tells the directories of a given socket's podd, PLACES_DIFFER, and what
 * loadConfig throws
 */
export async function findBundleTarget(context: VerbContext): Promise<RunRequest> {
  const { args, client, env, signal } = context
  const request = await loadConfig(context)
  const { config } = request
  const { socketPath } = client
  const isOfConfig =
    args.value('config') !== undefined ||
    namedSocket(args.value('socket'), env) === undefined ||
    socketPath === apiSocketPath(config.runDir)
  let places: DaemonPlaces | undefined
  try {
    places = (await client.status(signal)).places
  } catch (error) {
    signal.throwIfAborted()
    if (isOfConfig || namesPlaces(args)) return request
    throw placesNotReported(errorMessage(error), error)
  }
  if (places === undefined) {
    if (isOfConfig || namesPlaces(args)) return request
    throw placesNotReported(`podd at ${socketPath} does not report its directories`)
  }
  const hint = 'Name the socket alone, or both --root-dir and --run-dir, without PODD_SOCKET.'
  refuseDifferent(config, places, args, socketPath, hint, ['rootDir', 'runDir'])
  if (isOfConfig) return { ...request, config: atPlaces(config, places) }
  // The default config file is another podd's.
  const said = completeConfig(readFlags(args))
  return { config: atPlaces(said, places), configPath: undefined, warnings: [] }
}

function placesNotReported(message: string, cause?: unknown): PoddError {
  return new PoddError('PLACES_UNKNOWN', message, {
    cause,
    hint: 'Its directories are not known. Name them, too: podd support-bundle --root-dir DIR --run-dir DIR, or --config FILE.',
  })
}

/** The settings of the podd that reports these places; what it doesn't report is as given. */
export function atPlaces(config: PoddConfig, places: DaemonPlaces): PoddConfig {
  // What a podd leaves out it doesn't have, but an older one may only not report it.
  const unsaid = places.podCidrs === undefined ? {} : { staticPodPath: undefined }
  return { ...config, imageServiceEndpoint: undefined, cgroupRoot: undefined, ...unsaid, ...places }
}
