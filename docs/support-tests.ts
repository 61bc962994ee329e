/**
 * Which e2e test proves which fields: by `file: title`, types with their fields. test/unit/pod/support-tests.test.ts
 * holds that every supported field stands here, that the tests exist, and that they set the fields.
 */
export const supportTests: Readonly<Record<string, readonly string[]>> = {
  'pod-life: runs a dropped pod, and leaves nothing of it when its file goes': [
    'Pod: apiVersion kind metadata spec',
    'ObjectMeta: name',
    'PodSpec: containers',
    'Container: name image command',
  ],
  'sources: tells a namespace from another': ['ObjectMeta: namespace'],
  'config-objects: shows the pod’s and the container’s own fields': [
    'ObjectMeta: labels annotations',
    'Container: env',
    'EnvVar: name value valueFrom',
    'EnvVarSource: fieldRef resourceFieldRef',
    'ObjectFieldSelector: fieldPath',
    'ResourceFieldSelector: resource divisor',
  ],
  'config-objects: takes ConfigMaps and Secrets as a whole and by key, the later over the earlier': [
    'Container: envFrom',
    'EnvFromSource: prefix configMapRef secretRef',
    'ConfigMapEnvSource: name optional',
    'SecretEnvSource: name optional',
    'EnvVarSource: configMapKeyRef secretKeyRef',
    'ConfigMapKeySelector: name key optional',
    'SecretKeySelector: name key optional',
    'ConfigMap: apiVersion kind metadata data',
    'Secret: apiVersion kind metadata stringData',
  ],
  'config-objects: takes what an init container wrote to a file': [
    'EnvVarSource: fileKeyRef',
    'FileKeySelector: volumeName path key optional',
  ],
  'config-objects: that are immutable stay as they are, and that is told': ['ConfigMap: immutable'],
  'config-objects: lists claims, and deletes what they hold only when told to, and never while a pod uses it':
    [
      'PersistentVolumeClaim: apiVersion kind metadata spec',
      'PersistentVolumeClaimSpec: accessModes resources',
      'VolumeResourceRequirements: requests',
    ],
  'volumes: show a ConfigMap, all of it or the items asked for, with their modes': [
    'ConfigMap: binaryData',
    'Volume: configMap',
    'ConfigMapVolumeSource: name items defaultMode optional',
    'KeyToPath: key path mode',
  ],
  'volumes: show a Secret, from memory alone, and leave nothing of it behind': [
    'Volume: secret',
    'SecretVolumeSource: secretName defaultMode',
  ],
  'volumes: take every form of a source': [
    'Secret: type data immutable',
    'SecretVolumeSource: items optional',
    'DownwardAPIVolumeSource: defaultMode',
    'ObjectFieldSelector: apiVersion',
    'ConfigMapProjection: items optional',
  ],
  'volumes: show the pod’s own fields, and changed labels soon after': [
    'Volume: downwardAPI',
    'DownwardAPIVolumeSource: items',
    'DownwardAPIVolumeFile: path fieldRef resourceFieldRef mode',
    'ResourceFieldSelector: containerName',
  ],
  'volumes: project several sources into one directory': [
    'Volume: projected',
    'ProjectedVolumeSource: sources defaultMode',
    'VolumeProjection: secret downwardAPI configMap',
    'SecretProjection: name items optional',
    'ConfigMapProjection: name',
    'DownwardAPIProjection: items',
  ],
  'volumes: outlive pods, and give the next one what the last one wrote': [
    'Volume: persistentVolumeClaim',
    'PersistentVolumeClaimVolumeSource: claimName readOnly',
  ],
  'volumes: let one pod in at a time under ReadWriteOncePod': [
    'PersistentVolumeClaimSpec: storageClassName volumeMode',
    'VolumeResourceRequirements: limits',
  ],
  'pod-life: mounts hostPath and emptyDir volumes': [
    'PodSpec: volumes',
    'Volume: name hostPath emptyDir',
    'HostPathVolumeSource: path type',
    'EmptyDirVolumeSource: medium',
    'Container: volumeMounts',
    'VolumeMount: name mountPath readOnly',
  ],
  'mounts: in memory hold no more than their limit': ['EmptyDirVolumeSource: sizeLimit'],
  'mounts: show the files of an image where the runtime can, and are refused by name where it can’t': [
    'Volume: image',
    'ImageVolumeSource: reference pullPolicy',
  ],
  'mounts: are directories and files, and directories that are made': ['VolumeMount: subPath'],
  'mounts: come from expressions too, which have to have values': ['VolumeMount: subPathExpr'],
  'mounts: see what is mounted below them later, and show what is mounted in them, where they are told to': [
    'VolumeMount: mountPropagation',
  ],
  'mounts: are read-only all the way down where the runtime can, and refused by name where it can’t': [
    'VolumeMount: recursiveReadOnly',
  ],
  'mounts: belong to the pod’s group where the volume is the pod’s own': [
    'PodSecurityContext: fsGroupChangePolicy',
  ],
  'init-containers: runs init containers one after the other, then the main ones': [
    'PodSpec: initContainers',
  ],
  'init-containers: restarts a sidecar that fell, beside the main container': ['Container: restartPolicy'],
  'pod-life: gives a container its command, arguments, environment and directory': [
    'Container: args workingDir',
  ],
  'pod-life: answers on a container port and on a host port': [
    'Container: ports',
    'ContainerPort: name containerPort hostPort',
  ],
  'pod-fields: get datagrams on a UDP port of the host': ['ContainerPort: protocol'],
  'pod-fields: answer on a port of one address of the host alone': ['ContainerPort: hostIP'],
  'pod-life: holds containers and pods to their resources': [
    'Container: resources',
    'ResourceRequirements: limits requests',
  ],
  'resources: binds containers without limits of their own by those of the pod': ['PodSpec: resources'],
  'resize: restarts the container whose policy asks for it, and no other': [
    'Container: resizePolicy',
    'ContainerResizePolicy: resourceName restartPolicy',
  ],
  "restarts: follows a container's own rules for its exit code": [
    'Container: restartPolicyRules',
    'ContainerRestartRule: action exitCodes',
    'ContainerRestartRuleOnExitCodes: operator values',
  ],
  "probes: restarts a container that fails its liveness probe, with the probe's own grace": [
    'Container: livenessProbe',
    'Probe: exec periodSeconds failureThreshold terminationGracePeriodSeconds',
    'ExecAction: command',
  ],
  'probes: protects a slow start by a startup probe, and kills one that never comes up': [
    'Container: startupProbe',
  ],
  'probes: flips Ready both ways by a readiness probe (%s), and restarts nothing': [
    'Container: readinessProbe',
    'Probe: httpGet tcpSocket',
    'HTTPGetAction: path port',
    'TCPSocketAction: port',
  ],
  'probes: counts a probe that hangs as failed in time, although a grandchild holds its output': [
    'Probe: timeoutSeconds',
  ],
  'probe-fields: goes by HTTPS, with its headers, to the host that is given, after its delay': [
    'Probe: initialDelaySeconds successThreshold',
    'HTTPGetAction: scheme host httpHeaders',
    'HTTPHeader: name value',
  ],
  'probe-fields: asks a gRPC service by its name': ['Probe: grpc', 'GRPCAction: port service'],
  'probe-fields: connects to the host that is given': ['TCPSocketAction: host'],
  'ending: runs postStart before the container counts as running, and preStop before SIGTERM': [
    'Container: lifecycle',
    'Lifecycle: postStart preStop',
    'LifecycleHandler: exec',
  ],
  'ending: runs hooks by HTTP and by waiting': ['LifecycleHandler: httpGet sleep', 'SleepAction: seconds'],
  'ending: kills by force what ignores SIGTERM for its grace': ['PodSpec: terminationGracePeriodSeconds'],
  'restarts: reads termination messages by both policies': [
    'Container: terminationMessagePath terminationMessagePolicy',
    'PodSpec: restartPolicy',
  ],
  'restarts: ends a pod that is active for longer than its deadline': ['PodSpec: activeDeadlineSeconds'],
  'images: shows the reason why %s does not start': ['Container: imagePullPolicy'],
  'security-context: takes users and groups of the pod, and the container’s before them': [
    'PodSpec: securityContext',
    'PodSecurityContext: runAsUser runAsGroup fsGroup supplementalGroups',
    'Container: securityContext',
    'SecurityContext: runAsUser runAsGroup',
  ],
  'security-context: holds back a root image that must not run as root, and says why': [
    'SecurityContext: runAsNonRoot',
  ],
  'security-context: gives a container what it asks for: %s': [
    'PodSecurityContext: runAsNonRoot seccompProfile seLinuxOptions',
    'SecurityContext: privileged allowPrivilegeEscalation capabilities readOnlyRootFilesystem procMount seLinuxOptions seccompProfile',
    'SeccompProfile: type',
    'SELinuxOptions: user role type level',
  ],
  'security-context: knows a capability by each of its spellings': ['Capabilities: add drop'],
  'security-context: filters calls by a seccomp profile of the host’s': ['SeccompProfile: localhostProfile'],
  'security-context: sets safe sysctls and refuses others': [
    'PodSecurityContext: sysctls',
    'Sysctl: name value',
  ],
  'security-context: takes supplementalGroupsPolicy Strict where the runtime can, and names what is lacking elsewhere':
    ['PodSecurityContext: supplementalGroupsPolicy'],
  'security-context: refuses AppArmor profiles on a host without AppArmor': [
    'PodSecurityContext: appArmorProfile',
    'SecurityContext: appArmorProfile',
    'AppArmorProfile: type localhostProfile',
  ],
  'security-context: are one tree under shareProcessNamespace, and each their own without': [
    'PodSpec: shareProcessNamespace',
  ],
  'security-context: of a container are seen by an ephemeral container that targets it, and by it alone': [
    'PodSpec: ephemeralContainers',
    'EphemeralContainer: name image command targetContainerName',
  ],
  'pod-fields: run an ephemeral container with all that it asks for': [
    'EphemeralContainer: args workingDir env envFrom imagePullPolicy securityContext stdin stdinOnce tty terminationMessagePath terminationMessagePolicy volumeMounts',
  ],
  'network-files: gives a terminal and a standard input that stays open where they are asked for': [
    'Container: stdin stdinOnce tty',
  ],
  'network-files: writes host aliases after the pod’s own name, and follows dnsConfig': [
    'PodSpec: hostAliases dnsPolicy dnsConfig',
    'HostAlias: ip hostnames',
    'PodDNSConfig: nameservers searches options',
    'PodDNSConfigOption: name value',
  ],
  'network-files: names a pod %s': ['PodSpec: hostname subdomain setHostnameAsFQDN hostnameOverride'],
  'pod-life: runs in the network of the host when asked to': ['PodSpec: hostNetwork'],
  'pod-fields: see the processes and the shared memory of the host where they ask for it': [
    'PodSpec: hostIPC hostPID',
  ],
  'user-namespaces: are nobody’s on the host where the runtime can, and refused by name where it can’t': [
    'PodSpec: hostUsers',
  ],
  'resources: gives a pod the handler, the overhead and the priority of its classes': [
    'PodSpec: runtimeClassName priorityClassName',
    'RuntimeClass: apiVersion kind metadata handler overhead',
    'Overhead: podFixed',
    'PriorityClass: apiVersion kind metadata value',
  ],
  'pod-fields: take the system, the priority and the overhead that go with their classes': [
    'PodSpec: os priority overhead',
    'PodOS: name',
    'PriorityClass: globalDefault description',
  ],
}
