import type { DrainReply } from '../../../api/routes.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'

export const drainVerb: Verb = {
  usage: 'drain [--undo]',
  help: `Ends all pods before the host shuts down, in the order of their priorities (critical pods last), each with its grace
period or what shutdownGracePeriod leaves it, and admits none meanwhile. podd keeps running. The pods start again after
the next boot of the host, or with --undo. Pods that have finished stay as they are. The exit code is 1 if a pod has not
ended in time.`,
  flags: [{ name: 'undo', doc: 'The host goes on: admit pods, and start those that were ended.' }],
  examples: [
    ['drain', 'before a reboot: end all pods in order'],
    ['drain --undo', 'start them again without a reboot'],
  ],
  async run({ args, client, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`drain takes no argument ${JSON.stringify(extra)}`)
    if (args.has('undo')) {
      await client.post('/podd/v1/drain/undo', signal)
      return { kind: 'text', text: 'the drain is undone; pods start again\n' }
    }
    const { ended, stuck } = await client.post<DrainReply>('/podd/v1/drain', signal)
    return {
      kind: 'text',
      text: `drained: ${ended} ${ended === 1 ? 'pod has' : 'pods have'} ended\n`,
      notes: stuck.map((key) => `pod ${key} has not ended in time`),
      exitCode: stuck.length === 0 ? 0 : 1,
    }
  },
}
