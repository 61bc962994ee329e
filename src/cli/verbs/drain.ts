import type { DrainReply } from '../../api/routes.ts'
import type { HoldReply } from '../../api/sources.ts'
import { sleepUnlessAborted } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { extendTimeout, takeServiceManager } from '../../host/service-manager.ts'
import type { ServiceManager } from '../../host/service-manager.ts'
import { withQuery } from '../arguments/pod-argument.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'

export const drainVerb: Verb = {
  usage: 'drain [--undo]',
  help: `Ends all pods before the host shuts down, in the order of their priorities (critical pods last), each with its grace
period or what shutdownGracePeriod leaves it, and admits none meanwhile. podd keeps running. The pods start again after
the next boot of the host, or with --undo. Pods that have finished stay as they are. The exit code is 1 if a pod has not
ended in time. As the ExecStop of a unit with NotifyAccess=all it has systemd wait while pods end, and tries again where
podd does not answer.`,
  flags: [{ name: 'undo', doc: 'Undo the drain: admit pods again, and start those that it ended.' }],
  examples: [
    ['drain', 'before a reboot: end all pods in order'],
    ['drain --undo', 'start them again without a reboot'],
  ],
  async run(context) {
    const { args, client, signal } = context
    args.refuseMore('drain')
    if (args.has('undo')) {
      await client.post('/podd/v1/drain/undo', signal)
      return { kind: 'text', text: 'the drain is undone; pods start again\n' }
    }
    const { ended, stuck } = await drain(context)
    return {
      kind: 'text',
      text: `drained: ${ended} ${ended === 1 ? 'pod has' : 'pods have'} ended\n`,
      notes: stuck.map((key) => `pod ${key} has not ended in time`),
      exitCode: stuck.length === 0 ? 0 : 1,
    }
  },
}

/** The interval at which systemd's timeout is extended, and by how much: a failed extension is harmless. */
const extendMs = 60_000
const extensionMs = 5 * extendMs
/** How long podd may be silent or unavailable before the shutdown continues without it, and the interval of retries. */
const patienceMs = 300_000
const askAgainMs = 2000

async function drain(context: VerbContext): Promise<DrainReply> {
  const { client, clock, env, signal } = context
  const post = (): Promise<DrainReply> => client.post('/podd/v1/drain', signal)
  const manager = takeServiceManager({ ...env }, process.pid)
  if (manager === undefined) return post()
  const over = new AbortController()
  const extending = keepWaiting(manager, context, over.signal)
  const giveUpAtMs = clock.monotonicMs() + patienceMs
  let hasBeenThere = false
  try {
    for (;;) {
      try {
        return await post()
      } catch (error) {
        hasBeenThere ||= errorCode(error) === 'DAEMON_SILENT' || errorCode(error) === 'DAEMON_GONE'
        const mayComeBack = hasBeenThere && errorCode(error) !== 'INTERRUPTED'
        if (!mayComeBack || clock.monotonicMs() > giveUpAtMs) throw error
        context.notify(`${errorMessage(error)}; trying again`)
      }
      await clock.sleep(askAgainMs, signal)
    }
  } finally {
    over.abort(new Error('the drain is over'))
    await extending
  }
}

/** Has the service manager wait for the end of this process, until the signal is aborted. Never rejects. */
async function keepWaiting(
  manager: ServiceManager,
  { clock, notify }: VerbContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await manager.notify(extendTimeout(extensionMs), 'STATUS=ending the pods').catch((error: unknown) => {
      notify(errorMessage(error))
    })
    await sleepUnlessAborted(clock, extendMs, signal)
  }
}

export const holdVerb: Verb = {
  usage: 'hold [SOURCE...]',
  help: `Freezes the host at what it runs: podd keeps to what the sources gave, over restarts and reboots too, and applies no
change of them until \`podd resume\`. Without a name, all sources are held. Pods are still restarted, probed and evicted, and
what is written over the API still counts. \`podd get sources\` shows what is held, and what waits.`,
  flags: [],
  examples: [
    ['hold', 'apply no change of any source'],
    ['hold fleet', 'hold the source fleet alone'],
  ],
  run: (context) => change(context, 'hold', 'held'),
}

export const resumeVerb: Verb = {
  usage: 'resume [SOURCE|UNIT...]',
  help: `Follows sources again that were held, and applies what has changed meanwhile; \`podd get sources -o yaml\` lists that
beforehand. Without a name, all of them. With the name of a unit (a file, or a URL's source), tries again what that gives
where another revision counts, because it failed or somebody rolled back; only a name does that.`,
  flags: [],
  examples: [
    ['resume', 'follow all sources again'],
    ['resume fleet', 'follow the source fleet again'],
    ['resume web.yaml', 'try again what failed in a file'],
  ],
  run: (context) => change(context, 'resume', 'followed again'),
}

async function change(
  { args, client, signal }: VerbContext,
  verb: 'hold' | 'resume',
  done: string,
): Promise<VerbResult> {
  const named = args.positionals.map((name) => ['source', name])
  const path = withQuery(`/podd/v1/sources/${verb}`, named)
  const { changed } = await client.post<HoldReply>(path, signal)
  const lines = changed.map((name) => `${name.includes('/') ? 'unit' : 'source'} ${name} is ${done}\n`)
  const nothing =
    verb === 'hold'
      ? 'nothing changed: held before\n'
      : `nothing changed: no such source was held${args.positionals.length === 0 ? '' : ', and no such unit rolled back'}\n`
  return { kind: 'text', text: lines.join('') || nothing }
}
