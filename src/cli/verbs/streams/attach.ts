import type { PodObject } from '../../../api/resource.ts'
import { isJsonObject } from '../../../base/json.ts'
import { PoddError } from '../../../base/errors.ts'
import { namespaceFlag, podPath, readNamespace } from '../../arguments/namespace.ts'
import { readPodName } from '../../arguments/pod-argument.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'
import { chooseContainer } from './choose-container.ts'
import { chooseStreams } from './choose-streams.ts'
import { joinContainer } from './join-container.ts'

export const attachVerb: Verb = {
  usage: 'attach POD [-c CONTAINER] [-i] [-t]',
  help: `Shows what a container's own process prints from now on, and with -i sends it input. The container goes on when the
call ends. Input needs \`stdin: true\` in the manifest, a terminal \`tty: true\`. \`podd logs -f\` shows what was printed
before, too.`,
  flags: [
    {
      name: 'container',
      short: 'c',
      label: 'NAME',
      doc: "To this container; by default the pod's first one.",
    },
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
    const { args, client, signal } = context
    const [first, extra] = args.positionals
    if (first === undefined) throw new UsageError('attach to which pod?', 'podd attach POD')
    if (extra !== undefined) throw new UsageError(`attach takes no argument ${JSON.stringify(extra)}`)
    const notify = args.has('quiet') ? (): void => {} : context.notify
    const namespace = readNamespace(args)
    const name = readPodName(first, 'attach')
    const pod = await client.get<PodObject>(podPath(namespace, name), signal)
    const container = args.value('container') ?? chooseContainer(pod, notify)
    const spec = specOf(pod, container)
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

function specOf({ spec }: PodObject, name: string): Readonly<Record<string, unknown>> | undefined {
  for (const list of [spec['containers'], spec['initContainers'], spec['ephemeralContainers']]) {
    if (!Array.isArray(list)) continue
    const containers: readonly unknown[] = list
    const found = containers.find((container) => isJsonObject(container) && container['name'] === name)
    if (isJsonObject(found)) return found
  }
  return undefined
}
