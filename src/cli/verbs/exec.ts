import { spawnSync } from 'node:child_process'
import { ReadStream, WriteStream } from 'node:tty'
import { findContainer } from '../../api/pod-summary.ts'
import type { TerminalSize } from '../../api/remote-command.ts'
import type { PodObject } from '../../api/resource.ts'
import { PoddError } from '../../base/errors.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import {
  chooseContainer,
  containerFlag,
  namespaceFlag,
  podPath,
  readNamespace,
  readPodName,
  withQuery,
} from '../arguments/pod-argument.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { runExec } from '../client/exec-stream.ts'
import type { ExecStreams } from '../client/exec-stream.ts'

export const execVerb: Verb = {
  usage: 'exec POD [-c CONTAINER] [-i] [-t] -- COMMAND [ARGUMENT...]',
  takesCommand: true,
  help: `Runs a command in a running container, with the user, environment and directory of the container's own process.
Exits with the command's exit code, or with 1 if podd fails. Ctrl-C without a terminal, or a broken connection,
ends the command too.`,
  flags: [
    containerFlag("In this container; by default in the pod's first one."),
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
    const notify = notifyOf(context)
    const { path, container } = await findTarget(context, readNamespace(args), name, notify)
    const streams = chooseStreams(context, notify)
    const query = streamQuery(container, streams.terminal !== undefined, streams)
    for (const word of command) query.append('command', word)
    const outcome = await runExec(client, withQuery(`${path}/exec`, query), streams, signal)
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

export const attachVerb: Verb = {
  usage: 'attach POD [-c CONTAINER] [-i] [-t]',
  help: `Shows what a container's own process prints from now on, and with -i sends it input. The container goes on when the
call ends. Input needs \`stdin: true\` in the manifest, a terminal \`tty: true\`. \`podd logs -f\` shows what was printed
before, too.`,
  flags: [
    containerFlag("To this container; by default the pod's first one."),
    { name: 'stdin', short: 'i', doc: 'Pass standard input to the container.' },
    { name: 'tty', short: 't', doc: "With -i, this terminal in raw mode for the container's own." },
    { name: 'quiet', short: 'q', doc: 'Print only the output of the container.' },
    namespaceFlag,
  ],
  examples: [
    ['attach web', 'its output from now on'],
    ['attach -it console', 'the terminal of a container with stdin and tty'],
  ],
  async run(context) {
    const { args } = context
    const [first] = args.positionals
    if (first === undefined) throw new UsageError('attach to which pod?', 'podd attach POD')
    args.refuseMore('attach', 1)
    const notify = notifyOf(context)
    const [namespace, name] = [readNamespace(args), readPodName(first, 'attach')]
    const { pod, container } = await findTarget(context, namespace, name, notify)
    const spec = findContainer(pod, container)
    if (args.has('stdin') && spec?.['stdin'] !== true) {
      throw new PoddError('ATTACH_FAILED', `container ${container} of pod ${name} takes no input`, {
        hint: 'Set `stdin: true` for it in the manifest; `podd exec -i` runs a command of its own.',
      })
    }
    const chosen = chooseStreams(context, notify)
    const hasTerminal = spec?.['tty'] === true
    if (chosen.terminal !== undefined && !hasTerminal)
      notify(`Unable to use a TTY - container ${container} did not allocate one`)
    const streams = hasTerminal ? chosen : { ...chosen, terminal: undefined }
    await joinContainer(context, { namespace, pod: name, container, tty: hasTerminal }, streams)
    return { kind: 'done', exitCode: 0 }
  },
}

/** What a call says beside the output. */
function notifyOf({ args, notify }: VerbContext): VerbContext['notify'] {
  return args.has('quiet') ? () => {} : notify
}

/** The container of a pod that the call names, else the default one. Throws ServerError, and as chooseContainer. */
export async function findTarget(
  { args, client, signal }: VerbContext,
  namespace: string,
  name: string,
  notify: VerbContext['notify'],
): Promise<{ readonly path: string; readonly pod: PodObject; readonly container: string }> {
  const path = podPath(namespace, name)
  const pod = await client.get<PodObject>(path, signal)
  return { path, pod, container: args.value('container') ?? chooseContainer(pod, notify) }
}

/** The command gets a terminal only where input and output are one, as with kubectl. */
export function chooseStreams({ args, stdio }: VerbContext, notify: (line: string) => void): ExecStreams {
  const { stdin, stdout, stderr } = stdio
  if (!args.has('stdin')) {
    if (args.has('tty')) notify('A TTY needs input too: without -i there is none')
    return { stdin: undefined, stdout, stderr, terminal: undefined }
  }
  const isTerminal = stdin instanceof ReadStream
  if (args.has('tty') && !isTerminal)
    notify('Unable to use a TTY - input is not a terminal or the right kind of file')
  if (!args.has('tty') || !isTerminal) return { stdin, stdout, stderr, terminal: undefined }
  const size = (): TerminalSize =>
    stdout instanceof WriteStream && stdout.columns > 0 && stdout.rows > 0
      ? { columns: stdout.columns, rows: stdout.rows }
      : { columns: 80, rows: 24 }
  return {
    stdin,
    stdout,
    stderr,
    terminal: {
      size,
      makeRaw: () => makeRaw(stdin),
      onResize(listener) {
        stdout.on('resize', listener)
        return () => void stdout.off('resize', listener)
      },
    },
  }
}

interface JoinedContainer {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  /** Whether it has a terminal of its own, and so a single output. */
  readonly tty: boolean
}

/**
 * Joins these streams with those of a container's own process, until it ends or the call does. Throws ServerError, or
 * PoddError ATTACH_FAILED, DAEMON_GONE or INTERRUPTED.
 */
export async function joinContainer(
  { client, signal }: Pick<VerbContext, 'client' | 'signal'>,
  { namespace, pod, container, tty }: JoinedContainer,
  streams: ExecStreams,
): Promise<void> {
  const path = withQuery(`${podPath(namespace, pod)}/attach`, streamQuery(container, tty, streams))
  const outcome = await runExec(client, path, streams, signal)
  if (outcome.kind === 'failed') throw new PoddError('ATTACH_FAILED', outcome.message)
}

/** @param tty whether the process in the container has a terminal, and so a single output */
function streamQuery(container: string, tty: boolean, { stdin, terminal }: ExecStreams): URLSearchParams {
  const query = new URLSearchParams({ container, stdout: 'true', [tty ? 'tty' : 'stderr']: 'true' })
  if (stdin !== undefined) query.set('stdin', 'true')
  if (terminal === undefined) return query
  const { columns, rows } = terminal.size()
  query.set('columns', String(columns))
  query.set('rows', String(rows))
  return query
}

/** They end this process. Node itself resets the terminal at SIGINT, SIGTERM and a plain exit. */
const endings = ['SIGHUP', 'SIGQUIT'] as const

/**
 * Puts the user's terminal, which is this process's standard input, into raw mode, as kubectl does (`term.MakeRaw`). That
 * covers its output too: the command's own terminal in the container has turned each line feed into a carriage return and
 * a line feed already, and the user's must not do so again. Returns the function that restores it. A signal that ends or
 * stops this process restores it as well; when the process continues, it is made raw again.
 */
export function makeRaw(stdin: ReadStream): () => void {
  const set = (): void => {
    stdin.setRawMode(true)
    // Node leaves the translation of output on. Without the program a command's full-screen output may be displaced.
    spawnSync('stty', ['-opost'], {
      stdio: ['inherit', 'ignore', 'ignore'],
      timeout: 5000,
      killSignal: 'SIGKILL',
    })
  }
  const restore = (): void => void stdin.setRawMode(false)
  const end = (name: NodeJS.Signals): void => {
    release()
    process.kill(process.pid, name)
  }
  const stop = (): void => {
    restore()
    process.kill(process.pid, 'SIGSTOP')
  }
  const goOn = (): void => {
    // The shell has set modes of its own: Node would take it for raw still.
    restore()
    set()
  }
  const release = (): void => {
    for (const name of endings) process.off(name, end)
    process.off('SIGTSTP', stop)
    process.off('SIGCONT', goOn)
    restore()
  }
  for (const name of endings) process.on(name, end)
  process.on('SIGTSTP', stop)
  process.on('SIGCONT', goOn)
  set()
  return release
}
