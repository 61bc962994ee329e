/** Where pods of the machine write when they start and end. */
export const saidDir = '/var/lib/podd-vm-test'

export const plainImage = 'localhost/podd-busybox:1'

/** Which of the pods there are; `hello` is what install.sh places. */
export type PodName = 'low' | 'middle' | 'vital' | 'pulled' | 'imported' | 'late'

export interface VmPod {
  readonly name: PodName
  readonly image: string
  readonly priorityClassName?: string
  /** Its image has a file `/sums` to check it by. */
  readonly isChecked?: boolean
}

/** Longer than systemd waits for the drain by itself in the phase `reboot`. */
export const longEndSeconds = 45

/** Says `start BOOT UPTIME ok`, or `damaged` where its image is; `end UPTIME` some seconds after SIGTERM. */
function scriptOf({ name, isChecked = false }: VmPod): string {
  const endSeconds = name === 'vital' ? longEndSeconds : 3
  const check = isChecked ? 'sha256sum -c /sums >/dev/null 2>&1' : 'true'
  return `say() { echo "$@" >>/said/${name}; }
boot=$(cat /proc/sys/kernel/random/boot_id)
if ${check}; then state=ok; else state=damaged; fi
say start $boot $(cut -d' ' -f1 /proc/uptime) $state
[ $state = ok ] || exit 1
trap 'sleep ${endSeconds}; say end $(cut -d" " -f1 /proc/uptime); exit 0' TERM
while :; do sleep 1; done
`
}

/** @param revision another one is another pod */
export function manifestOf(pod: VmPod, revision = 0): string {
  const { name, image, priorityClassName } = pod
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      ...(priorityClassName !== undefined && { priorityClassName }),
      terminationGracePeriodSeconds: 2 * longEndSeconds,
      containers: [
        {
          name: 'main',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['sh', '-c', scriptOf(pod)],
          env: [{ name: 'REVISION', value: String(revision) }],
          volumeMounts: [{ name: 'said', mountPath: '/said' }],
        },
      ],
      volumes: [{ name: 'said', hostPath: { path: saidDir, type: 'DirectoryOrCreate' } }],
    },
  })
}

export const middleClass = JSON.stringify({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name: 'middle' },
  value: 1000,
})

/** What a pod said of one boot. */
export interface Start {
  readonly pod: string
  readonly uptimeSeconds: number
  readonly isWhole: boolean
}

/** @param said lines with the pod's name before them, `low:start BOOT UPTIME ok` */
export function startsIn(said: string, bootId: string): readonly Start[] {
  return said.split('\n').flatMap((line) => {
    const [pod = '', words = ''] = line.split(':')
    const [verb, boot, uptime, state] = words.split(' ')
    if (verb !== 'start' || boot !== bootId) return []
    return [{ pod, uptimeSeconds: Number(uptime), isWhole: state === 'ok' }]
  })
}

/** Uptimes at which pods ended, the last of each. */
export function endsIn(said: string): ReadonlyMap<string, number> {
  const ends = said.split('\n').flatMap((line) => {
    const [pod = '', words = ''] = line.split(':')
    const [verb, uptime] = words.split(' ')
    return verb === 'end' ? [[pod, Number(uptime)] as const] : []
  })
  return new Map(ends)
}
