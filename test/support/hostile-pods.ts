import { processMark } from './process-ledger.ts'
import { podOf, shellContainer } from './shell-pods.ts'
import { slowness } from './slowness.ts'

/** A pod of the hostile rounds; another version replaces it. */
export interface HostilePod {
  readonly name: string
  readonly containers: readonly string[]
  readonly version: number
}

/** One for each way in which podd looks after containers: none, exec probes, several containers, a port of the host. */
export function hostilePods(): readonly HostilePod[] {
  return [
    { name: 'steady', containers: ['main'], version: 1 },
    { name: 'probed', containers: ['main'], version: 1 },
    { name: 'twofold', containers: ['main', 'second', 'sidecar'], version: 1 },
    { name: 'ported', containers: ['main'], version: 1 },
  ]
}

const exec = {
  exec: { command: ['true'] },
  periodSeconds: 2,
  timeoutSeconds: 2 * slowness,
  failureThreshold: 3,
}

/** The manifest of a version. Each start of a container appends `start VERSION` to `/shared/POD.CONTAINER`. */
export function hostileManifest(pod: HostilePod, shared: string, hostPort: number): object {
  const container = (name: string, fields: object = {}): object =>
    shellContainer(
      name,
      `${pod.name}.${name}`,
      `${processMark(pod.name, name, pod.version)} say start ${pod.version}; stay`,
      { ...fields },
    )
  switch (pod.name) {
    case 'probed':
      return podOf(pod.name, shared, [container('main', { livenessProbe: exec, readinessProbe: exec })])
    case 'twofold': {
      const initContainers = [container('sidecar', { restartPolicy: 'Always', startupProbe: exec })]
      const containers = [container('main', { livenessProbe: exec }), container('second')]
      return podOf(pod.name, shared, containers, { spec: { initContainers } })
    }
    case 'ported':
      return podOf(pod.name, shared, [
        container('main', {
          ports: [{ containerPort: 80, hostPort }],
          startupProbe: exec,
          livenessProbe: exec,
        }),
      ])
    default:
      return podOf(pod.name, shared, [container('main')])
  }
}
