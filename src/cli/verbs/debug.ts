import { allContainerNames, containerNames } from '../../api/pod-summary.ts'
import type { PodObject, WatchEvent } from '../../api/resource.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { systemRandom } from '../../base/random.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import {
  listPath,
  namespaceFlag,
  podPath,
  readNamespace,
  readPodName,
  withQuery,
} from '../arguments/pod-argument.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import { chooseStreams, joinContainer } from './exec.ts'

/** `kubectl/pkg/cmd/debug/profiles.go`, 1.36, for ephemeral containers. */
const debugProfiles: Readonly<Record<string, JsonObject | undefined>> = {
  general: { capabilities: { add: ['SYS_PTRACE'] } },
  baseline: undefined,
  restricted: {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  },
  netadmin: { capabilities: { add: ['NET_ADMIN', 'NET_RAW'] } },
  sysadmin: { privileged: true },
}

const pullPolicies = ['Always', 'IfNotPresent', 'Never']

interface DebugRequest {
  readonly name: string
  readonly image: string
  /** Empty: the image's own. */
  readonly command: readonly string[]
  readonly target: string | undefined
  readonly args: ParsedArguments
}

/** The ephemeral container of a call. Throws UsageError. */
export function debugContainer({ name, image, command, target, args }: DebugRequest): JsonObject {
  const policy = args.value('image-pull-policy')
  if (policy !== undefined && !pullPolicies.includes(policy))
    throw noneCalled('pull policy', policy, pullPolicies)
  const profile = args.value('profile') ?? 'general'
  if (!Object.hasOwn(debugProfiles, profile)) throw noneCalled('profile', profile, Object.keys(debugProfiles))
  const securityContext = debugProfiles[profile]
  const env = args.values('env').map((text) => readVariable(text))
  return {
    name,
    image,
    ...(command.length > 0 && { command: [...command] }),
    ...(env.length > 0 && { env }),
    ...(policy !== undefined && { imagePullPolicy: policy }),
    ...(securityContext !== undefined && { securityContext }),
    // Without a terminal the container sees the end of the input, and its output continues after that.
    ...(args.has('stdin') && { stdin: true, ...(!args.has('tty') && { stdinOnce: true }) }),
    ...(args.has('tty') && { tty: true }),
    ...(target !== undefined && { targetContainerName: target }),
  }
}

function noneCalled(what: string, word: string, known: readonly string[]): UsageError {
  return new UsageError(`no ${what} is called ${JSON.stringify(word)}`, `There are ${known.join(', ')}.`)
}

function readVariable(text: string): JsonObject {
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`--env ${JSON.stringify(text)} is not NAME=VALUE`)
  return { name: text.slice(0, equals), value: text.slice(equals + 1) }
}

export const debugVerb: Verb = {
  usage: 'debug POD --image IMAGE [-i] [-t] [--target CONTAINER] [-- COMMAND [ARGUMENT...]]',
  help: `Adds an ephemeral container to a running pod and, with -i, joins it: for tools that the pod's own images lack. Nothing
of the pod restarts, and the container stays listed after it has ended. It is beside the pod's manifest, which stays as it
is, and goes with the pod.`,
  flags: [
    { name: 'image', label: 'IMAGE', doc: 'The image of the container.' },
    { name: 'container', short: 'c', label: 'NAME', doc: 'Its name; by default debugger- and five letters.' },
    { name: 'target', label: 'CONTAINER', doc: 'Share the process namespace of this container of the pod.' },
    { name: 'stdin', short: 'i', doc: 'Join the container, and pass standard input to it.' },
    { name: 'tty', short: 't', doc: 'Allocate a terminal for the container.' },
    { name: 'attach', doc: 'Join the container without -i too; --attach=false: with -i neither.' },
    { name: 'env', label: 'NAME=VALUE', doc: 'A variable of its environment; any number.' },
    { name: 'image-pull-policy', label: 'POLICY', doc: 'Always, IfNotPresent or Never.' },
    {
      name: 'profile',
      label: 'PROFILE',
      doc: `What it may do: ${Object.keys(debugProfiles).join(', ')}; general, which may trace processes, by default.`,
    },
    { name: 'quiet', short: 'q', doc: 'Print only the output of the container.' },
    namespaceFlag,
  ],
  examples: [
    ['debug web -it --image busybox:1.36 --target main -- sh', "a shell that sees main's processes"],
    ['debug web --image tools:1 -- tcpdump -c 10', 'no input; `podd logs web -c NAME` shows its output'],
    ['debug web -it --image tools:1 --profile netadmin', 'with the rights to change the network'],
  ],
  async run(context) {
    const { args, client, signal } = context
    const { pod: name, command } = readPod(args)
    const image = args.value('image')
    if (image === undefined || image === '')
      throw new UsageError('debug with which image?', 'podd debug POD --image IMAGE')
    const notify = args.has('quiet') ? (): void => {} : context.notify
    const namespace = readNamespace(args)
    const joins = args.value('attach') === undefined ? args.has('stdin') : args.has('attach')
    const pod = await client.get<PodObject>(podPath(namespace, name), signal)
    const target = args.value('target')
    if (target !== undefined) requireTarget(pod, target)
    const container = args.value('container') ?? freeName(pod)
    if (allContainerNames(pod).includes(container))
      throw new UsageError(`pod ${name} has a container ${container} already`, '-c names another one.')
    const added = debugContainer({ name: container, image, command, target, args })
    if (args.value('container') === undefined) notify(`Defaulting debug container name to ${container}.`)
    const patch = { spec: { ephemeralContainers: [added] } }
    await client.patch(`${podPath(namespace, name)}/ephemeralcontainers`, patch, signal)
    if (joins) await join(context, { namespace, pod: name, container, tty: args.has('tty') }, notify)
    return { kind: 'done', exitCode: 0 }
  },
}

