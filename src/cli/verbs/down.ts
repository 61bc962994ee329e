import { configFlags } from '../local/load-config.ts'
import { findDownTarget } from '../local/down-target.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'

export const downVerb: Verb = {
  usage: 'down [--grace-period SECONDS] [FLAGS]',
  help: `Ends all pods with their grace, then the embedded containerd, and cleans up what they used; works whether the
daemon runs or not. Manifests, images and volumes stay: the next \`podd run\` starts the pods again.
With --socket or PODD_SOCKET it is the podd that answers there, which says itself where its things are. Without, the
flags of \`podd run\` and the config file say that; a file with errors will do as long as it does.`,
  flags: [
    { name: 'grace-period', label: 'SECONDS', doc: "Instead of each pod's own grace." },
    ...configFlags,
  ],
  examples: [
    ['down', 'end everything'],
    ['down --grace-period 2', 'and quickly'],
    ['down --socket /run/other/podd.sock', 'of the podd that answers there'],
  ],
  async run(context) {
    const { args, deps, signal, notify } = context
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`down takes no argument ${JSON.stringify(extra)}`)
    const target = await findDownTarget(context)
    const { podsStopped, leftovers } = await deps.down({
      ...target,
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
