import {
  keyToPathSchema,
  objectFieldSelectorSchema,
  resourceFieldSelectorSchema,
  resourceListSchema,
} from './container-schema.ts'
import { labelSelectorSchema } from './scheduling-schema.ts'
import {
  bool,
  defaulted,
  ignored,
  int32,
  int64,
  list,
  map,
  object,
  oneOf,
  oneOfOrNone,
  optional,
  quantity,
  refused,
  required,
  requiredOrZero,
  string,
} from './types.ts'
import type { Fields, Infer, ObjectType } from './types.ts'

const typedReference = {
  apiGroup: optional(string),
  kind: requiredOrZero(string),
  name: requiredOrZero(string),
} as const

const dataSourceSchema = object('TypedLocalObjectReference', typedReference)

const dataSourceRefSchema = object('TypedObjectReference', {
  ...typedReference,
  namespace: optional(string),
})

const noSnapshots = 'there are no snapshots to restore from'

export const claimSpecSchema = object('PersistentVolumeClaimSpec', {
  accessModes: defaulted(
    list(string),
    [],
    'ReadWriteOncePod: a second pod waits until the first has ended; the others are all one on a single host',
  ),
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
    'the size is shown; a directory does not limit it',
  ),
  volumeName: ignored(string, 'each claim is a directory of its own on this host'),
  storageClassName: optional(
    string,
    'any is taken, with a warning unless it is `podd-local`: claims are directories of the host',
  ),
  volumeMode: defaulted(
    oneOfOrNone('Block', 'Filesystem'),
    'Filesystem',
    '`Block` is refused: a claim is a directory',
  ),
  dataSource: refused(dataSourceSchema, noSnapshots),
  dataSourceRef: refused(dataSourceRefSchema, noSnapshots),
  volumeAttributesClassName: refused(string, 'there are no storage classes with attributes', ['']),
})

export type ClaimSpec = Infer<typeof claimSpecSchema>

/* The kinds of volumes that podd doesn't support. */

const network = 'network volumes are not supported; mount it on the host and use a hostPath'
const gone = 'removed from Kubernetes'
const deprecated = 'deprecated in Kubernetes: mount it on the host and use a hostPath'
const cloud = 'cloud disks need a control plane'

const secretSchema = object('LocalObjectReference', { name: defaulted(string, '') })
const secretRef = optional(secretSchema)
const readOnly = optional(bool)
const fsType = optional(string)
const common = { readOnly, fsType } as const

/** `needed` and `words` are strings; the API server reads an absent required field as its zero value. */
function source(
  name: string,
  needed: readonly string[],
  words: readonly string[] = [],
  others: Fields = {},
): ObjectType<Fields> {
  return object(name, {
    ...Object.fromEntries(needed.map((word) => [word, requiredOrZero(string)])),
    ...Object.fromEntries(words.map((word) => [word, optional(string)])),
    ...others,
  })
}

const claimTemplateSchema = object('PersistentVolumeClaimTemplate', {
  metadata: optional(
    object('ObjectMeta', {
      ...source('', [], ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'selfLink']).fields,
      labels: defaulted(map(string), {}),
      annotations: defaulted(map(string), {}),
      finalizers: optional(list(string)),
      creationTimestamp: optional(string),
    }),
  ),
  spec: defaulted(claimSpecSchema, {
    accessModes: [],
    resources: { limits: {}, requests: {} },
    volumeMode: 'Filesystem',
  }),
})

