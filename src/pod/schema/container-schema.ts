import { constants } from 'node:os'
import {
  bool,
  defaulted,
  ignored,
  int32,
  int64,
  intOrString,
  list,
  map,
  never,
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
import type { Infer } from './types.ts'

const realTime = (first: string, count: number): readonly string[] => [
  first.slice(0, -1),
  ...Array.from({ length: count }, (_, index) => `${first}${index + 1}`),
]

/** A signal of Linux as Kubernetes names it (`pkg/apis/core/validation`, supportedStopSignalsLinux, 1.36). */
const stopSignal = oneOfOrNone(
  ...[
    ...Object.keys(constants.signals),
    'SIGCLD',
    ...realTime('SIGRTMIN+', 15),
    ...realTime('SIGRTMAX-', 14),
  ].toSorted(),
)

/** `windowsOptions` of a pod and of its containers. */
export const windowsOptionsSchema = object('WindowsSecurityContextOptions', {
  gmsaCredentialSpecName: optional(string),
  gmsaCredentialSpec: optional(string),
  runAsUserName: optional(string),
  hostProcess: optional(bool),
})

export const windowsNote = 'podd runs Linux pods only, on which it has no effect'

/** Items of lists that podd refuses; their types are checked nevertheless. */
export const readinessGateSchema = object('PodReadinessGate', { conditionType: requiredOrZero(string) })

export const schedulingGateSchema = object('PodSchedulingGate', { name: requiredOrZero(string) })

export const podResourceClaimSchema = object('PodResourceClaim', {
  name: requiredOrZero(string),
  resourceClaimName: optional(string),
  resourceClaimTemplateName: optional(string),
})

/** Of a container's resources. */
export const resourceClaimSchema = object('ResourceClaim', {
  name: requiredOrZero(string),
  request: defaulted(string, ''),
})

export const volumeDeviceSchema = object('VolumeDevice', {
  name: requiredOrZero(string),
  devicePath: requiredOrZero(string),
})

export const resourceListSchema = map(quantity)

export const resourceRequirementsSchema = object('ResourceRequirements', {
  limits: defaulted(resourceListSchema, {}),
  requests: defaulted(resourceListSchema, {}),
  claims: refused(list(resourceClaimSchema), 'dynamic resource allocation needs a control plane'),
})

export const keyToPathSchema = object('KeyToPath', {
  key: required(string),
  path: required(string),
  mode: optional(int32),
})

export const objectFieldSelectorSchema = object('ObjectFieldSelector', {
  apiVersion: defaulted(string, 'v1'),
  fieldPath: required(string),
})

export const resourceFieldSelectorSchema = object('ResourceFieldSelector', {
  containerName: optional(string),
  resource: required(string),
  divisor: optional(quantity),
})

const keyOfObject = {
  name: defaulted(string, ''),
  key: required(string),
  optional: defaulted(bool, false),
} as const

const fileKeySelectorSchema = object('FileKeySelector', {
  volumeName: required(string),
  path: required(string),
  key: required(string),
  optional: defaulted(bool, false),
})

export const envVarSourceSchema = object('EnvVarSource', {
  fieldRef: optional(objectFieldSelectorSchema),
  resourceFieldRef: optional(resourceFieldSelectorSchema),
  configMapKeyRef: optional(object('ConfigMapKeySelector', keyOfObject)),
  secretKeyRef: optional(object('SecretKeySelector', keyOfObject)),
  fileKeyRef: optional(fileKeySelectorSchema),
})

const envVarSchema = object('EnvVar', {
  name: required(string),
  value: defaulted(string, ''),
  valueFrom: optional(envVarSourceSchema),
})

const wholeObject = { name: defaulted(string, ''), optional: defaulted(bool, false) } as const

const envFromSourceSchema = object('EnvFromSource', {
  prefix: defaulted(string, ''),
  configMapRef: optional(object('ConfigMapEnvSource', wholeObject)),
  secretRef: optional(object('SecretEnvSource', wholeObject)),
})

export const containerPortSchema = object('ContainerPort', {
  name: optional(string),
  hostPort: optional(int32),
  containerPort: required(int32),
  protocol: defaulted(oneOf('SCTP', 'TCP', 'UDP'), 'TCP'),
  hostIP: optional(string),
})

const execActionSchema = object('ExecAction', { command: defaulted(list(string), []) })

const httpGetActionSchema = object('HTTPGetAction', {
  path: defaulted(string, '/'),
  port: required(intOrString),
  host: optional(string),
  scheme: defaulted(oneOf('HTTP', 'HTTPS'), 'HTTP'),
  httpHeaders: defaulted(
    list(object('HTTPHeader', { name: requiredOrZero(string), value: requiredOrZero(string) })),
    [],
  ),
})

const tcpSocketActionSchema = object('TCPSocketAction', {
  port: required(intOrString),
  host: optional(string),
})

const probeSchema = object('Probe', {
  exec: optional(execActionSchema),
  httpGet: optional(httpGetActionSchema),
  tcpSocket: optional(tcpSocketActionSchema),
  grpc: optional(object('GRPCAction', { port: required(int32), service: defaulted(string, '') })),
  initialDelaySeconds: defaulted(int32, 0),
  timeoutSeconds: defaulted(int32, 1),
  periodSeconds: defaulted(int32, 10),
  successThreshold: defaulted(int32, 1),
  failureThreshold: defaulted(int32, 3),
  terminationGracePeriodSeconds: optional(int64),
})

export const lifecycleHandlerSchema = object('LifecycleHandler', {
  exec: optional(execActionSchema),
  httpGet: optional(httpGetActionSchema),
  tcpSocket: never(
    optional(tcpSocketActionSchema),
    'Kubernetes never implemented tcpSocket hooks: they always fail there',
  ),
  sleep: optional(object('SleepAction', { seconds: requiredOrZero(int64) })),
})

const lifecycleSchema = object('Lifecycle', {
  postStart: optional(lifecycleHandlerSchema),
  preStop: optional(lifecycleHandlerSchema),
  stopSignal: optional(
    stopSignal,
    'needs containerd 2.3, and `os.name: linux` as in Kubernetes; the STOPSIGNAL of the image works everywhere',
  ),
})

export const seLinuxNote = 'passed on to the runtime; it has no effect where SELinux is off'
export const appArmorNote = 'a pod that asks for a profile on a host without AppArmor fails, as in Kubernetes'

export const seLinuxOptionsSchema = object('SELinuxOptions', {
  user: optional(string),
  role: optional(string),
  type: optional(string),
  level: optional(string),
})

const profileType = { ...oneOf('Localhost', 'RuntimeDefault', 'Unconfined'), neutral: 'Unconfined' }

const profile = { type: required(profileType), localhostProfile: optional(string) } as const

export const seccompProfileSchema = object('SeccompProfile', profile)
export const appArmorProfileSchema = object('AppArmorProfile', profile)

const capabilityNote = 'with and without `CAP_`, in capital or small letters; unknown names get a warning'

export const securityContextSchema = object('SecurityContext', {
  capabilities: optional(
    object('Capabilities', {
      add: defaulted(list(string), [], capabilityNote),
      drop: defaulted(list(string), [], capabilityNote),
    }),
  ),
  privileged: optional(bool),
  seLinuxOptions: optional(seLinuxOptionsSchema, seLinuxNote),
  windowsOptions: ignored(windowsOptionsSchema, windowsNote),
  runAsUser: optional(int64),
  runAsGroup: optional(int64),
  runAsNonRoot: optional(bool),
  readOnlyRootFilesystem: optional(bool),
  allowPrivilegeEscalation: optional(bool),
  procMount: optional(
    oneOfOrNone('Default', 'Unmasked'),
    '`Unmasked` needs `hostUsers: false`, in Kubernetes too',
  ),
  seccompProfile: optional(seccompProfileSchema),
  appArmorProfile: optional(appArmorProfileSchema, appArmorNote),
})

const subPathNote =
  'in a configMap, secret, downwardAPI or projected volume the container waits ' +
  '(`CreateContainerConfigError`) until the file is there, where a kubelet makes a directory that stays in the way of the ' +
  'file; of what is `optional` and absent it gets an empty directory, and the file when it starts again'

const volumeMountSchema = object('VolumeMount', {
  name: required(string),
  readOnly: defaulted(bool, false),
  recursiveReadOnly: optional(
    oneOfOrNone('Disabled', 'Enabled', 'IfPossible'),
    '`Enabled` needs containerd 2.0',
  ),
  mountPath: required(string),
  subPath: optional(string, subPathNote),
  mountPropagation: optional(oneOfOrNone('Bidirectional', 'HostToContainer', 'None')),
  subPathExpr: optional(string, 'as `subPath`'),
})

const restartRuleSchema = object('ContainerRestartRule', {
  action: required(oneOf('Restart', 'RestartAllContainers')),
  exitCodes: optional(
    object('ContainerRestartRuleOnExitCodes', {
      operator: required(oneOf('In', 'NotIn')),
      values: defaulted(list(int32), []),
    }),
  ),
})

const containerFields = {
  name: required(string),
  image: required(
    string,
    'where a changed one can’t be had, the container goes on with the one it had, also after its end; the kubelet leaves it down',
  ),
  command: defaulted(list(string), []),
  args: defaulted(list(string), []),
  workingDir: optional(string),
  ports: defaulted(list(containerPortSchema), []),
  envFrom: defaulted(list(envFromSourceSchema), []),
  env: defaulted(list(envVarSchema), []),
  resources: defaulted(resourceRequirementsSchema, { limits: {}, requests: {} }),
  resizePolicy: defaulted(
    list(
      object('ContainerResizePolicy', {
        resourceName: requiredOrZero(string),
        restartPolicy: requiredOrZero(string),
      }),
    ),
    [],
  ),
  restartPolicy: optional(oneOfOrNone('Always', 'Never', 'OnFailure')),
  restartPolicyRules: defaulted(list(restartRuleSchema), []),
  volumeMounts: defaulted(list(volumeMountSchema), []),
  volumeDevices: refused(
    list(volumeDeviceSchema),
    'raw block volumes need a storage driver, which podd has none of',
  ),
  livenessProbe: optional(probeSchema),
  readinessProbe: optional(probeSchema),
  startupProbe: optional(probeSchema),
  lifecycle: optional(lifecycleSchema),
  terminationMessagePath: defaulted(string, '/dev/termination-log'),
  terminationMessagePolicy: defaulted(oneOf('File', 'FallbackToLogsOnError'), 'File'),
  /** Default depends on the image's tag; see default-pod.ts. */
  imagePullPolicy: optional(
    oneOf('Always', 'IfNotPresent', 'Never'),
    'an image with a digest is `IfNotPresent` where nothing is said, also as `name:latest@sha256:…`, which Kubernetes pulls `Always`: a digest never changes',
  ),
  securityContext: optional(securityContextSchema),
  stdin: defaulted(bool, false),
  stdinOnce: defaulted(bool, false),
  tty: defaulted(bool, false),
} as const

export const containerSchema = object('Container', containerFields)

const notEphemeral = 'not supported for ephemeral containers, in Kubernetes too'

export const ephemeralContainerSchema = object('EphemeralContainer', {
  ...containerFields,
  ports: never(containerFields.ports, notEphemeral),
  resources: never(containerFields.resources, notEphemeral, [{}]),
  resizePolicy: never(containerFields.resizePolicy, notEphemeral),
  restartPolicy: never(containerFields.restartPolicy, notEphemeral),
  restartPolicyRules: never(containerFields.restartPolicyRules, notEphemeral),
  livenessProbe: never(containerFields.livenessProbe, notEphemeral),
  readinessProbe: never(containerFields.readinessProbe, notEphemeral),
  startupProbe: never(containerFields.startupProbe, notEphemeral),
  lifecycle: never(containerFields.lifecycle, notEphemeral),
  targetContainerName: optional(string),
})

/** Of any list of a pod. */
export type ContainerSpec = Infer<typeof containerSchema> & {
  /** Of an ephemeral container. */
  readonly targetContainerName?: string
}
export type ContainerPort = Infer<typeof containerPortSchema>
export type EnvVar = Infer<typeof envVarSchema>
export type VolumeMount = Infer<typeof volumeMountSchema>
export type Probe = Infer<typeof probeSchema>
export type ResourceRequirements = Infer<typeof resourceRequirementsSchema>
export type LifecycleHandler = Infer<typeof lifecycleHandlerSchema>
export type SecurityContext = Infer<typeof securityContextSchema>
export type SeccompProfile = Infer<typeof seccompProfileSchema>
export type AppArmorProfile = Infer<typeof appArmorProfileSchema>
