import {
  any,
  bool,
  defaulted,
  int32,
  int64,
  list,
  object,
  oneOf,
  optional,
  quantity,
  refused,
  required,
  string,
} from './types.ts'
import type { Infer } from './types.ts'
import { keyToPathSchema } from './container-schema.ts'

const network = 'network volumes are not supported; mount it on the host and use a hostPath'
const gone = 'removed from Kubernetes'
const deprecated = 'deprecated in Kubernetes: mount it on the host and use a hostPath'
const cloud = 'cloud disks need a control plane'

const hostPathSchema = object('HostPathVolumeSource', {
  path: required(string),
  type: defaulted(
    oneOf(
      '',
      'DirectoryOrCreate',
      'Directory',
      'FileOrCreate',
      'File',
      'Socket',
      'CharDevice',
      'BlockDevice',
    ),
    '',
  ),
})

const emptyDirSchema = object('EmptyDirVolumeSource', {
  medium: defaulted(string, ''),
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
  serviceAccountToken: refused(
    object('ServiceAccountTokenProjection', {
      audience: optional(string),
      expirationSeconds: optional(int64),
      path: required(string),
    }),
    'there is no API server to issue tokens',
  ),
  clusterTrustBundle: refused(any, 'there is no API server to hold trust bundles'),
  podCertificate: refused(any, 'there is no API server to sign certificates'),
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
  hostPath: optional(hostPathSchema),
  emptyDir: optional(emptyDirSchema),
  secret: optional(secretVolumeSchema),
  configMap: optional(configMapVolumeSchema),
  downwardAPI: optional(downwardAPIVolumeSchema),
  projected: optional(projectedVolumeSchema),
  persistentVolumeClaim: optional(claimVolumeSchema),
  image: optional(
    object('ImageVolumeSource', {
      reference: optional(string),
      pullPolicy: optional(oneOf('Always', 'Never', 'IfNotPresent')),
    }),
    { kind: 'supported', note: 'needs containerd 2.1' },
  ),
  ephemeral: refused(any, 'use a persistentVolumeClaim or an emptyDir'),
  csi: refused(any, 'storage drivers need a control plane'),
  nfs: refused(any, network),
  iscsi: refused(any, network),
  cephfs: refused(any, network),
  rbd: refused(any, network),
  glusterfs: refused(any, network),
  fc: refused(any, network),
  azureFile: refused(any, network),
  gitRepo: refused(any, gone),
  flexVolume: refused(any, deprecated),
  flocker: refused(any, gone),
  quobyte: refused(any, gone),
  storageos: refused(any, gone),
  scaleIO: refused(any, gone),
  photonPersistentDisk: refused(any, gone),
  gcePersistentDisk: refused(any, cloud),
  awsElasticBlockStore: refused(any, cloud),
  azureDisk: refused(any, cloud),
  cinder: refused(any, cloud),
  vsphereVolume: refused(any, cloud),
  portworxVolume: refused(any, cloud),
})

export type VolumeSpec = Infer<typeof volumeSchema>
