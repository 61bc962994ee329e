import { isJsonObject } from '../../base/json.ts'
import { formatAge } from '../kinds/age.ts'
import { summarizePod } from '../kinds/pod-summary.ts'
import type { PodObject } from '../objects.ts'
import { apiTable } from './api-table.ts'
import type { RowCondition } from './api-table.ts'
import { ageColumn, nameColumn } from './common-columns.ts'

export const podTable = apiTable<PodObject>(
  'Pod',
  [
    nameColumn(),
    {
      name: 'Ready',
      description: 'How many containers are ready, of how many.',
      cell(pod) {
        const { ready, total } = summarizePod(pod)
        return `${ready}/${total}`
      },
    },
    {
      name: 'Status',
      description: "The pod's phase, or the reason that says more about its containers.",
      cell: (pod) => summarizePod(pod).status,
    },
    {
      name: 'Restarts',
      description: 'How often containers were restarted, and when the last one was.',
      cell(pod, nowMs) {
        const { restarts, lastRestartMs } = summarizePod(pod)
        return lastRestartMs === undefined
          ? String(restarts)
          : `${restarts} (${formatAge(nowMs - lastRestartMs)} ago)`
      },
    },
    ageColumn(),
    {
      name: 'IP',
      description: "The pod's address.",
      wide: true,
      cell: ({ status }) => status.podIPs?.[0]?.ip ?? '<none>',
    },
    {
      name: 'Node',
      description: 'The host that runs the pod.',
      wide: true,
      cell: ({ spec }) => (typeof spec['nodeName'] === 'string' ? spec['nodeName'] : '<none>'),
    },
    {
      name: 'Nominated Node',
      description: 'Empty: podd schedules no pods.',
      wide: true,
      cell: () => '<none>',
    },
    {
      name: 'Readiness Gates',
      description: 'How many of the readiness gates are met, of how many.',
      wide: true,
      cell: (pod) => summarizeGates(pod),
    },
  ],
  ({ status }) => completed[status.phase] ?? [],
)

const completed: Readonly<Record<string, readonly RowCondition[]>> = {
  Succeeded: [
    {
      type: 'Completed',
      status: 'True',
      reason: 'Succeeded',
      message: 'The pod has completed successfully.',
    },
  ],
  Failed: [{ type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' }],
}

function summarizeGates({ spec, status }: PodObject): string {
  const list = spec['readinessGates']
  const gates = Array.isArray(list) ? list.filter((gate) => isJsonObject(gate)) : []
  if (gates.length === 0) return '<none>'
  const met = gates.filter(({ conditionType }) =>
    status.conditions.some(({ type, status: value }) => type === conditionType && value === 'True'),
  )
  return `${met.length}/${gates.length}`
}
