import { resourceListSchema } from './container-schema.ts'
import { labelSelectorSchema } from './scheduling-schema.ts'
import {
  defaulted,
  ignored,
  list,
  object,
  oneOfOrNone,
  optional,
  refused,
  requiredOrZero,
  string,
} from './types.ts'
import type { Infer } from './types.ts'

const typedReference = {
  apiGroup: optional(string),
  kind: requiredOrZero(string),
  name: requiredOrZero(string),
} as const

export const dataSourceSchema = object('TypedLocalObjectReference', typedReference)

export const dataSourceRefSchema = object('TypedObjectReference', {
  ...typedReference,
  namespace: optional(string),
})

const noSnapshots = 'there are no snapshots to restore from'

export const claimSpecSchema = object('PersistentVolumeClaimSpec', {
  accessModes: defaulted(list(string), [], {
    kind: 'supported',
    note: 'ReadWriteOncePod: a second pod waits until the first has ended; the others are all one on a single host',
  }),
  selector: refused(
    labelSelectorSchema,
    'podd keeps no volumes to select from: each claim is a directory of its own',
    [{}],
  ),
  resources: defaulted(
    object('VolumeResourceRequirements', {
      limits: defaulted(resourceListSchema, {}),
      requests: defaulted(resourceListSchema, {}),
    }),
    { limits: {}, requests: {} },
    { kind: 'supported', note: 'the size is shown; a directory does not limit it' },
  ),
  volumeName: ignored(string, 'each claim is a directory of its own on this host'),
  storageClassName: optional(string, {
    kind: 'supported',
    note: 'any is taken, with a warning unless it is `podd-local`: claims are directories of the host',
  }),
  volumeMode: defaulted(oneOfOrNone('Block', 'Filesystem'), 'Filesystem', {
    kind: 'supported',
    note: '`Block` is refused: a claim is a directory',
  }),
  dataSource: refused(dataSourceSchema, noSnapshots),
  dataSourceRef: refused(dataSourceRefSchema, noSnapshots),
  volumeAttributesClassName: refused(string, 'there are no storage classes with attributes', ['']),
})

export type ClaimSpec = Infer<typeof claimSpecSchema>
