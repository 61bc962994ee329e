import { resourceListSchema } from '../schema/container-schema.ts'
import { objectMetaSchema } from '../schema/pod-schema.ts'
import {
  any,
  defaulted,
  ignored,
  list,
  map,
  object,
  oneOf,
  oneOfOrNone,
  optional,
  refused,
  required,
  string,
} from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { isPositive } from '../spec/pod-resources.ts'
import type { Issues } from '../validation/issues.ts'
import { dnsSubdomain } from '../validation/name-rules.ts'
import { objectKind } from './object-kind.ts'

const claimSpecSchema = object('PersistentVolumeClaimSpec', {
  accessModes: defaulted(list(string), [], {
    kind: 'supported',
    note: 'ReadWriteOncePod: a second pod waits until the first has ended; the others are all one on a single host',
  }),
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
  storageClassName: optional(string, {
    kind: 'supported',
    note: 'any is taken, with a warning unless it is `podd-local`: claims are directories of the host',
  }),
  volumeMode: defaulted(oneOfOrNone('Filesystem', 'Block'), 'Filesystem', {
    kind: 'supported',
    note: '`Block` is refused: a claim is a directory',
  }),
  dataSource: refused(any, 'there are no snapshots to restore from'),
  dataSourceRef: refused(any, 'there are no snapshots to restore from'),
  volumeAttributesClassName: refused(string, 'there are no storage classes with attributes', ['']),
})

const persistentVolumeClaimSchema = object('PersistentVolumeClaim', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('PersistentVolumeClaim')),
  metadata: required(objectMetaSchema),
  spec: required(claimSpecSchema),
  status: ignored(map(any), 'written by a control plane'),
})

export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaimSchema>

export const persistentVolumeClaimKind = objectKind({
  schema: persistentVolumeClaimSchema,
  resource: { plural: 'persistentvolumeclaims', singular: 'persistentvolumeclaim', short: ['pvc'] },
  scope: 'Namespaced',
  isPerSource: false,
  isSecret: false,
  validate: validateClaim,
})

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** The storage class whose volumes are directories below podd's root. */
const localStorageClass = 'podd-local'

/** Source: ValidatePersistentVolumeClaimSpec in pkg/apis/core/validation, 1.36. */
function validateClaim({ spec }: PersistentVolumeClaim, issues: Issues): void {
  if (spec.accessModes.length === 0) {
    issues.required(['spec', 'accessModes'], 'at least 1 access mode is required')
  }
  for (const [index, mode] of spec.accessModes.entries()) {
    if (accessModes.includes(mode)) continue
    issues.unsupported(['spec', 'accessModes'], mode, accessModes, ['spec', 'accessModes', index])
  }
  const known = new Set(spec.accessModes.filter((mode) => accessModes.includes(mode)))
  if (known.size > 1 && known.has('ReadWriteOncePod')) {
    issues.forbidden(['spec', 'accessModes'], 'may not use ReadWriteOncePod with other access modes')
  }
  const { storage } = spec.resources.requests
  const at = ['spec', 'resources', 'requests', 'storage']
  const field = ['spec', 'resources', '[storage]']
  if (storage === undefined) issues.required(field, undefined, at)
  else if (!isPositive(storage)) issues.invalid(field, storage, 'must be greater than zero', at)
  issues.wholeBytes(at, storage)
  issues.wholeBytes(['spec', 'resources', 'limits', 'storage'], spec.resources.limits['storage'])
  const { storageClassName = '' } = spec
  if (storageClassName !== '' && storageClassName !== localStorageClass) {
    issues.name(['spec', 'storageClassName'], storageClassName, dnsSubdomain)
    issues.warn(
      ['spec', 'storageClassName'],
      `storage class ${JSON.stringify(storageClassName)} has no effect: claims are directories of this host`,
    )
  }
  if (spec.volumeMode === 'Block') {
    issues.refused(['spec', 'volumeMode'], 'a claim is a directory of this host, and no block device')
  }
}
