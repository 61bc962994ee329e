import type { JsonObject } from '../../src/base/json.ts'
import { container, pod } from './judged-document.ts'

const resources = {
  limits: { cpu: '500m', memory: '128Mi' },
  requests: { cpu: '100m', memory: '64Mi' },
}

/** Good documents of fields that have an effect here, of which mutations are made. */
export const effectiveBases: readonly JsonObject[] = [
  pod({
    restartPolicy: 'OnFailure',
    terminationGracePeriodSeconds: 20,
    activeDeadlineSeconds: 600,
    hostname: 'web',
    subdomain: 'sub',
    containers: [
      {
        ...container,
        command: ['sh', '-c'],
        args: ['sleep 1'],
        workingDir: '/srv',
        imagePullPolicy: 'IfNotPresent',
        ports: [{ name: 'http', containerPort: 80, hostPort: 8080, protocol: 'TCP', hostIP: '127.0.0.1' }],
        resources,
        resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
      { name: 'b', image: 'registry.example/b:2', stdin: true, tty: true },
    ],
  }),
  pod({
    containers: [
      {
        ...container,
        env: [
          { name: 'A', value: 'x' },
          { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'C', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
          { name: 'D', valueFrom: { configMapKeyRef: { name: 'conf', key: 'k', optional: true } } },
          { name: 'E', valueFrom: { secretKeyRef: { name: 'sec', key: 'k' } } },
        ],
        envFrom: [
          { prefix: 'P_', configMapRef: { name: 'conf' } },
          { secretRef: { name: 'sec', optional: true } },
        ],
      },
    ],
  }),
  pod({
    containers: [
      {
        ...container,
        livenessProbe: {
          httpGet: { path: '/h', port: 80, scheme: 'HTTP', httpHeaders: [{ name: 'X-A', value: 'b' }] },
          initialDelaySeconds: 3,
          periodSeconds: 5,
          timeoutSeconds: 2,
          failureThreshold: 3,
          successThreshold: 1,
          terminationGracePeriodSeconds: 9,
        },
        readinessProbe: { tcpSocket: { port: 'http' }, successThreshold: 2 },
        startupProbe: { grpc: { port: 5000, service: 's' }, periodSeconds: 1 },
        lifecycle: {
          postStart: { exec: { command: ['true'] } },
          preStop: { sleep: { seconds: 3 } },
        },
        ports: [{ name: 'http', containerPort: 80 }],
      },
    ],
  }),
  pod({
    securityContext: {
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 2000,
      fsGroupChangePolicy: 'OnRootMismatch',
      supplementalGroups: [3000, 4000],
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
      sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
    },
    containers: [
      {
        ...container,
        securityContext: {
          capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
          privileged: false,
          runAsUser: 1001,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' },
        },
      },
    ],
  }),
  pod({
    volumes: [
      { name: 'e', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
      { name: 'h', hostPath: { path: '/srv/data', type: 'DirectoryOrCreate' } },
      {
        name: 'c',
        configMap: { name: 'conf', defaultMode: 420, items: [{ key: 'k', path: 'a/b', mode: 256 }] },
      },
      { name: 's', secret: { secretName: 'sec', optional: true } },
      { name: 'p', persistentVolumeClaim: { claimName: 'data', readOnly: false } },
      { name: 'd', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
    ],
    containers: [
      {
        ...container,
        volumeMounts: [
          { name: 'e', mountPath: '/e' },
          { name: 'h', mountPath: '/h', readOnly: true, mountPropagation: 'HostToContainer' },
          { name: 'c', mountPath: '/c', subPath: 'a' },
          { name: 's', mountPath: '/s' },
          { name: 'p', mountPath: '/p', subPathExpr: 'x' },
          { name: 'd', mountPath: '/d' },
        ],
      },
    ],
  }),
  pod({
    volumes: [
      {
        name: 'all',
        projected: {
          defaultMode: 292,
          sources: [
            { configMap: { name: 'conf', items: [{ key: 'k', path: 'x' }] } },
            { secret: { name: 'sec', items: [{ key: 'k', path: 'y', mode: 256 }] } },
            {
              downwardAPI: {
                items: [
                  {
                    path: 'z',
                    resourceFieldRef: { containerName: 'a', resource: 'requests.cpu', divisor: '1m' },
                  },
                ],
              },
            },
          ],
        },
      },
    ],
    containers: [{ ...container, resources, volumeMounts: [{ name: 'all', mountPath: '/all' }] }],
  }),
  pod(
    {
      initContainers: [
        {
          name: 'side',
          image: 'registry.example/s:1',
          restartPolicy: 'Always',
          startupProbe: { tcpSocket: { port: 1 } },
        },
        { name: 'init', image: 'registry.example/i:1', command: ['true'] },
      ],
      hostAliases: [{ ip: '10.0.0.1', hostnames: ['db', 'db.local'] }],
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['1.1.1.1'],
        searches: ['a.example'],
        options: [{ name: 'ndots', value: '2' }],
      },
      imagePullSecrets: [{ name: 'sec' }],
      shareProcessNamespace: true,
    },
    {
      namespace: 'default',
      labels: { app: 'web', 'example.com/tier': 'edge' },
      annotations: { note: 'hello there' },
    },
  ),
  pod({
    hostNetwork: true,
    hostPID: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    setHostnameAsFQDN: false,
    os: { name: 'linux' },
    resources: { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '1' } },
    containers: [
      {
        ...container,
        ports: [{ containerPort: 9090 }],
        resources,
        restartPolicy: 'Never',
        restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42, 43] } }],
      },
    ],
  }),
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'conf', labels: { app: 'web' } },
    data: { k: 'v', 'app.conf': 'a=b\n' },
    binaryData: { b: 'AAEC' },
    immutable: false,
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'sec' },
    type: 'Opaque',
    data: { k: 'dg==' },
    stringData: { user: 'u' },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      volumeMode: 'Filesystem',
    },
  },
  {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'high' },
    value: 1000,
    globalDefault: false,
    description: 'important',
  },
  {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'kata' },
    handler: 'kata',
    overhead: { podFixed: { cpu: '100m', memory: '64Mi' } },
  },
]

/** Good documents of fields that only a cluster reads. */
export const ineffectiveBases: readonly JsonObject[] = [
  pod({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] },
            { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n'] }] },
          ],
        },
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 5, preference: { matchExpressions: [{ key: 'gen', operator: 'Gt', values: ['3'] }] } },
        ],
      },
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          {
            labelSelector: {
              matchLabels: { app: 'db' },
              matchExpressions: [{ key: 'x', operator: 'Exists' }],
            },
            topologyKey: 'zone',
            namespaces: ['default'],
            namespaceSelector: { matchLabels: { team: 'a' } },
          },
        ],
      },
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 10,
            podAffinityTerm: { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'host' },
          },
        ],
      },
    },
  }),
  pod({
    nodeSelector: { disk: 'ssd' },
    tolerations: [
      { key: 'a', operator: 'Equal', value: 'b', effect: 'NoSchedule' },
      { key: 'c', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
    ],
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        minDomains: 2,
        topologyKey: 'zone',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app: 'web' } },
        nodeAffinityPolicy: 'Honor',
        nodeTaintsPolicy: 'Ignore',
        matchLabelKeys: ['rev'],
      },
    ],
    serviceAccountName: 'builder',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    nodeName: 'node-1',
    schedulerName: 'default-scheduler',
    preemptionPolicy: 'PreemptLowerPriority',
  }),
]
