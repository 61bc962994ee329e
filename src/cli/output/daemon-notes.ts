import type { DaemonStatus } from '../../api/routes.ts'
import { formatProblem } from '../../pod/objects/format-problem.ts'

/** Notes shown beside pods: bad manifests, unread sources, an unavailable runtime. */
export function daemonNotes({ problems, runtime, sources }: DaemonStatus): readonly string[] {
  return [
    ...problems.map((problem) => `${problem.severity}: ${formatProblem(problem)}`),
    ...sources
      .filter((source) => !source.ready)
      .map(
        ({ source, path }) =>
          `warning: ${path} has not been read yet (source ${source}); pods that were removed before podd started run until it is`,
      ),
    ...(runtime.healthy && runtime.message !== undefined ? [`warning: ${runtime.message}`] : []),
    ...(runtime.healthy
      ? []
      : [`warning: ${runtimeWords(runtime.endpoint)} does not work: ${runtime.message ?? 'no answer'}`]),
  ]
}

function runtimeWords(endpoint: string): string {
  return endpoint === 'embedded' ? 'the embedded containerd' : `the container runtime at ${endpoint}`
}