export const refusedVolumeFields = {
  ephemeral: refused(
    object('EphemeralVolumeSource', { volumeClaimTemplate: optional(claimTemplateSchema) }),
    'use a persistentVolumeClaim or an emptyDir',
  ),
  csi: refused(
    source('CSIVolumeSource', ['driver'], [], {
      ...common,
      nodePublishSecretRef: secretRef,
      volumeAttributes: optional(map(string)),
    }),
    'storage drivers need a control plane',
  ),
  nfs: refused(source('NFSVolumeSource', ['server', 'path'], [], { readOnly }), network),
  iscsi: refused(
    source('ISCSIVolumeSource', ['targetPortal', 'iqn'], ['iscsiInterface', 'initiatorName'], {
      ...common,
      lun: requiredOrZero(int32),
      portals: optional(list(string)),
      chapAuthDiscovery: optional(bool),
      chapAuthSession: optional(bool),
      secretRef,
    }),
    network,
  ),
  cephfs: refused(
    source('CephFSVolumeSource', [], ['path', 'user', 'secretFile'], {
      readOnly,
      monitors: requiredOrZero(list(string)),
      secretRef,
    }),
    network,
  ),
  rbd: refused(
    source('RBDVolumeSource', ['image'], ['pool', 'user', 'keyring'], {
      ...common,
      monitors: requiredOrZero(list(string)),
      secretRef,
    }),
    network,
  ),
  glusterfs: refused(source('GlusterfsVolumeSource', ['endpoints', 'path'], [], { readOnly }), network),
  fc: refused(
    source('FCVolumeSource', [], [], {
      ...common,
      lun: optional(int32),
      targetWWNs: optional(list(string)),
      wwids: optional(list(string)),
    }),
    network,
  ),
  azureFile: refused(source('AzureFileVolumeSource', ['secretName', 'shareName'], [], { readOnly }), network),
  gitRepo: refused(source('GitRepoVolumeSource', ['repository'], ['revision', 'directory']), gone),
  flexVolume: refused(
    source('FlexVolumeSource', ['driver'], [], { ...common, options: optional(map(string)), secretRef }),
    deprecated,
  ),
  flocker: refused(source('FlockerVolumeSource', [], ['datasetName', 'datasetUUID']), gone),
  quobyte: refused(
    source('QuobyteVolumeSource', ['registry', 'volume'], ['user', 'group', 'tenant'], { readOnly }),
    gone,
  ),
  storageos: refused(
    source('StorageOSVolumeSource', [], ['volumeName', 'volumeNamespace'], { ...common, secretRef }),
    gone,
  ),
  scaleIO: refused(
    source(
      'ScaleIOVolumeSource',
      ['gateway', 'system'],
      ['protectionDomain', 'storagePool', 'storageMode', 'volumeName'],
      { ...common, sslEnabled: optional(bool), secretRef: requiredOrZero(secretSchema) },
    ),
    gone,
  ),
  photonPersistentDisk: refused(source('PhotonPersistentDiskVolumeSource', ['pdID'], [], { fsType }), gone),
  gcePersistentDisk: refused(
    source('GCEPersistentDiskVolumeSource', ['pdName'], [], { ...common, partition: optional(int32) }),
    cloud,
  ),
  awsElasticBlockStore: refused(
    source('AWSElasticBlockStoreVolumeSource', ['volumeID'], [], { ...common, partition: optional(int32) }),
    cloud,
  ),
  azureDisk: refused(
    source('AzureDiskVolumeSource', ['diskName', 'diskURI'], ['cachingMode', 'kind'], { ...common }),
    cloud,
  ),
  cinder: refused(source('CinderVolumeSource', ['volumeID'], [], { ...common, secretRef }), cloud),
  vsphereVolume: refused(
    source('VsphereVirtualDiskVolumeSource', ['volumePath'], ['storagePolicyName', 'storagePolicyID'], {
      fsType,
    }),
    cloud,
  ),
  portworxVolume: refused(source('PortworxVolumeSource', ['volumeID'], [], { ...common }), cloud),
} as const

/** Of a projected volume. */
const refusedProjectionFields = {
  serviceAccountToken: refused(
    source('ServiceAccountTokenProjection', ['path'], ['audience'], { expirationSeconds: optional(int64) }),
    'there is no API server to issue tokens',
  ),
  clusterTrustBundle: refused(
    source('ClusterTrustBundleProjection', ['path'], ['name', 'signerName'], {
      labelSelector: optional(labelSelectorSchema),
      optional: optional(bool),
    }),
    'there is no API server to hold trust bundles',
  ),
  podCertificate: refused(
    source(
      'PodCertificateProjection',
      ['signerName', 'keyType'],
      ['credentialBundlePath', 'keyPath', 'certificateChainPath'],
      { maxExpirationSeconds: optional(int32), userAnnotations: optional(map(string)) },
    ),
    'there is no API server to sign certificates',
  ),
} as const

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
  medium: defaulted(
    string,
    '',
    '`Memory` is a tmpfs; `HugePages` and `HugePages-<size>` are refused: podd mounts no huge pages',
  ),
  sizeLimit: optional(quantity),
})

const keyItems = {
  items: defaulted(list(keyToPathSchema), []),
  defaultMode: defaulted(int32, 0o644),
  optional: defaulted(bool, false),
} as const

const secretVolumeSchema = object('SecretVolumeSource', {
  secretName: defaulted(string, ''),
  ...keyItems,
})

const configMapVolumeSchema = object('ConfigMapVolumeSource', {
  name: defaulted(string, ''),
  ...keyItems,
})

export const downwardAPIFileSchema = object('DownwardAPIVolumeFile', {
  path: required(string),
  fieldRef: optional(objectFieldSelectorSchema),
  resourceFieldRef: optional(resourceFieldSelectorSchema),
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

const downwardAPIVolumeSchema = object('DownwardAPIVolumeSource', {
  items: defaulted(list(downwardAPIFileSchema), []),
  defaultMode: defaulted(int32, 0o644),
})

const projectedVolumeSchema = object('ProjectedVolumeSource', {
  sources: defaulted(list(volumeProjectionSchema), []),
  defaultMode: defaulted(int32, 0o644),
})

const claimVolumeSchema = object('PersistentVolumeClaimVolumeSource', {
  claimName: required(string),
  readOnly: defaulted(bool, false),
})

export const volumeSchema = object('Volume', {
  name: required(string),
  hostPath: optional(
    hostPathSchema,
    'nothing is made below /dev (but /dev/shm), /sys and /proc: the pod waits until it is there',
  ),
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
    'needs containerd 2.1',
  ),
  ...refusedVolumeFields,
})

export type VolumeSpec = Infer<typeof volumeSchema>
