import type { Writable } from 'node:stream'
import type { Clock } from '../base/clock.ts'
import { PoddError, errorCode } from '../base/errors.ts'
import { escapeControls } from '../base/text.ts'
import type { UsualPlaces } from '../config/places.ts'
import { ApiClient } from './client/client.ts'
import type { DaemonActions, Verb, VerbContext, VerbEntry } from './arguments/verb.ts'
import { formatError } from './output/report-format.ts'
import { globalFlags, programHelp, verbHelp } from './help.ts'
import type { Output } from './output/print.ts'
import { createOutput, printResult } from './output/print.ts'
import { namespaceFlag } from './arguments/pod-argument.ts'
import type { FlagSpec, ParsedArguments } from './arguments/parse-arguments.ts'
import { nearestOr, parseArguments, secondWordAt, UsageError } from './arguments/parse-arguments.ts'
import { findSocket } from './arguments/socket-path.ts'
import { verbs } from './verbs.ts'

/** One command line, with the streams, the clock and the environment of the process, or of a test. */
interface Call {
  readonly stdout: Writable
  readonly stderr: Writable
  readonly stdin: AsyncIterable<Uint8Array | string>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly usual: UsualPlaces
  readonly clock: Clock
  /** Handles Ctrl-C from here on, by aborting the signal. */
  readonly onInterrupt: () => AbortSignal
  readonly output: Output
  readonly notify: (line: string) => void
}

/** 128 and SIGINT's number, as shells report it. */
const interruptedExitCode = 130

/** Runs one command line; returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Never throws. */
export async function runCli(
  argv: readonly string[],
  daemon: DaemonActions,
  process: Omit<Call, 'output' | 'notify'>,
): Promise<number> {
  const { stdout, env, usual, clock, onInterrupt } = process
  const output = createOutput(stdout)
  let errors: Writable | undefined
  const call: Call = {
    stdout,
    // Node opens these when they are asked for; few verbs read, and most write no errors.
    get stderr() {
      if (errors === undefined) createOutput(process.stderr)
      errors = process.stderr
      return errors
    },
    get stdin() {
      return process.stdin
    },
    env,
    usual,
    clock,
    onInterrupt,
    output,
    notify: (line) => void call.stderr.write(`${escapeControls(line)}\n`),
  }
  const { notify } = call
  const exitCode = await runCommand(argv, daemon, call).catch((error: unknown) => {
    // An interrupt, or a closed output, needs no message.
    if (errorCode(error) === 'INTERRUPTED' && !output.closed.aborted) return interruptedExitCode
    if (output.closed.aborted) return 0
    notify(formatError(error))
    return error instanceof UsageError ? 2 : 1
  })
  const failure = output.failure()
  if (failure === undefined) return exitCode
  notify(formatError(failure))
  return 1
}

async function runCommand(argv: readonly string[], daemon: DaemonActions, call: Call): Promise<number> {
  const width = columnsOf(call.stdout)
  const show = async (text: string): Promise<number> => {
    await call.output.write(text)
    return 0
  }
  const { before, name, after } = splitCommand(argv)
  const globals = parseArguments(before, [...flagsBefore, { name: 'version', doc: '' }])
  const wantsHelp = name === 'help' || (name === undefined && globals.has('help'))
  if (name === undefined && !wantsHelp && !globals.has('version')) {
    call.notify(programHelp(verbs, width))
    return 2
  }
  const target = globals.has('version') ? 'version' : wantsHelp ? after[0] : name
  if (target === undefined || target.startsWith('-')) return show(programHelp(verbs, width))
  const words = wantsHelp ? after.slice(1) : after
  const { verb, rest } = pickAction(target, await findVerb(target).load(), words)
  if (wantsHelp) return show(verbHelp(verb, width))
  const flags = [...verb.flags, ...globalFlags]
  if (verb.takesCommand === true) requireDashes(target, rest, flags)
  const args = parseArguments([...before.filter((word) => word !== '--version'), ...rest], flags)
  return args.has('help') ? show(verbHelp(verb, width)) : runVerb(verb, args, daemon, call)
}

