import { duration, integer } from './option-type.ts'
import { option } from './option.ts'

/**
 * How many exited containers are kept; a part of the table in options.ts. The kubelet has flags of these names
 * (`pkg/kubelet/apis/config` has no fields for them), 1.36.
 */
export const containerOptions = {
  maximumDeadContainersPerContainer: option({
    field: 'maximumDeadContainersPerContainer',
    flag: 'maximum-dead-containers-per-container',
    type: integer(-1, 1000),
    default: 1,
    owner: 'podd',
    secret: false,
    doc: 'How many exited containers are kept of each container of a pod, with their logs; -1 for no limit.',
  }),
  maximumDeadContainers: option({
    field: 'maximumDeadContainers',
    flag: 'maximum-dead-containers',
    type: integer(-1, 1_000_000),
    default: -1,
    owner: 'podd',
    secret: false,
    doc: 'How many exited containers are kept of all pods together, the oldest being removed first; -1 for no limit.',
  }),
  minimumContainerTtlMs: option({
    field: 'minimumContainerTTLDuration',
    flag: 'minimum-container-ttl-duration',
    type: duration(0),
    default: 0,
    owner: 'podd',
    secret: false,
    doc: 'How long after its creation an exited container is kept whatever the limits.',
  }),
} as const
