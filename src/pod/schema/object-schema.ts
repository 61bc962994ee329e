import { objectMetaSchema } from './pod-schema.ts'
import { resourceListSchema } from './container-schema.ts'
import {
  any,
  bool,
  defaulted,
  ignored,
  int32,
  list,
  map,
  object,
  oneOf,
  optional,
  refused,
  required,
  string,
} from './types.ts'
import type { Infer } from './types.ts'

/*
 * The kinds that pods refer to. Values in base64 (`[]byte` in the API) are strings here; what they hold is
 * checked in ../validation/validate-object.ts.
 */

const fromDump = 'written by a control plane'
const scheduler = 'there is only one host to run pods on'

export const configMapSchema = object('ConfigMap', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('ConfigMap')),
  metadata: required(objectMetaSchema),
  immutable: defaulted(bool, false),
  data: defaulted(map(string), {}),
  binaryData: defaulted(map(string), {}),
})

export const secretSchema = object('Secret', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('Secret')),
  metadata: required(objectMetaSchema),
  immutable: defaulted(bool, false),
  data: defaulted(map(string), {}),
  stringData: defaulted(map(string), {}),
  type: defaulted(string, 'Opaque'),
})

const claimSpecSchema = object('PersistentVolumeClaimSpec', {
  accessModes: defaulted(
    list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
    [],
    {
      kind: 'supported',
      note: 'ReadWriteOncePod: a second pod waits until the first has ended; the others are all one on a single host',
    },
  ),
  selector: refused(any, 'podd keeps no volumes to select from: each claim is a directory of its own', [{}]),
  resources: defaulted(
    object('VolumeResourceRequirements', {
      limits: defaulted(resourceListSchema, {}),
      requests: defaulted(resourceListSchema, {}),
    }),
    { limits: {}, requests: {} },
    { kind: 'supported', note: 'the size is shown; a directory does not limit it' },
  ),
  volumeName: ignored(string, 'each claim is a directory of its own on this host'),
  storageClassName: optional(string, { kind: 'supported', note: 'none, or `podd-local`' }),
  volumeMode: defaulted(oneOf('Filesystem', 'Block'), 'Filesystem', {
    kind: 'supported',
    note: '`Block` is refused: a claim is a directory',
  }),
  dataSource: refused(any, 'there are no snapshots to restore from'),
  dataSourceRef: refused(any, 'there are no snapshots to restore from'),
  volumeAttributesClassName: refused(string, 'there are no storage classes with attributes', ['']),
})

export const persistentVolumeClaimSchema = object('PersistentVolumeClaim', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('PersistentVolumeClaim')),
  metadata: required(objectMetaSchema),
  spec: required(claimSpecSchema),
  status: ignored(any, fromDump),
})

/** Of kinds that belong to no namespace. */
const clusterMetaSchema = object('ObjectMeta', {
  ...objectMetaSchema.fields,
  namespace: ignored(string, 'objects of this kind belong to no namespace'),
})

export const runtimeClassSchema = object('RuntimeClass', {
  apiVersion: required(oneOf('node.k8s.io/v1')),
  kind: required(oneOf('RuntimeClass')),
  metadata: required(clusterMetaSchema),
  handler: required(string),
  overhead: optional(object('Overhead', { podFixed: defaulted(resourceListSchema, {}) })),
  scheduling: ignored(any, scheduler),
})

export const priorityClassSchema = object('PriorityClass', {
  apiVersion: required(oneOf('scheduling.k8s.io/v1')),
  kind: required(oneOf('PriorityClass')),
  metadata: required(clusterMetaSchema),
  value: required(int32),
  globalDefault: defaulted(bool, false),
  description: defaulted(string, ''),
  preemptionPolicy: ignored(oneOf('Never', 'PreemptLowerPriority'), scheduler),
})

/** By kind; what is in here is a document of its own beside the pods. */
export const objectSchemas = {
  ConfigMap: configMapSchema,
  Secret: secretSchema,
  PersistentVolumeClaim: persistentVolumeClaimSchema,
  RuntimeClass: runtimeClassSchema,
  PriorityClass: priorityClassSchema,
} as const

export type ConfigMap = Infer<typeof configMapSchema>
export type Secret = Infer<typeof secretSchema>
export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaimSchema>
export type RuntimeClass = Infer<typeof runtimeClassSchema>
export type PriorityClass = Infer<typeof priorityClassSchema>
