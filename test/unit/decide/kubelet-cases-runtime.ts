import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const manager = 'pkg/kubelet/kuberuntime/kuberuntime_manager_test.go'
const actions = 'unit/decide/plan/compute-pod-actions.test.ts'
const inits = 'unit/decide/plan/init-containers.test.ts'
const rules = 'unit/decide/plan/backoff.test.ts'
const restartAll = 'unit/decide/plan/restart-all.test.ts'
const resizes = 'unit/decide/plan/resize.test.ts'
const resizing = 'component/control/resize.test.ts'
/** One id for its whole table of sizes. */
const roomFirst = 'gives-pod-room-both'
const oldGate = none('the same table under a gate that keeps an older code path, which podd has none of')
const resultOnly = none('a list of what a sync did: podd has its events instead')

/** The kubelet's runtime manager: what a pod needs next, and in which order it ends. */
export const runtimeCases: readonly LedgerSection[] = [
  {
    test: `${manager} TestComputePodActions`,
    file: actions,
    cases: {
      'all run': 'leaves-pod-alone-runs',
      'neither sandbox nor containers': 'starts-everything-scratch',
      'ended ones, Always': 'restarts-ended-under-always',
      'ended ones, OnFailure': 'restarts-failed-under-onfailure',
      'a made one, OnFailure': 'starts-again-made-never',
      'ended ones, Never': 'restarts-nothing-under-never',
      'dead sandbox, Always': 'makes-everything-anew-sandbox',
      'dead sandbox, OnFailure, one has succeeded': 'leaves-out-succeeded-under',
      'sandbox without address': 'makes-everything-anew-sandbox-no',
      'changed spec': 'replaces-container-image-changed',
      'failed liveness': 'replaces-container-fails-liveness',
      'failed startup': 'replaces-container-fails-startup',
      'no ready sandbox, Never, all have ended': 'makes-no-sandbox-pod',
      'no ready sandbox, OnFailure, all have succeeded': 'makes-no-sandbox-pod-succeeded',
      'no ready sandbox, Never, nothing ever made': 'makes-sandbox-under-never',
      'unknown state': 'stops-container-unknown-state',
      'made, not started, Never': 'starts-again-made-never-started',
    },
  },
  {
    test: `${manager} TestComputePodActionsWithInitContainers`,
    file: inits,
    cases: {
      'all have passed': 'starts-main-containers-passed',
      'none made': 'starts-first-fresh-sandbox',
      'the last runs': 'waits-for-the-one-that-runs',
      'dead sandbox': 'begins-first-new-sandbox',
      'the last failed, Always': 'runs-failed-again-under',
      'the last failed, OnFailure': 'runs-failed-again-under-onfailure',
      'the last failed, Never': 'stops-pod-fails-under',
      'the last unknown, Always': 'replaces-unknown-state-under',
      'the last unknown, OnFailure': 'replaces-unknown-state-under-onfailure',
      'the last unknown, Never': 'stops-pod-unknown-state',
      'dead sandbox, Never, some have run': 'makes-no-new-sandbox',
      'dead sandbox, Never, none seen': 'makes-new-sandbox-under',
      'dead sandbox, OnFailure, the last failed': 'makes-new-sandbox-failed',
      'only the running last is left': 'does-not-run-those',
      'the last made, not started': 'starts-again-made-never',
    },
  },
  {
    test: `${manager} TestComputePodActionsWithInitContainersWithLegacySidecarContainers`,
    file: inits,
    cases: all(oldGate, 'the table above'),
  },
  {
    test: `${manager} TestComputePodActionsWithRestartableInitContainers`,
    file: inits,
    cases: {
      'all have started': 'starts-main-containers-once',
      'none made': 'starts-first-sidecar-fresh',
      'one made, not started': 'starts-sidecar-again-made',
      'one has started': 'starts-follows-sidecar-started',
      ...all('does-not-wait-liveness', 'liveness not asked yet', 'liveness under way', 'liveness fine'),
      'liveness failed': 'replaces-sidecar-fails-liveness',
      'startup not asked yet': 'waits-startup-probe-sidecar',
      'startup under way': 'waits-startup-probe-sidecar-under',
      'startup passed': 'does-not-wait-liveness',
      'startup failed': 'replaces-sidecar-fails-startup',
      'changed spec': 'replaces-sidecar-image-changed',
      'an earlier one and the last have ended': 'restarts-sidecars-ended-before',
      'an earlier one has ended': 'restarts-sidecar-ended-starts',
      'dead sandbox, Never': 'makes-no-new-sandbox-under',
      'dead sandbox, Never, none seen': 'makes-new-sandbox-under-never',
      'dead sandbox, OnFailure': 'makes-new-sandbox-sidecar',
      'dead sandbox, Always': 'makes-new-sandbox-sidecar-failed',
      'the last failed, Never': 'restarts-sidecar-failed-although',
      'the last unknown, Never': 'replaces-sidecar-unknown-state',
      'the last failed beside main containers, Never': 'restarts-sidecar-beside-running',
      'main containers have succeeded, Never': 'stops-sidecars-once-main',
      'only the last is left': 'restarts-sidecars-remains-gone',
    },
  },
  {
    test: `${manager} TestComputePodActionsWithInitAndEphemeralContainers`,
    file: inits,
    cases: {
      'all run': 'leaves-ephemeral-container-alone',
      'none runs': 'starts-ephemeral-container-beside',
      'a second one': 'starts-second-ephemeral-container',
      'it has ended': 'never-restarts-ephemeral-container',
      'an init container runs': 'starts-ephemeral-container-init',
      'dead sandbox, a failed init container': 'makes-new-sandbox-failed-init',
      'dead sandbox': 'does-not-restart-ephemeral',
      'all others have ended': 'stops-pod-only-ephemeral',
      'unknown state': 'leaves-ephemeral-container-unknown',
    },
  },
  {
    test: `${manager} TestComputePodActionsWithInitAndEphemeralContainersWithLegacySidecarContainers`,
    file: inits,
    cases: all(oldGate, 'the table above'),
  },
  {
    test: `${manager} TestComputePodActionsWithContainerRestartRules`,
    file: rules,
    cases: {
      'own policy Always under Never': 'restarts-those-own-policy',
      'own policy OnFailure under Never': 'restarts-those-failed-own',
      'own policy OnFailure, made, not started': 'starts-again-made-never',
      'own policy Never under Always': 'restarts-none-own-policy',
      'dead sandbox, one has succeeded': 'leaves-out-new-sandbox',
    },
  },
  {
    test: `${manager} TestComputePodActionsForRestartAllContainers`,
    file: restartAll,
    cases: {
      'not asked for': 'not-asked-nothing-happens',
      'asked for': 'run-stopped-before-anything',
      'with init containers': 'init-containers-sidecars-begin',
      'with sidecars': 'init-containers-sidecars-begin',
      'with remains of earlier ones': 'goes-on-sidecars-then',
      'all are removed': 'begins-first-init-container',
    },
  },
  {
    test: `${manager} TestDoBackOff`,
    file: 'unit/decide/plan/start-plan.test.ts',
    cases: {
      'it runs': 'charges-nothing-first-container',
      'it has ended for the first time': 'starts-again-crashed-charges',
      'it is in its backoff': 'waits-out-backoff-i',
    },
  },
  {
    test: `${manager} TestComputePodActionsForPodResize`,
    file: resizes,
    cases: {
      'cpu and memory': 'resize-cpu-memory',
      cpu: 'a-resize-for-cpu',
      memory: 'a-resize-for-memory',
      'equal resources': 'nothing-when-all-is-as-asked',
      ...all(
        none('podd compares manifests, not what the runtime rounds them to: such a resize changes nothing'),
        'equivalent resources',
        'cpu to an equivalent value',
      ),
      'cpu and memory, cpu restarts': 'restart-where-policy-asks',
      'cpu and memory, memory restarts': 'restart-memory-where-policy',
      'memory, cpu would restart': 'no-restart-resource-policy',
      'cpu, memory would restart': 'no-restart-cpu-policy',
    },
  },
  {
    test: `${manager} TestUpdatePodContainerResources`,
    file: resizing,
    cases: {
      'cpu of a guaranteed pod': 'cpu-memory-guaranteed-pod',
      'memory of a guaranteed pod': 'cpu-memory-guaranteed-pod',
    },
  },
  {
    test: `${manager} TestDoPodResizeAction`,
    file: resizing,
    cases: {
      'all higher, the pod has limits': 'cpu-memory-guaranteed-pod',
      'all higher, the pod has none': 'limit-where-none',
      'the pod first, and last': roomFirst,
      'requests higher': 'requests-alone',
      'memory request without limits': 'request-without-limits',
      'cpu request without limits': 'request-without-limits',
      'limits added': 'limit-where-none',
      'limits of the pod added': none("a change of the pod's own resources makes a new pod"),
      'a memory limit below usage': 'touches-nothing-where-memory',
    },
  },
  {
    test: `${manager} TestSyncPod, TestSyncPodWithConvertedPodSysctls, TestSyncPodWithInitContainers`,
    file: inits,
    cases: {
      'makes sandbox and containers': at('component/control/pod-life.test.ts', 'runs-ready-recorded-before'),
      'gives init containers their turn': 'starts-next-passed',
      'fills in what a sync did': resultOnly,
    },
  },
  {
    test: `${manager} TestPruneInitContainers`,
    file: 'unit/decide/node/plan-container-garbage.test.ts',
    cases: { 'keeps the last of each name': 'keeps-each-name' },
  },
  {
    test: `${manager} TestKillPod`,
    file: 'unit/decide/plan/ending.test.ts',
    cases: { 'stops all containers and the sandbox': 'stops-what-runs' },
  },
  {
    test: `${manager} TestOnPodSandboxReadyInvocation, TestOnPodSandboxReadyTiming`,
    file: 'unit/decide/status/derive-status.test.ts',
    cases: {
      'the status is told once the sandbox is ready': 'when-the-sandbox-has-an-address',
      'dynamic resources': none('resourceClaims are refused'),
    },
  },
  {
    test: `${manager} TestToKubeContainerImageVolumes, TestGetImageVolumes`,
    file: actions,
    cases: all(none('a volume kind of its own, apart from these deciders'), 'image volumes'),
  },
  {
    test: 'pkg/kubelet/kuberuntime/util/util_test.go TestPodSandboxChanged',
    file: 'unit/decide/plan/sandbox-change.test.ts',
    cases: {
      'no sandbox': 'makes-the-first-one',
      'several ready': 'replaces-several-ready',
      'none ready': 'replaces-newest-none-ready',
      'other network mode': 'replaces-on-pod-network',
      'no address': 'replaces-without-address',
      'an address': 'keeps-ready-address',
    },
  },
  {
    test: 'pkg/kubelet/kuberuntime/kuberuntime_termination_order_test.go',
    file: 'unit/decide/plan/ending.test.ts',
    cases: {
      'sidecars after the main container': 'stops-sidecars-after-main',
      'sidecars in reverse order': 'stops-sidecars-after-main',
      'the grace bounds the waiting': 'two-seconds-after-deadline',
    },
  },
  {
    test: 'pkg/kubelet/kuberuntime/kuberuntime_gc_test.go',
    file: 'unit/decide/node/plan-container-garbage.test.ts',
    cases: {
      'the oldest dead go first': 'removes-those-before',
      'running ones stay': 'never-removes-runs-or',
      'one dead container a name stays': 'keeps-last-ended-beside',
      'a sandbox with containers stays': 'keeps-older-sandbox-holds',
      'a ready sandbox stays': 'keeps-older-sandbox-ready',
      'the newest sandbox stays': 'keeps-newest-sandbox-dead',
      'older dead sandboxes go': 'removes-older-sandboxes-empty',
      'all of a pod that is gone goes': at('unit/decide/plan/ending.test.ts', 'removes-left-stopped'),
    },
  },
  {
    test: 'test/e2e_node/container_log_rotation_test.go',
    file: 'e2e/logs.test.ts',
    cases: { 'one worker': 'log-rotation', 'several workers': 'log-rotation-workers' },
  },
  {
    test: 'test/e2e_node/log_path_test.go',
    file: 'e2e/logs.test.ts',
    cases: { 'the link': 'log-path', 'the CRI path': 'log-path-cri' },
  },
  {
    test: 'pkg/kubelet/images/image_manager_test.go',
    file: 'unit/control/image-puller.test.ts',
    cases: {
      'image missing, pull if not present, fail on image inspect': 'image-inspect-error',
      'image missing, unable to fetch': 'backs-off-pulling',
      'invalid image name, no pull': 'invalid-image-name',
      'image missing, SignatureValidationFailed': 'runtime-names-reason',
      TestEvalCRIPullErr: at('unit/control/image-puller.test.ts', 'reads-pull-failures'),
      TestSerializedPuller: at('unit/control/image-puller.test.ts', 'pulls-one-by-one'),
      TestParallelPuller: at('unit/control/image-puller.test.ts', 'pulls-without-limit'),
      TestMaxParallelImagePullsLimit: at('unit/control/image-puller.test.ts', 'pulls-as-many-as-may'),
    },
  },
  {
    test: 'test/e2e_node/image_pull_test.go',
    file: 'e2e/image-pull-order.test.ts',
    cases: {
      'parallel image pull with MaxParallelImagePulls=5': 'parallel-image-pulls',
      'serialize image pull': 'serial-image-pulls',
      'Image pull retry backs off on error': at('e2e/image-pulls.test.ts', 'image-pull-backs-off'),
    },
  },
]
