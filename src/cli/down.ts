import { readFile } from 'node:fs/promises'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import { mergeConfig, readConfigFlags } from '../config/config-flags.ts'
import { options } from '../config/options.ts'
import type { PoddConfig } from '../config/options.ts'
import { defaultConfigPath } from '../config/places.ts'
import { readConfigFile } from '../config/read-config-file.ts'
import type { Problem } from '../pod/document.ts'
import { formatProblem } from '../pod/format-problem.ts'
import { nearestName } from '../pod/nearest-name.ts'
import { configFlags, loadConfig } from './load-config.ts'
import type { ParsedArguments } from './parse-arguments.ts'
import { UsageError } from './usage-error.ts'
import type { Verb } from './verb.ts'

export const downVerb: Verb = {
  usage: 'down [--grace-period SECONDS] [FLAGS]',
  help: `Ends all pods with their grace, then the embedded containerd, and cleans up what they used; works whether the
daemon runs or not. Manifests, images and volumes stay: the next \`podd run\` starts the pods again.
Takes the flags of \`podd run\`, of which those that say where things are matter here; a config file with errors
will do as long as it says that.`,
  flags: [
    { name: 'grace-period', label: 'SECONDS', doc: "Instead of each pod's own grace." },
    ...configFlags,
  ],
  examples: [
    ['down', 'end everything'],
    ['down --grace-period 2', 'and quickly'],
  ],
  async run({ args, deps, signal, notify }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`down takes no argument ${JSON.stringify(extra)}`)
    const config = await loadUsableConfig(args, notify)
    const { podsStopped, leftovers } = await deps.down({
      config,
      graceSeconds: args.count('grace-period'),
      signal,
      report: notify,
    })
    for (const leftover of leftovers) notify(`left over: ${leftover}`)
    return {
      kind: 'text',
      text: `${podsStopped} ${podsStopped === 1 ? 'pod' : 'pods'} ended\n`,
      exitCode: leftovers.length === 0 ? 0 : 1,
    }
  },
}

/** Where one of these is wrong, pods would be looked for in the wrong place. */
const neededFields: readonly string[] = [
  'apiVersion',
  'kind',
  options.rootDir.field,
  options.runDir.field,
  options.containerRuntimeEndpoint.field,
  options.cgroupRoot.field,
  options.cgroupDriver.field,
]

/**
 * Whether the file can't be followed without what is wrong here: a text that can't be read at all, or one of the
 * needed fields, be it misspelt.
 */
function isNeeded({ field }: Problem): boolean {
  return field === undefined || nearestName(field, neededFields) !== undefined
}

/** The settings, also of a config file with errors that have no part in where the pods are: nothing shall keep them running. */
async function loadUsableConfig(args: ParsedArguments, notify: (line: string) => void): Promise<PoddConfig> {
  try {
    return (await loadConfig(args)).config
  } catch (error) {
    if (errorCode(error) !== 'BAD_CONFIG') throw error
    const path = args.value('config') ?? defaultConfigPath
    const { values, problems } = await readConfigFile(await readFile(path, 'utf8'), path)
    const errors = problems.filter(({ severity }) => severity === 'error')
    if (errors.some((problem) => isNeeded(problem))) {
      throw new PoddError('BAD_CONFIG', errorMessage(error), {
        cause: error,
        hint: 'Mend it, or go without it: --config /dev/null, with --root-dir, --run-dir where they are not the usual ones.',
      })
    }
    for (const problem of errors) notify(`ignored: ${formatProblem(problem)}`)
    const flags = args.flags.filter(({ flag }) => flag !== 'config' && isConfigFlag(flag))
    return mergeConfig(values, readConfigFlags(flags))
  }
}

function isConfigFlag(name: string): boolean {
  return configFlags.some((flag) => flag.name === name)
}
