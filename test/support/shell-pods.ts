import { shell } from './podd-program.ts'

type Fields = Readonly<Record<string, unknown>>

export interface ShellPodOptions {
  /** Beside the containers and the shared volume. */
  readonly spec?: Fields
  /** Of the container `main`. */
  readonly container?: Fields
  readonly metadata?: Fields
  readonly volumes?: readonly object[]
  readonly mounts?: readonly object[]
}

/**
 * What scripts of these pods begin with. `say WORD…` appends to `/shared/<log>` with the time since boot (in
 * seconds, to the hundredth); `stay` runs on until SIGTERM, says `end`, and exits with 0.
 */
export function preamble(log: string): string {
  return `say() { read t _ < /proc/uptime; echo "$t $*" >> /shared/${log}; }
stay() { trap 'say end; exit 0' TERM; sleep 1000000 & wait; }
`
}

/** A container that runs a script with the preamble, and sees the shared directory. */
export function shellContainer(name: string, log: string, script: string, fields: Fields = {}): object {
  const { volumeMounts = [], ...rest } = fields
  return {
    name,
    image: shell,
    command: ['sh', '-c', preamble(log) + script],
    volumeMounts: [
      { name: 'shared', mountPath: '/shared' },
      ...(Array.isArray(volumeMounts) ? volumeMounts : []),
    ],
    ...rest,
  }
}

/** A Pod of given containers with the shared directory (`rig.shared`). */
export function podOf(
  name: string,
  shared: string,
  containers: readonly object[],
  { spec = {}, metadata = {}, volumes = [] }: ShellPodOptions = {},
): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: {
      containers,
      volumes: [{ name: 'shared', hostPath: { path: shared } }, ...volumes],
      terminationGracePeriodSeconds: 2,
      ...spec,
    },
  }
}

/** A Pod with one container, `main`, whose script writes to `/shared/<pod's name>`. */
export function shellPod(
  name: string,
  shared: string,
  script: string,
  options: ShellPodOptions = {},
): object {
  const main = shellContainer('main', name, script, {
    ...options.container,
    volumeMounts: options.mounts ?? [],
  })
  return podOf(name, shared, [main], options)
}

/** The second word of each line: what was said. */
export function wordsOf(lines: readonly string[]): string[] {
  return lines.map((line) => line.split(' ').slice(1).join(' '))
}

/** When it was said, in seconds since boot; the first such line counts. */
export function saidAt(lines: readonly string[], word: string): number {
  const line = lines.find((candidate) => candidate.split(' ').slice(1).join(' ') === word)
  if (line === undefined) throw new Error(`nobody said ${word} among:\n${lines.join('\n')}`)
  return Number(line.split(' ')[0])
}

/** A manifest as people write it, whose pod says `start` and stays; `tail` may add to its container. */
export function yamlPod(name: string, shared: string, tail = ''): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  terminationGracePeriodSeconds: 2
  volumes:
  - name: shared
    hostPath: {path: ${shared}}
  containers:
  - name: main
    image: localhost/podd-test/shell:1
    command: [sh, -c, 'echo 0 start >>/shared/${name}; trap "exit 0" TERM; sleep 100000 & wait']
    volumeMounts:
    - {name: shared, mountPath: /shared}
${tail}`
}
