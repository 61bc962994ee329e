import { configFlags, loadConfig } from './load-config.ts'
import { UsageError } from './usage-error.ts'
import type { Verb } from './verb.ts'

export const downVerb: Verb = {
  usage: 'down [--grace-period SECONDS] [FLAGS]',
  help: `Ends all pods with their grace, then the embedded containerd, and cleans up what they used; works whether the
daemon runs or not. Manifests, images and volumes stay: the next \`podd run\` starts the pods again.
Takes the flags of \`podd run\`, of which those that say where things are matter here.`,
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
    const { config } = await loadConfig(args)
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