function readPod(args: ParsedArguments): { readonly pod: string; readonly command: readonly string[] } {
  const before = args.positionals.slice(0, args.dashesAt)
  const [first, extra] = before
  if (first === undefined) throw new UsageError('debug which pod?', 'podd debug POD --image IMAGE')
  if (extra !== undefined)
    throw new UsageError(`debug takes no argument ${JSON.stringify(extra)}`, 'A command stands after --.')
  return { pod: readPodName(first, 'debug'), command: args.positionals.slice(before.length) }
}

function requireTarget(pod: PodObject, target: string): void {
  const names = [...containerNames(pod, 'containers'), ...containerNames(pod, 'initContainers')]
  if (names.includes(target)) return
  throw new PoddError('CONTAINER_NOT_FOUND', `pod ${pod.metadata.name} has no container ${target}`, {
    hint: `There are ${names.join(', ')}.`,
  })
}

/** Characters of a generated suffix, as in Kubernetes' generated names. */
const letters = 'bcdfghjklmnpqrstvwxz2456789'

function freeName(pod: PodObject): string {
  const taken = allContainerNames(pod)
  for (;;) {
    const end = Array.from({ length: 5 }, () => letters[Math.floor(systemRandom() * letters.length)])
    const name = `debugger-${end.join('')}`
    if (!taken.includes(name)) return name
  }
}

/** Waits until the container runs, and joins it; shows the log of one that has ended meanwhile. */
async function join(
  context: VerbContext,
  joined: Parameters<typeof joinContainer>[1],
  notify: (line: string) => void,
): Promise<void> {
  const { namespace, pod, container } = joined
  const status = await whenBegun(context, joined, notify)
  if (status.state.running === undefined) return showLog(context, joined)
  const streams = chooseStreams(context, notify)
  if (streams.terminal !== undefined) notify("If you don't see a command prompt, try pressing enter.")
  try {
    await joinContainer(context, joined, streams)
  } catch (error) {
    // Refused at once, or by the runtime, as where the container has ended meanwhile.
    if (!(error instanceof ServerError) && errorCode(error) !== 'ATTACH_FAILED') throw error
    notify(
      `warning: couldn't attach to pod/${pod} (container ${container} in ${namespace}), showing its log: ${errorMessage(error)}`,
    )
    await showLog(context, joined)
  }
}

async function showLog(
  { client, signal, stdio }: VerbContext,
  { namespace, pod, container }: Parameters<typeof joinContainer>[1],
): Promise<void> {
  const log = withQuery(`${podPath(namespace, pod)}/log`, { container, follow: 'true' })
  for await (const chunk of client.stream(log, signal)) stdio.stdout.write(chunk)
}

async function whenBegun(
  { client, signal }: VerbContext,
  { namespace, pod, container }: Parameters<typeof joinContainer>[1],
  notify: (line: string) => void,
): Promise<ContainerStatus> {
  const done = new AbortController()
  const query = { watch: 'true', fieldSelector: `metadata.name=${pod}` }
  const path = withQuery(listPath('pods', namespace), query)
  const changes = client.watch<WatchEvent<PodObject>>(path, AbortSignal.any([signal, done.signal]))
  let told = ''
  let begun: ContainerStatus | undefined
  for await (const { type, object } of changes) {
    if (begun !== undefined) continue
    if (type === 'DELETED') throw new PoddError('POD_GONE', `pod ${pod} was removed`)
    const status = object.status.ephemeralContainerStatuses?.find(({ name }) => name === container)
    if (status?.state.running !== undefined || status?.state.terminated !== undefined) {
      begun = status
      done.abort()
    }
    const { reason = '', message = '' } = status?.state.waiting ?? {}
    const why = message === '' ? '' : `Container ${container} waits: ${reason}: ${message}`
    if (why !== told && why !== '') notify(why)
    told = why
  }
  if (begun !== undefined) return begun
  throw new PoddError('INTERRUPTED', 'interrupted')
}
