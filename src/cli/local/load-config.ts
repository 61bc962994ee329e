import { systemClock } from '../../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { readBounded } from '../../base/read-bounded.ts'
import { evictionOptionProblems, shutdownOptionProblems } from '../../config/node-options.ts'
import {
  imageOptionProblems,
  registryOptionProblems,
  pullOptionProblems,
} from '../../config/image-options.ts'
import type { ConfigFile } from '../../config/read-config-file.ts'
import { readConfigFile } from '../../config/read-config-file.ts'
import type { Option } from '../../config/option-type.ts'
import { completeConfig, listOptions, readConfigFlags } from '../../config/options.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { formatProblem } from '../output/report-format.ts'
import type { RunRequest, HelpSection, VerbContext } from '../arguments/verb.ts'
import type { FlagSpec, ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { configFlag } from '../arguments/socket-path.ts'

const maxConfigBytes = 2 ** 20

/** The flags of options, for `podd run`. */
export const configFlags: readonly FlagSpec[] = [
  configFlag,
  ...listOptions().flatMap(([, option]) => {
    if (option.flag === undefined) return []
    const shown = shownDefault(option)
    const doc = shown === '' ? option.doc : `${option.doc} Default: ${shown}.`
    const label = option.type.isSwitch === true ? {} : { label: option.type.label }
    return [{ name: option.flag, ...label, doc }]
  }),
]

/** What a verb about a podd that may not answer needs to find it. */
const placeDocs: Readonly<Record<string, string>> = {
  [configFlag.name]: 'The config file; by default /etc/podd/config.yaml.',
  'root-dir': 'Where podd keeps its state.',
  'run-dir': 'Where its socket is.',
}

/** The flags of options, for verbs that want the places of a podd: only these stand in their help. */
export const placeConfigFlags: readonly FlagSpec[] = configFlags.map((flag): FlagSpec => {
  const doc = placeDocs[flag.name]
  return Object.assign({}, flag, doc === undefined ? { isOfRun: true as const } : { doc })
})

/** The options without a flag, each with its values. */
export const fileOnlyFields: HelpSection['rows'] = listOptions().flatMap(([, option]) => {
  if (option.flag !== undefined) return []
  const shown = shownDefault(option)
  return [[option.field, shown === '' ? option.type.label : `${option.type.label}. Default: ${shown}.`]]
})

function shownDefault({ defaultText, type, default: value }: Option<unknown>): string {
  return defaultText ?? type.format(value)
}

/**
 * The settings from a command line and its config file. Throws UsageError for a wrong flag, PoddError BAD_CONFIG that
 * lists every error of the file, or CONFIG_UNREADABLE.
 */
export async function loadConfig({ args, usual }: Pick<VerbContext, 'args' | 'usual'>): Promise<RunRequest> {
  const warnings: Problem[] = []
  const flags = readFlags(args, (message) =>
    warnings.push({ severity: 'warning', place: { path: 'the command line' }, message }),
  )
  const named = args.value('config')
  const file = await readFileOf(named ?? usual.configPath, named !== undefined)
  const errors = (file?.problems ?? []).filter((problem) => problem.severity === 'error')
  if (errors.length > 0) {
    throw new PoddError('BAD_CONFIG', errors.map((problem) => formatProblem(problem)).join('\n'), {
      hint: 'docs/OPTIONS.md lists the fields.',
    })
  }
  const config = completeConfig({ ...file?.values, ...flags })
  const [problem] = [
    ...evictionOptionProblems(config),
    ...imageOptionProblems(config),
    ...pullOptionProblems(config),
    ...shutdownOptionProblems(config),
    ...registryOptionProblems(config),
  ]
  if (problem !== undefined) {
    throw new PoddError('BAD_CONFIG', `${problem.field} ${problem.message}`, {
      hint: 'docs/OPTIONS.md lists the fields.',
    })
  }
  return {
    config,
    configPath: file === undefined ? undefined : (named ?? usual.configPath),
    warnings: [...(file?.problems ?? []), ...warnings],
  }
}

/** The settings that flags give, without the config file. Throws UsageError. */
export function readFlags(args: ParsedArguments, warn?: (message: string) => void): ConfigFile['values'] {
  const known = new Set(listOptions().flatMap(([, { flag }]) => flag ?? []))
  try {
    return readConfigFlags(
      args.flags.filter(({ flag }) => known.has(flag)),
      warn,
    )
  } catch (error) {
    throw new UsageError(errorMessage(error))
  }
}

async function readFileOf(path: string, isNamed: boolean): Promise<ConfigFile | undefined> {
  let bytes: Buffer
  try {
    bytes = await readBounded(path, { maxBytes: maxConfigBytes, clock: systemClock })
  } catch (error) {
    if (!isNamed && errorCode(error) === 'ENOENT') return undefined
    throw new PoddError('CONFIG_UNREADABLE', `cannot read the config file ${path}: ${errorMessage(error)}`, {
      cause: error,
    })
  }
  if (bytes.byteLength > maxConfigBytes) {
    const message = `the config file ${path} is larger than ${maxConfigBytes / 2 ** 20} MiB`
    throw new PoddError('CONFIG_UNREADABLE', message)
  }
  return readConfigFile(bytes.toString('utf8'), path)
}
