import type { HoldReply } from '../../../api/sources.ts'
import type { Verb, VerbContext, VerbResult } from '../../arguments/verb.ts'

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
  usage: 'resume [SOURCE...]',
  help: `Follows sources again that were held, and applies what has changed meanwhile; \`podd get sources -o yaml\` lists that
beforehand. Without a name, all of them.`,
  flags: [],
  examples: [
    ['resume', 'follow all sources again'],
    ['resume fleet', 'follow the source fleet again'],
  ],
  run: (context) => change(context, 'resume', 'followed again'),
}

async function change(
  { args, client, signal }: VerbContext,
  verb: 'hold' | 'resume',
  done: string,
): Promise<VerbResult> {
  const query = new URLSearchParams(args.positionals.map((name) => ['source', name]))
  const path = `/podd/v1/sources/${verb}${query.size === 0 ? '' : `?${query.toString()}`}`
  const { changed } = await client.post<HoldReply>(path, signal)
  const lines = changed.map((name) => `source ${name} is ${done}\n`)
  const nothing =
    verb === 'hold' ? 'nothing changed: held before\n' : 'nothing changed: no such source was held\n'
  return { kind: 'text', text: lines.join('') || nothing }
}
