import { benchImage } from './podd-under-test.ts'

export interface BenchPod {
  readonly command: readonly string[]
  /** Mounted at `/out`. */
  readonly outDirectory?: string
  readonly graceSeconds?: number
  /** More of its container. */
  readonly container?: object
  readonly labels?: Readonly<Record<string, string>>
  /** More of its spec. */
  readonly spec?: object
}

/** A pod of one container as a user writes it. */
export function podManifest(name: string, pod: BenchPod): object {
  const { command, outDirectory, graceSeconds = 0 } = pod
  const mount = { volumeMounts: [{ name: 'out', mountPath: '/out' }] }
  const volume = { volumes: [{ name: 'out', hostPath: { path: outDirectory } }] }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(pod.labels !== undefined && { labels: pod.labels }) },
    spec: {
      terminationGracePeriodSeconds: graceSeconds,
      containers: [
        {
          name: 'main',
          image: benchImage,
          command,
          ...(outDirectory === undefined ? {} : mount),
          ...pod.container,
        },
      ],
      ...(outDirectory === undefined ? {} : volume),
      ...pod.spec,
    },
  }
}