async function runVerb(
  verb: Verb,
  args: ParsedArguments,
  daemon: DaemonActions,
  call: Call,
): Promise<number> {
  const interrupt = verb.takesSignals === true ? new AbortController().signal : call.onInterrupt()
  const signal = AbortSignal.any([interrupt, call.output.closed])
  const context: VerbContext = {
    args,
    daemon,
    client: new ApiClient(await findSocket(args, call), call.clock),
    clock: call.clock,
    env: call.env,
    usual: call.usual,
    signal,
    stdio: call,
    notify: call.notify,
  }
  try {
    const { output, notify } = call
    const exitCode = await printResult(await verb.run(context), {
      output,
      notify,
      hasColours: hasColours(call),
    })
    return interrupt.aborted ? interruptedExitCode : exitCode
  } catch (error) {
    throw interrupt.aborted ? new PoddError('INTERRUPTED', 'interrupted', { cause: error }) : error
  }
}

/** On a terminal that shows colours, unless the environment asks for none (https://no-color.org). */
function hasColours({ stdout, env }: Call): boolean {
  const isTerminal = 'isTTY' in stdout && stdout.isTTY === true
  return isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}

/** Of a terminal. */
function columnsOf(stream: Writable): number | undefined {
  return 'columns' in stream && typeof stream.columns === 'number' && stream.columns > 0
    ? stream.columns
    : undefined
}

/** Flags that may precede the verb: those of every verb, and the namespace, as with kubectl. */
const flagsBefore: readonly FlagSpec[] = [...globalFlags, namespaceFlag]

/** The action of a verb that the next word names; the verb itself where it has none, or a flag follows. */
function pickAction(
  name: string,
  verb: Verb,
  words: readonly string[],
): { readonly verb: Verb; readonly rest: readonly string[] } {
  const [word, ...rest] = words
  if (verb.actions === undefined || word === undefined || word.startsWith('-')) return { verb, rest: words }
  const found = verb.actions.find((action) => action.name === word || action.aliases?.includes(word) === true)
  if (found !== undefined) return { verb: found.verb, rest }
  const names = verb.actions.map((action) => action.name)
  const hint = nearestOr(word, names, `There are ${names.join(', ')}.`)
  throw new UsageError(`unknown action ${JSON.stringify(word)} of ${name}`, hint)
}

/**
 * Throws UsageError, with the line that was meant, where a command follows a pod without `--`: its flags would be taken for
 * podd's.
 */
function requireDashes(name: string, words: readonly string[], flags: readonly FlagSpec[]): void {
  const at = secondWordAt(words, flags)
  if (at === undefined || words.slice(0, at).includes('--')) return
  const line = [...words.slice(0, at), '--', ...words.slice(at)].filter(
    (word, index) => word !== '--' || index === at,
  )
  throw new UsageError('the command must stand after --', `podd ${name} ${line.join(' ')}`)
}

/** The values of flags before the verb must not be mistaken for it. */
function splitCommand(argv: readonly string[]): {
  readonly before: readonly string[]
  readonly name: string | undefined
  readonly after: readonly string[]
} {
  let at = 0
  while (argv[at]?.startsWith('-') === true) at += takesNextWord(argv[at]) ? 2 : 1
  return { before: argv.slice(0, at), name: argv[at], after: argv.slice(at + 1) }
}

function takesNextWord(word: string | undefined): boolean {
  return flagsBefore.some(
    ({ name, short, label }) => label !== undefined && [`--${name}`, `-${short}`].includes(word ?? ''),
  )
}

const byManifest =
  'Pods come from manifests: `podd apply` puts one into the manifest directory; to change it, edit it there. What is written over the API is changed with kubectl.'

