import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const manager = 'pkg/kubelet/kuberuntime/kuberuntime_manager_test.go'
const actions = 'unit/decide/compute-pod-actions.test.ts'
const inits = 'unit/decide/init-containers.test.ts'
const rules = 'unit/decide/restart-policy.test.ts'
const restartAll = 'unit/decide/restart-all.test.ts'
const resizes = 'unit/decide/resize.test.ts'
const resizing = 'component/control/resize.test.ts'
/** One title for its whole table of sizes. */
const roomFirst = 'gives the pod room for both first, and no more than it needs last: %s'
const oldGate = none('the same table under a gate that keeps an older code path, which podd has none of')
const resultOnly = none('a list of what a sync did: podd has its events instead')

/** The kubelet's runtime manager: what a pod needs next, and in which order it ends. */
export const runtimeCases: readonly LedgerSection[] = [
  {
    test: `${manager} TestComputePodActions`,
    file: actions,
    cases: {
      'all run': 'leaves a pod alone that runs',
      'neither sandbox nor containers': 'starts everything from scratch',
      'ended ones, Always': 'restarts what has ended under Always',
      'ended ones, OnFailure': 'restarts what has failed under OnFailure',
      'a made one, OnFailure': 'starts again what was made and never started',
      'ended ones, Never': 'restarts nothing under Never',
      'dead sandbox, Always': 'makes everything anew when the sandbox is dead',
      'dead sandbox, OnFailure, one has succeeded':
        'leaves out what has succeeded under OnFailure when the sandbox is dead',
      'sandbox without address': 'makes everything anew when the sandbox has no address',
      'changed spec': 'replaces a container whose image changed, once the new one is there',
      'failed liveness': 'replaces a container that fails its liveness probe',
      'failed startup': 'replaces a container that fails its startup probe',
      'no ready sandbox, Never, all have ended': 'makes no sandbox for a pod that has ended under Never',
      'no ready sandbox, OnFailure, all have succeeded':
        'makes no sandbox for a pod that has succeeded under OnFailure',
      'no ready sandbox, Never, nothing ever made':
        'makes a sandbox under Never when no container was ever made',
      'unknown state': 'stops a container of unknown state before its successor starts, whatever the policy',
      'made, not started, Never': 'starts again what was made and never started under Never too',
    },
  },
  {
    test: `${manager} TestComputePodActionsWithInitContainers`,
    file: inits,
    cases: {
      'all have passed': 'starts the main containers when all have passed',
      'none made': 'starts the first one of a fresh sandbox',
      'the last runs': 'waits for the one that runs',
      'dead sandbox': 'begins with the first one in a new sandbox',
      'the last failed, Always': 'runs the one that failed again under Always',
      'the last failed, OnFailure': 'runs the one that failed again under OnFailure',
      'the last failed, Never': 'stops the pod when one fails under Never',
      'the last unknown, Always': 'replaces one of unknown state under Always',
      'the last unknown, OnFailure': 'replaces one of unknown state under OnFailure',
      'the last unknown, Never': 'stops the pod when one of unknown state may not run again',
      'dead sandbox, Never, some have run': 'makes no new sandbox under Never once one has run',
      'dead sandbox, Never, none seen': 'makes a new sandbox under Never when none was ever made',
      'dead sandbox, OnFailure, the last failed': 'makes a new sandbox when one failed under OnFailure',
      'only the running last is left': 'does not run those again whose remains are gone',
      'the last made, not started': 'starts one again that was made and never started',
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
      'all have started': 'starts the main containers once the sidecars have started',
      'none made': 'starts the first sidecar of a fresh sandbox',
      'one made, not started': 'starts a sidecar again that was made and never started',
      'one has started': 'starts what follows a sidecar that has started',
      ...all(
        'does not wait for the liveness of a sidecar',
        'liveness not asked yet',
        'liveness under way',
        'liveness fine',
      ),
      'liveness failed': 'replaces a sidecar that fails its liveness probe, and holds nothing up for it',
      'startup not asked yet': 'waits for the startup probe of a sidecar that has not run',
      'startup under way': 'waits for the startup probe of a sidecar that is under way',
      'startup passed': 'does not wait for the liveness of a sidecar',
      'startup failed': 'replaces a sidecar that fails its startup probe, and holds up what follows',
      'changed spec': 'replaces a sidecar whose image changed, and holds nothing up for it',
      'an earlier one and the last have ended': 'restarts sidecars that ended before the one it has come to',
      'an earlier one has ended': 'restarts a sidecar that ended and starts the main containers',
      'dead sandbox, Never': 'makes no new sandbox under Never once a sidecar has run',
      'dead sandbox, Never, none seen': 'makes a new sandbox under Never when no sidecar was ever made',
      'dead sandbox, OnFailure': 'makes a new sandbox when a sidecar failed under OnFailure',
      'dead sandbox, Always': 'makes a new sandbox when a sidecar failed under Always',
      'the last failed, Never': 'restarts a sidecar that failed although the pod runs once',
      'the last unknown, Never': 'replaces a sidecar of unknown state although the pod runs once',
      'the last failed beside main containers, Never':
        'restarts a sidecar beside running main containers although the pod runs once',
      'main containers have succeeded, Never': 'stops the sidecars once the main containers have ended',
      'only the last is left': 'restarts sidecars whose remains are gone',
    },
  },
  {
    test: `${manager} TestComputePodActionsWithInitAndEphemeralContainers`,
    file: inits,
    cases: {
      'all run': 'leaves an ephemeral container alone',
      'none runs': 'starts an ephemeral container beside the others',
      'a second one': 'starts a second ephemeral container',
      'it has ended': 'never restarts an ephemeral container',
      'an init container runs': 'starts an ephemeral container while an init container runs',
      'dead sandbox, a failed init container':
        'makes a new sandbox for a failed init container and starts no ephemeral container in it yet',
      'dead sandbox': 'does not restart an ephemeral container in a new sandbox',
      'all others have ended': 'stops a pod of which only an ephemeral container runs',
      'unknown state': 'leaves an ephemeral container of unknown state alone',
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
      'own policy Always under Never': 'restarts those whose own policy is Always under Never',
      'own policy OnFailure under Never':
        'restarts those that failed whose own policy is OnFailure under Never',
      'own policy OnFailure, made, not started':
        'starts again what was made and never started whose own policy is OnFailure',
      'own policy Never under Always': 'restarts none whose own policy is Never under Always',
      'dead sandbox, one has succeeded': 'leaves out of a new sandbox what has succeeded by its own policy',
    },
  },
  {
    test: `${manager} TestComputePodActionsForRestartAllContainers`,
    file: restartAll,
    cases: {
      'not asked for': 'is not asked for: nothing happens to the others',
      'asked for': 'has all that run stopped, before anything starts',
      'with init containers': 'has init containers and sidecars begin anew too',
      'with sidecars': 'has init containers and sidecars begin anew too',
      'with remains of earlier ones':
        'goes on with its sidecars and then with its main containers, under any policy',
      'all are removed': 'begins with its first init container, in the same sandbox',
    },
  },
  {
    test: `${manager} TestDoBackOff`,
    file: 'unit/decide/start-plan.test.ts',
    cases: {
      'it runs': 'charges nothing for the first container that is stopped for a failed probe',
      'it has ended for the first time': 'starts again what crashed, and charges the first delay',
      'it is in its backoff': 'waits out a backoff of %i ms in the words of Kubernetes',
    },
  },
  {
    test: `${manager} TestComputePodActionsForPodResize`,
    file: resizes,
    cases: {
      'cpu and memory': 'a resize for cpu and memory',
      cpu: 'a resize for cpu',
      memory: 'a resize for memory',
      'equal resources': 'nothing when all is as asked',
      ...all(
        none('podd compares manifests, not what the runtime rounds them to: such a resize changes nothing'),
        'equivalent resources',
        'cpu to an equivalent value',
      ),
      'cpu and memory, cpu restarts': 'a restart where the policy asks for it, and the cgroup in the end',
      'cpu and memory, memory restarts': 'a restart for memory where its policy asks for it',
      'memory, cpu would restart': 'no restart when the resource with that policy stays',
      'cpu, memory would restart': 'no restart for cpu when the policy of memory asks for it',
    },
  },
  {
    test: `${manager} TestUpdatePodContainerResources`,
    file: resizing,
    cases: {
      'cpu of a guaranteed pod': 'cpu and memory of a guaranteed pod up',
      'memory of a guaranteed pod': 'cpu and memory of a guaranteed pod up',
    },
  },
  {
    test: `${manager} TestDoPodResizeAction`,
    file: resizing,
    cases: {
      'all higher, the pod has limits': 'cpu and memory of a guaranteed pod up',
      'all higher, the pod has none': 'a limit where there was none',
      'the pod first, and last': roomFirst,
      'requests higher': 'requests alone',
      'memory request without limits': 'a request without limits',
      'cpu request without limits': 'a request without limits',
      'limits added': 'a limit where there was none',
      'limits of the pod added': none("a change of the pod's own resources makes a new pod"),
      'a memory limit below usage': 'touches nothing where the memory limit would be below what is in use',
    },
  },
  {
    test: `${manager} TestSyncPod, TestSyncPodWithConvertedPodSysctls, TestSyncPodWithInitContainers`,
    file: inits,
    cases: {
      'makes sandbox and containers': at(
        'component/control/pod-life.test.ts',
        'runs, is Ready, and is recorded before it runs',
      ),
      'gives init containers their turn': 'starts the next one when one has passed',
      'fills in what a sync did': resultOnly,
    },
  },
  {
    test: `${manager} TestPruneInitContainers`,
    file: 'unit/decide/select-dead-containers.test.ts',
    cases: { 'keeps the last of each name': 'keeps one of each name' },
  },
  {
    test: `${manager} TestKillPod`,
    file: 'unit/decide/ending.test.ts',
    cases: { 'stops all containers and the sandbox': 'stops what runs' },
  },
  {
    test: `${manager} TestOnPodSandboxReadyInvocation, TestOnPodSandboxReadyTiming`,
    file: 'unit/decide/derive-status.test.ts',
    cases: {
      'the status is told once the sandbox is ready': 'when the sandbox has an address',
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
    file: 'unit/decide/sandbox-change.test.ts',
    cases: {
      'no sandbox': 'makes the first one',
      'several ready': 'replaces several that are ready',
      'none ready': 'replaces the newest when none is ready',
      'other network mode': 'replaces one on the pod network for a pod on the host network',
      'no address': 'replaces one without an address',
      'an address': 'keeps one that is ready and has an address',
    },
  },
  {
    test: 'pkg/kubelet/kuberuntime/kuberuntime_termination_order_test.go',
    file: 'unit/decide/ending.test.ts',
    cases: {
      'sidecars after the main container': 'stops sidecars after the main containers, in reverse order',
      'sidecars in reverse order': 'stops sidecars after the main containers, in reverse order',
      'the grace bounds the waiting': 'two seconds after the deadline',
    },
  },
  {
    test: 'pkg/kubelet/kuberuntime/kuberuntime_gc_test.go',
    file: 'unit/decide/select-dead-containers.test.ts',
    cases: {
      'the oldest dead go first': 'removes those before it',
      'running ones stay': 'never removes what runs or may run',
      'one dead container a name stays': 'keeps the last one that ended beside the one that runs',
      'a sandbox with containers stays': 'keeps an older sandbox that holds what is kept',
      'a ready sandbox stays': 'keeps an older sandbox that is ready',
      'the newest sandbox stays': 'keeps the newest sandbox, dead or not',
      'older dead sandboxes go': 'removes older sandboxes that are empty',
      'all of a pod that is gone goes': at(
        'unit/decide/ending.test.ts',
        'removes what is left when all was stopped',
      ),
    },
  },
]
