import { commandProtocols } from '../../../api/remote-command.ts'
import type { PodObject } from '../../../api/resource.ts'
import { PoddError } from '../../../base/errors.ts'
import { runExec } from '../../client/exec-stream.ts'
import { namespaceFlag, podPath, readNamespace } from '../../arguments/namespace.ts'
import type { ParsedArguments } from '../../arguments/parse-arguments.ts'
import { readPodName } from '../../arguments/pod-argument.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'
import { chooseContainer } from './choose-container.ts'
import { chooseStreams } from './choose-streams.ts'

export const execVerb: Verb = {
  usage: 'exec POD [-c CONTAINER] [-i] [-t] -- COMMAND [ARGUMENT...]',
  help: `Runs a command in a running container, with the user, environment and directory of the container's own process.
Exits with the command's exit code, or with 1 if podd fails. Ctrl-C without a terminal, or a broken connection,
ends the command too.`,
  flags: [
    {
      name: 'container',
      short: 'c',
      label: 'NAME',
      doc: "In this container; by default in the pod's first one.",
    },
    { name: 'stdin', short: 'i', doc: 'Pass standard input to the command.' },
    { name: 'tty', short: 't', doc: 'Allocate a terminal for the command; with -i this one, in raw mode.' },
    { name: 'quiet', short: 'q', doc: 'Print only the output of the command.' },
    namespaceFlag,
  ],
  examples: [
    ['exec web -- ps', 'one command'],
    ['exec -it web -- sh', 'a shell'],
    ['exec web -c db -i -- psql < dump.sql', 'with input'],
  ],
  async run(context) {
    const { args, client, signal } = context
    const { name, command } = readCommand(args)
    const notify = args.has('quiet') ? (): void => {} : context.notify
    const namespace = readNamespace(args)
    const pod = await client.get<PodObject>(podPath(namespace, name), signal)
    const container = args.value('container') ?? chooseContainer(pod, notify)
    const streams = chooseStreams(context, notify)
    const query = new URLSearchParams({ container, stdout: 'true' })
    for (const word of command) query.append('command', word)
    if (streams.terminal === undefined) query.set('stderr', 'true')
    if (streams.stdin !== undefined) query.set('stdin', 'true')
    if (streams.terminal !== undefined) {
      query.set('tty', 'true')
      const { columns, rows } = streams.terminal.size()
      query.set('columns', String(columns))
      query.set('rows', String(rows))
    }
    const path = `${podPath(namespace, name)}/exec?${query.toString()}`
    const socket = await client.openWebSocket(path, commandProtocols[0], signal)
    const outcome = await runExec(socket, streams, signal)
    if (outcome.kind === 'failed') throw new PoddError('EXEC_FAILED', outcome.message)
    if (outcome.exitCode !== 0) notify(`command terminated with exit code ${outcome.exitCode}`)
    return { kind: 'done', exitCode: outcome.exitCode }
  },
}

function readCommand(args: ParsedArguments): { readonly name: string; readonly command: readonly string[] } {
  const [first, ...command] = args.positionals
  const hint = 'podd exec POD -- COMMAND'
  if (first === undefined) throw new UsageError('exec in which pod?', hint)
  if (command.length === 0) throw new UsageError('exec needs a command', hint)
  // Without the dashes a flag of the command could be taken for one of podd's.
  if (args.dashesAt !== 1) throw new UsageError('the command must stand after --', hint)
  return { name: readPodName(first, 'exec'), command }
}
