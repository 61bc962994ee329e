import { duration, flag, integer, optional } from './option-type.ts'
import { option } from './option.ts'

/** How images are pulled; a part of the table in options.ts. */
export const pullOptions = {
  serializeImagePulls: option({
    field: 'serializeImagePulls',
    flag: 'serialize-image-pulls',
    type: optional(flag),
    default: undefined,
    defaultText: '`true`; `false` where `maxParallelImagePulls` is more than 1',
    owner: 'kubelet',
    secret: false,
    doc: 'Pull one image at a time, in the order in which pods need them.',
  }),
  maxParallelImagePulls: option({
    field: 'maxParallelImagePulls',
    type: optional(integer(1, 10_000)),
    default: undefined,
    defaultText: 'no limit',
    owner: 'kubelet',
    secret: false,
    doc: 'How many images may be pulled at a time where `serializeImagePulls` is `false`; it may be more than 1 only then.',
  }),
  registryPullQps: option({
    field: 'registryPullQPS',
    flag: 'registry-qps',
    type: integer(0, 10_000),
    default: 5,
    owner: 'kubelet',
    secret: false,
    doc: 'How many image pulls may start per second; 0 for no limit.',
  }),
  registryBurst: option({
    field: 'registryBurst',
    flag: 'registry-burst',
    type: integer(0, 10_000),
    default: 10,
    owner: 'kubelet',
    secret: false,
    zeroIsDefault: true,
    doc: 'How many image pulls may start at once before `registryPullQPS` limits them.',
  }),
  imagePullProgressTimeoutMs: option({
    field: 'imagePullProgressTimeout',
    type: duration(0),
    default: 600_000,
    owner: 'podd',
    secret: false,
    doc: 'How long a pull by the embedded containerd may go without progress before it is given up and tried again later; 0 for no limit. containerd shows progress in steps of 1 MiB for each of the up to three layers that it downloads at a time: on a link that takes longer than this for 3 MiB, set it higher. Another runtime has a limit of its own.',
  }),
} as const

interface PullSettings {
  readonly serializeImagePulls: boolean | undefined
  readonly maxParallelImagePulls: number | undefined
}

/** How many images are pulled at a time; undefined: no limit (`pkg/kubelet/apis/config/v1beta1/defaults.go`, 1.36). */
export function parallelPulls({
  serializeImagePulls,
  maxParallelImagePulls,
}: PullSettings): number | undefined {
  const serialize = serializeImagePulls ?? (maxParallelImagePulls ?? 1) < 2
  return serialize ? 1 : maxParallelImagePulls
}

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function pullOptionProblems({
  serializeImagePulls,
  maxParallelImagePulls = 1,
}: PullSettings): readonly { readonly field: string; readonly message: string }[] {
  if (serializeImagePulls !== true || maxParallelImagePulls === 1) return []
  const message = 'cannot be more than 1 unless serializeImagePulls is false'
  return [{ field: 'maxParallelImagePulls', message }]
}
