import { otherShell, shell } from './podd-program.ts'
import { pick } from './seeded-random.ts'

/** How a pod's containers take SIGTERM. */
export type Manner = 'at-once' | 'slowly' | 'deaf'

/** A pod of the walk: everything that its manifest follows from. */
export interface WalkPod {
  readonly name: string
  /** In the environment: another one replaces the pod. */
  readonly generation: number
  readonly images: readonly string[]
  readonly label: number
  readonly manner: Manner
  readonly restartPolicy: 'Always' | 'OnFailure' | 'Never'
  readonly graceSeconds: number
  readonly init: boolean
  readonly sidecar: boolean
  readonly hostPort: number | undefined
}

/**
 * Takes the kernel's lock of the container's name, which goes with its last process, and tells in
 * `violations` when somebody else holds it. The lock program is the host's: busybox has none.
 */
const takeLock = `L=$(echo /host-usr/lib/*-linux-gnu)
exec 9>/shared/lock.$POD.$NAME
$L/ld-linux-*.so.* --library-path $L /host-usr/bin/flock -n 9
[ $? != 1 ] || echo "$POD/$NAME generation $GENERATION ran beside another" >>/shared/violations
echo "$NAME $GENERATION" >>/shared/runs.$POD
`

/** CODE isn't 0 under OnFailure, where a container that was told to end and ends well has succeeded. */
const manners: Readonly<Record<Manner, string>> = {
  'at-once': `trap 'exit $CODE' TERM; sleep 1000000 9>&- & wait`,
  slowly: `trap 'sleep 0.4; exit $CODE' TERM; sleep 1000000 9>&- & wait; wait`,
  deaf: `trap '' TERM; while :; do sleep 1; done`,
}

/** The Pod as a user writes it. */
export function walkManifest(pod: WalkPod, shared: string): object {
  const container = (name: string, image: string, script: string, more: object = {}): object => ({
    name,
    image,
    command: ['sh', '-c', script],
    env: Object.entries({
      POD: pod.name,
      NAME: name,
      GENERATION: String(pod.generation),
      CODE: pod.restartPolicy === 'OnFailure' ? '1' : '0',
    }).map(([key, value]) => ({ name: key, value })),
    volumeMounts: [
      { name: 'shared', mountPath: '/shared' },
      { name: 'host-usr', mountPath: '/host-usr', readOnly: true },
      { name: 'scratch', mountPath: '/scratch' },
    ],
    ...more,
  })
  const stay = takeLock + manners[pod.manner]
  const ports = pod.hostPort === undefined ? {} : { ports: [{ containerPort: 80, hostPort: pod.hostPort }] }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod.name, labels: { turn: String(pod.label) } },
    spec: {
      restartPolicy: pod.restartPolicy,
      terminationGracePeriodSeconds: pod.graceSeconds,
      initContainers: [
        ...(pod.init ? [container('prepare', shell, 'true')] : []),
        ...(pod.sidecar ? [container('sidecar', shell, stay, { restartPolicy: 'Always' })] : []),
      ],
      containers: pod.images.map((image, index) =>
        container(`main-${index}`, image, stay, index === 0 ? ports : {}),
      ),
      volumes: [
        { name: 'shared', hostPath: { path: shared } },
        { name: 'host-usr', hostPath: { path: '/usr' } },
        { name: 'scratch', emptyDir: {} },
      ],
    },
  }
}

/** The containers that shall run in it. */
export function containerNames(pod: WalkPod): string[] {
  return [...pod.images.map((_, index) => `main-${index}`), ...(pod.sidecar ? ['sidecar'] : [])]
}

export function randomPod(
  name: string,
  facts: { readonly random: () => number; readonly generation: number; readonly hostPort: number },
): WalkPod {
  const { random, generation } = facts
  const chance = (share: number): boolean => random() < share
  const manner = pick(random, ['at-once', 'at-once', 'at-once', 'slowly', 'deaf'] as const)
  return {
    name,
    generation,
    images: chance(0.3) ? [shell, otherShell] : [shell],
    label: 0,
    manner,
    restartPolicy: pick(random, ['Always', 'Always', 'Always', 'OnFailure', 'Never'] as const),
    graceSeconds: manner === 'deaf' ? pick(random, [0, 1]) : pick(random, [1, 2, 5]),
    init: chance(0.25),
    sidecar: chance(0.2),
    hostPort: chance(0.25) ? facts.hostPort : undefined,
  }
}
