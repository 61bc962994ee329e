import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const pods = 'pkg/kubelet/kubelet_pods_test.go'
const generate = 'pkg/kubelet/status/generate_test.go'
const phase = 'unit/decide/status/derive-phase.test.ts'
const status = 'unit/decide/status/derive-status.test.ts'
const container = 'unit/decide/status/container-status.test.ts'
const ofRestartAll = (id: string) => at('unit/decide/plan/restart-all.test.ts', id)
const ofResize = (id: string) => at('unit/decide/plan/resize.test.ts', id)
const startsAnew = ofRestartAll('pending-not-initialized-init')
const isTakenDown = ofRestartAll('condition-true-some-stopped')

const deletedTerminal = none('a pod that ends under Always is being removed, and its status goes with it')
const oneSource = none('podd derives a status from record and runtime, never from the status before it')
const alwaysThere = none('every container of the spec has a status here')
const gates = none('readinessGates are refused')

/** The kubelet's phases, container statuses and conditions. */
export const statusCases: readonly LedgerSection[] = [
  {
    test: `${pods} TestPodPhaseWithRestartAlways`,
    file: phase,
    cases: {
      'nothing known': 'always-nothing-made',
      'all run': 'always-all-run',
      'all have ended': 'always-all-have-ended',
      ...all(deletedTerminal, 'all have succeeded, pod terminal', 'one has failed, pod terminal'),
      'one runs, one has ended': 'always-runs-ended',
      'one runs, one unknown': 'always-runs-missing',
      'one runs, one waits': 'always-runs-made',
      'one runs, one in a backoff': 'always-runs-backoff',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAlwaysInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'init-always-nothing-made',
      'it runs': 'init-always-runs',
      'it failed': 'init-always-failed',
      'it waits after a success': 'init-always-succeeded',
      'it waits after a failure': 'init-always-failed-made',
      'it waits': 'init-always-made',
      'it succeeded, all run': 'init-always-succeeded-main',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAlwaysRestartableInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'sidecar-nothing-made',
      'it runs': 'sidecar-it-runs',
      'it has ended': 'sidecar-it-has-ended',
      'it waits after a success': 'sidecar-it-has-ended',
      'it waits after a failure': 'sidecar-it-has-failed',
      'it waits': 'sidecar-it-was-made',
      'started, one of two runs': 'sidecar-started-two-runs',
      'started, all run': 'sidecar-started-run',
      'running, all run': 'sidecar-starts-again-run',
      'ended, all run': 'sidecar-ended-run',
      'in a backoff, all run': 'sidecar-backoff-run',
      ...all(deletedTerminal, 'it failed, pod terminal', 'it succeeded, pod terminal'),
      'in a new sandbox': 'sidecar-runs-new-sandbox',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAlwaysAndPodHasRun`,
    file: phase,
    cases: {
      'init, sidecar and main container run, not initialized': 'new-sandbox-init-sidecar',
      'init and sidecar run, the main container has ended': 'new-sandbox-init-sidecar-run',
      'new sandbox: init passed, sidecar runs': 'sidecar-runs-new-sandbox',
      'init passed, sidecar runs, main container has ended': 'init-passed-sidecar-runs',
      'init passed, sidecar and main container run': 'init-passed-sidecar-main',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartNever`,
    file: phase,
    cases: {
      'nothing known': 'never-nothing-made',
      'all run': 'never-all-run',
      'all have succeeded': 'never-all-have-succeeded',
      'all have failed': 'never-all-have-failed',
      'one runs, one has succeeded': 'never-runs-succeeded',
      'one runs, one unknown': 'never-runs-missing',
      'one runs, one waits': 'never-runs-made',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartNeverInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'init-never-nothing-made',
      'it runs': 'init-never-runs',
      'it failed': 'init-never-failed',
      'it waits after a success': 'init-never-made',
      'it waits after a failure': 'init-never-failed-runtime',
      'it waits': 'init-never-made',
      'it succeeded, all run': 'init-never-succeeded-main',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartNeverRestartableInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'sidecar-nothing-made',
      'it runs': 'sidecar-it-runs',
      'it has ended': 'sidecar-it-has-ended',
      'it waits after a success': 'sidecar-it-has-ended',
      'it waits after a failure': 'sidecar-it-has-failed',
      'it waits': 'sidecar-it-was-made',
      'started, one of two runs': 'sidecar-started-two-runs',
      'started, all have succeeded': 'sidecar-never-started-succeeded',
      'starting again, all have succeeded': 'sidecar-never-starts-again',
      'all have succeeded, it too': 'sidecar-never-succeeded-too',
      'all have succeeded, it failed': 'sidecar-never-succeeded-failed',
      ...all(
        'sidecar-never-succeeded-backoff',
        'all have succeeded, it waits after a success',
        'all have succeeded, it waits after a failure',
      ),
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartOnFailure`,
    file: phase,
    cases: {
      'nothing known': 'onfailure-nothing-made',
      'all run': 'onfailure-all-run',
      'all have succeeded': 'onfailure-all-have-succeeded',
      'all have failed': 'onfailure-all-have-failed',
      'one runs, one has succeeded': 'onfailure-runs-succeeded',
      'one runs, one unknown': 'onfailure-runs-missing',
      'one runs, one waits': 'onfailure-runs-made',
      'one runs, one in a backoff': 'onfailure-runs-backoff',
    },
  },
  {
    test: `${pods} TestPodPhaseWithContainerRestartPolicy`,
    file: phase,
    cases: {
      'Never, failed': 'own-policy-never-under',
      'OnFailure, failed': 'own-policy-onfailure-under',
      'Always, failed': 'own-policy-always-under',
      'one may run again': 'may-run-again-may',
      'none may, one failed': 'none-may-run-again',
      'none may, all succeeded': 'none-may-run-again-succeeded',
    },
  },
  {
    test: `${pods} TestPodPhaseWithContainerRestartPolicyInitContainers`,
    file: phase,
    cases: {
      'Never, failed': 'init-own-policy-never',
      'OnFailure, failed': 'init-own-policy-onfailure',
      'Always, failed': 'sidecar-it-has-failed',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAllContainers`,
    file: phase,
    cases: {
      'one ended by the rule': ofRestartAll('running-before-taken-down'),
      'all removed': ofRestartAll('running-along-without-init'),
    },
  },
  {
    test: `${pods} TestConvertToAPIContainerStatuses`,
    file: container,
    cases: {
      'nothing in the runtime, running before, being deleted': oneSource,
      'nothing in the runtime, running before': oneSource,
      'restarting all: one killed, one removed': isTakenDown,
      'restarting all: killed, then removed': startsAnew,
      'restarting all: killed and removed together': startsAnew,
      ...all(
        none('a container that was recreated has the status of any other'),
        'restarting all: one runs again',
        'restarting all: one succeeded',
        'restarting all: one failed',
      ),
      'an init container of which nothing is left': 'init-container-nothing-left',
      'a sidecar of which nothing is left': 'sidecar-nothing-left-waits',
    },
  },
  {
    test: `${pods} TestConvertToAPIContainerStatusesForResources`,
    file: container,
    cases: {
      'best effort': 'left-out-where-none',
      'just made': 'is-being-created',
      'just running': 'has-started-and-is-ready',
      'just ended': 'says-how',
      'with requests and limits': 'are-those-of-the-spec',
      resized: ofResize('shows-containers-no-condition'),
    },
  },
  {
    test: `${pods} Test_generateAPIPodStatus`,
    file: status,
    cases: {
      'disrupted and deleted': none('nothing disrupts a pod here but what makes it Failed for good'),
      'ready, running before, being deleted': oneSource,
      'ready, running before': oneSource,
      'a phase of the end stays, Succeeded': 'keeps-pod-succeeded-runtime',
      'a phase of the end stays, Always': 'keeps-pod-failed-made',
      'a phase of the end stays, Never': 'keeps-pod-succeeded-runtime',
      'Running may become Pending': 'falls-back-pending-pod',
      'the reason stays with the phase': 'says-why-pod-may',
      'the reason goes with the phase': 'says-why-pod-may',
    },
  },
  {
    test: `${pods} Test_generateAPIPodStatusForInPlaceVPAEnabled`,
    file: status,
    cases: all(ofResize('shows-containers-no-condition'), 'other resources', 'cpu and memory'),
  },
  {
    test: `${pods} TestGenerateAPIPodStatusHostNetworkPodIPs, TestNodeAddressUpdatesGenerateAPIPodStatusHostNetworkPodIPs`,
    file: status,
    cases: {
      'a pod on the host network': 'gives-addresses-host-pod',
      'the node has other addresses now': none('the addresses of the host are asked for with every status'),
    },
  },
  {
    test: `${pods} TestGenerateAPIPodStatusPodIPs`,
    file: status,
    cases: {
      'one or two addresses': 'gives-addresses-class-start',
      none: 'gives-no-address-where',
    },
  },
  {
    test: `${generate} TestGenerateContainersReadyCondition, TestGeneratePodReadyCondition`,
    file: status,
    cases: {
      ...all(alwaysThere, 'no statuses', 'none of the statuses', 'a status is missing', 'of a sidecar, too'),
      'no containers': none('a pod has at least one'),
      'all ready': 'all-are-ready',
      'one not ready': 'not-passed-readiness-probe',
      'the pod has succeeded': 'the-pod-has-succeeded',
      'sidecars ready': 'ready-sidecars-too',
      'a sidecar missing': 'a-sidecar-is-missing',
      'a sidecar not ready': 'sidecar-not-ready',
      ...all(gates, 'a gate missing', 'a gate closed', 'a gate open', 'two gates', 'a gate and a container'),
    },
  },
  {
    test: `${generate} TestGeneratePodInitializedCondition`,
    file: status,
    cases: {
      'no statuses': alwaysThere,
      'no init containers': 'without-init-containers',
      'one, not made': 'before-first-run',
      'two, passed': 'when-all-have-passed',
      'two, one missing': 'when-one-is-missing',
      'two, one not ready': 'while-one-runs',
      'the pod has succeeded': 'when-the-pod-has-succeeded',
      'a sidecar, not started': 'before-sidecar-started',
      'a sidecar, started': 'when-a-sidecar-has-started',
      'a sidecar, not started, a main container runs': 'sidecar-starts-again-beside',
      'waiting again, a main container has ended': 'remains-init-container-gone',
    },
  },
  {
    test: `${generate} TestGeneratePodReadyToStartContainersCondition`,
    file: status,
    cases: {
      nothing: 'without-a-sandbox',
      'not ready': 'sandbox-not-ready',
      'ready, no address': 'sandbox-no-address',
      'ready, an address': 'when-the-sandbox-has-an-address',
    },
  },
  {
    test: `${generate} TestGenerateAllContainersRestartingCondition`,
    file: status,
    cases: {
      Pending: ofRestartAll('condition-false-before-asked'),
      ...all(ofRestartAll('condition-false-reason-once'), 'Failed', 'Succeeded'),
      ...all(isTakenDown, 'begun', 'cleaning up'),
      'cleaned up': startsAnew,
    },
  },
  {
    test: 'pkg/kubelet/prober/prober_manager_test.go TestUpdatePodStatus, TestUpdatePodStatusWithInitContainers',
    file: container,
    cases: {
      'no probe': 'has-started-and-is-ready',
      'readiness failed': 'readiness-probe-fails',
      'readiness passed': 'readiness-probe-passed',
      'not started': 'before-startup-probe-passed',
      started: 'startup-probe-passed',
      ended: 'says-how',
      'an init container that passed': 'init-container-passed',
      'an init container that runs': 'init-container-runs',
      'a sidecar': 'a-sidecar-that-runs',
      'verdicts from before a restart': at('unit/control/prober.test.ts', 'taken-over-before-restart'),
    },
  },
]
