import { bool, defaulted, int32, list, object, oneOf, optional, quantity, required, string } from './types.ts'
import type { Infer } from './types.ts'
import { keyToPathSchema } from './container-schema.ts'
import { refusedProjectionFields, refusedVolumeFields } from './refused-volume-schema.ts'

const hostPathSchema = object('HostPathVolumeSource', {
  path: required(string),
  type: defaulted(
    oneOf(
      '',
      'BlockDevice',
      'CharDevice',
      'Directory',
      'DirectoryOrCreate',
      'File',
      'FileOrCreate',
      'Socket',
    ),
    '',
  ),
})

const emptyDirSchema = object('EmptyDirVolumeSource', {
  medium: defaulted(string, '', {
    kind: 'supported',
    note: '`Memory` is a tmpfs; `HugePages` and `HugePages-<size>` are refused: podd mounts no huge pages',
  }),
  sizeLimit: optional(quantity),
})

export const secretVolumeSchema = object('SecretVolumeSource', {
  secretName: defaulted(string, ''),
  items: defaulted(list(keyToPathSchema), []),
  defaultMode: defaulted(int32, 0o644),
  optional: defaulted(bool, false),
})

export const configMapVolumeSchema = object('ConfigMapVolumeSource', {
  name: defaulted(string, ''),
  items: defaulted(list(keyToPathSchema), []),
  defaultMode: defaulted(int32, 0o644),
  optional: defaulted(bool, false),
})

export const downwardAPIFileSchema = object('DownwardAPIVolumeFile', {
  path: required(string),
  fieldRef: optional(
    object('ObjectFieldSelector', { apiVersion: defaulted(string, 'v1'), fieldPath: required(string) }),
  ),
  resourceFieldRef: optional(
    object('ResourceFieldSelector', {
      containerName: optional(string),
      resource: required(string),
      divisor: optional(quantity),
    }),
  ),
  mode: optional(int32),
})

const projectionItems = {
  name: defaulted(string, ''),
  items: defaulted(list(keyToPathSchema), []),
  optional: defaulted(bool, false),
} as const

const volumeProjectionSchema = object('VolumeProjection', {
  secret: optional(object('SecretProjection', projectionItems)),
  downwardAPI: optional(
    object('DownwardAPIProjection', { items: defaulted(list(downwardAPIFileSchema), []) }),
  ),
  configMap: optional(object('ConfigMapProjection', projectionItems)),
  ...refusedProjectionFields,
})

export const downwardAPIVolumeSchema = object('DownwardAPIVolumeSource', {
  items: defaulted(list(downwardAPIFileSchema), []),
  defaultMode: defaulted(int32, 0o644),
})

export const projectedVolumeSchema = object('ProjectedVolumeSource', {
  sources: defaulted(list(volumeProjectionSchema), []),
  defaultMode: defaulted(int32, 0o644),
})

export const claimVolumeSchema = object('PersistentVolumeClaimVolumeSource', {
  claimName: required(string),
  readOnly: defaulted(bool, false),
})

export const volumeSchema = object('Volume', {
  name: required(string),
  hostPath: optional(hostPathSchema, {
    kind: 'supported',
    note: 'nothing is made below /dev (but /dev/shm), /sys and /proc: the pod waits until it is there',
  }),
  emptyDir: optional(emptyDirSchema),
  secret: optional(secretVolumeSchema),
  configMap: optional(configMapVolumeSchema),
  downwardAPI: optional(downwardAPIVolumeSchema),
  projected: optional(projectedVolumeSchema),
  persistentVolumeClaim: optional(claimVolumeSchema),
  image: optional(
    object('ImageVolumeSource', {
      reference: optional(string),
      pullPolicy: optional(oneOf('Always', 'IfNotPresent', 'Never')),
    }),
    { kind: 'supported', note: 'needs containerd 2.1' },
  ),
  ...refusedVolumeFields,
})

export type VolumeSpec = Infer<typeof volumeSchema>
