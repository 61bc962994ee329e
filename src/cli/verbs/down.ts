import type { Verb } from '../arguments/verb.ts'
import { findDownTarget } from '../local/down-target.ts'
import { placeConfigFlags } from '../local/load-config.ts'
import { counted } from '../output/table.ts'

export const downVerb: Verb = {
  usage: 'down [--grace-period SECONDS] [--all] [FLAGS]',
  help: `Terminates all pods within their grace periods, then stops the embedded containerd, and cleans up what they used;
works with and without a running daemon. Manifests, images and volumes are kept: the next \`podd run\` starts the pods
again, also those that had completed, from the beginning. Pods that were written over the API and have completed or
failed for good are kept as they are, with their logs, and don't run again; with --all they are removed as well. With --socket or PODD_SOCKET it stops the
podd that listens there, which reports its own directories. Otherwise the flags of \`podd run\` and the config file name
them; a file with errors suffices if it names them.`,
  flags: [
    { name: 'grace-period', label: 'SECONDS', doc: "Overrides each pod's own grace period." },
    {
      name: 'all',
      doc: 'Also removes pods of the API that have completed; the next `podd run` runs them again.',
    },
    ...placeConfigFlags,
  ],
  examples: [
    ['down', 'stop everything'],
    ['down --grace-period 2', 'within a short grace period'],
    ['down --socket /run/other/podd.sock', 'stop the podd that listens there'],
  ],
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