const byKubectl = (verb: string): string =>
  `\`kubectl ${verb}\` works with a kubeconfig of \`podd kubeconfig\`.`

/** What podd has for the verbs of kubectl, docker, podman and crictl that it lacks. */
const otherVerbs = new Map([
  ['edit', byManifest],
  ['patch', byManifest],
  ['replace', byManifest],
  ['set', byManifest],
  ['label', byManifest],
  ['annotate', byManifest],
  ['auth', byKubectl('auth')],
  ['api-resources', byKubectl('api-resources')],
  ['api-versions', byKubectl('api-versions')],
  ['proxy', byKubectl('proxy')],
  ['config', 'podd listens at a socket, and needs no config; `podd kubeconfig` prints one for kubectl.'],
  ['cluster-info', '`podd status` shows the host and what runs on it.'],
  ['info', '`podd status` shows the host and what runs on it.'],
  [
    'expose',
    'A Service is a name for pods: write a manifest of kind Service. A port of the host: `hostPort` in the pod.',
  ],
  ['autoscale', 'podd scales by hand alone: `podd scale`.'],
  ['cordon', '`podd hold` applies no changes; `podd drain` ends the pods, and admits none.'],
  ['uncordon', '`podd drain --undo` admits pods again; `podd resume` follows the sources again.'],
  ['taint', 'There is one host: nothing is scheduled elsewhere.'],
  ['ps', '`podd get pods` lists pods, with -A those of all namespaces.'],
  ['pods', '`podd get pods` lists them.'],
  ['ls', '`podd get pods` lists pods; `podd images` lists images.'],
  ['inspect', '`podd describe pod POD` tells all about a pod, `podd get pod POD -o yaml` as data.'],
  ['show', '`podd describe pod POD` tells all about a pod.'],
  [
    'start',
    'A pod runs for as long as its manifest is there: `podd apply -f FILE`. `systemctl start podd` starts podd.',
  ],
  [
    'stop',
    '`podd delete pod POD` ends a pod and removes its manifest; `podd down` ends all, and keeps the manifests.',
  ],
  ['kill', '`podd delete pod POD --grace-period=0 --force` ends a pod at once.'],
  ['rm', '`podd delete pod POD` ends a pod; `podd images remove IMAGE` removes an image.'],
  ['rmi', '`podd images remove IMAGE`'],
  ['pull', '`podd images pull IMAGE`'],
  ['load', '`podd images import FILE.tar`'],
  ['save', '`podd images export IMAGE > FILE.tar`'],
  ['push', 'podd pushes no images; `podd images export IMAGE > FILE.tar` writes one to a file.'],
  [
    'build',
    'podd builds no images: build elsewhere, and `podd images import FILE.tar`, or pull from a registry.',
  ],
  ['prune', '`podd gc` removes unused images; `podd gc --dry-run` says which.'],
  ['system', '`podd status` shows the host, `podd gc` removes what is unused.'],
  ['stats', '`podd top pod` shows what pods use.'],
  ['volume', '`podd get pvc` lists claims, and `podd delete pvc NAME --purge` deletes their data.'],
  ['network', 'Pods have one network; `podd doctor` checks it.'],
  ['play', '`podd apply -f FILE`'],
  ['kube', '`podd apply -f FILE`'],
  ['up', '`podd apply -f FILE`'],
])

function findVerb(name: string): VerbEntry {
  const found = verbs.find((verb) => verb.name === name || verb.aliases?.includes(name) === true)
  if (found !== undefined) return found
  const elsewhere = otherVerbs.get(name)
  if (elsewhere !== undefined) throw new UsageError(`podd has no verb ${JSON.stringify(name)}`, elsewhere)
  const names = verbs.map((verb) => verb.name)
  const hint = nearestOr(name, names, '`podd --help` lists them.')
  throw new UsageError(`unknown verb ${JSON.stringify(name)}`, hint)
}
