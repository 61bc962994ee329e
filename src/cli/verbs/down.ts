import type { Verb } from '../arguments/verb.ts'
import { findDownTarget } from '../local/down-target.ts'
import { placeConfigFlags } from '../local/load-config.ts'
import { counted } from '../output/table.ts'

export const downVerb: Verb = {
  usage: 'down [--grace-period SECONDS] [--all] [FLAGS]',
  help: `Ends all pods within their grace periods, then the embedded containerd, with and without a running daemon. Manifests,
images and volumes stay: the next \`podd run\` starts the pods again, from the beginning. Pods of the API that have ended
stay as they are, unless --all removes them. --socket says which podd; else these flags and the config file do.`,
  flags: [
    { name: 'grace-period', label: 'SECONDS', doc: "Instead of each pod's own." },
    {
      name: 'all',
      doc: 'Removes ended pods of the API, too.',
    },
    ...placeConfigFlags,
  ],
  examples: [['down', 'end everything; `podd run` starts it again']],
  async run(context) {
    const { args, daemon, signal, notify } = context
    args.refuseMore('down')
    const target = await findDownTarget(context)
    const { podsStopped, leftovers } = await daemon.down({
      ...target,
      graceSeconds: args.count('grace-period'),
      removesEnded: args.has('all'),
      signal,
      report: notify,
    })
    for (const leftover of leftovers) notify(`left over: ${leftover}`)
    return {
      kind: 'text',
      text: `${counted(podsStopped, 'pod')} ended\n`,
      exitCode: leftovers.length === 0 ? 0 : 1,
    }
  },
}
