import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const pods = 'pkg/kubelet/kubelet_pods_test.go'
const generate = 'pkg/kubelet/status/generate_test.go'
const phase = 'unit/decide/derive-phase.test.ts'
const status = 'unit/decide/derive-status.test.ts'
const container = 'unit/decide/container-status.test.ts'
const ofRestartAll = (title: string) => at('unit/decide/restart-all.test.ts', title)
const ofResize = (title: string) => at('unit/decide/resize.test.ts', title)
const startsAnew = ofRestartAll(
  'is Pending and not initialized while its init containers run again, and keeps the ends and counts',
)
const isTakenDown = ofRestartAll('has the condition True while some are to be stopped, and is Running')

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
      'nothing known': 'Always: nothing made',
      'all run': 'Always: all run',
      'all have ended': 'Always: all have ended',
      ...all(deletedTerminal, 'all have succeeded, pod terminal', 'one has failed, pod terminal'),
      'one runs, one has ended': 'Always: one runs, one has ended',
      'one runs, one unknown': 'Always: one runs, one is missing',
      'one runs, one waits': 'Always: one runs, one was made',
      'one runs, one in a backoff': 'Always: one runs, one is in a backoff',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAlwaysInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'init, Always: nothing made',
      'it runs': 'init, Always: it runs',
      'it failed': 'init, Always: it failed',
      'it waits after a success': 'init, Always: it succeeded',
      'it waits after a failure': 'init, Always: it failed and is made anew',
      'it waits': 'init, Always: it was made',
      'it succeeded, all run': 'init, Always: it succeeded and the main containers run',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAlwaysRestartableInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'sidecar: nothing made',
      'it runs': 'sidecar: it runs',
      'it has ended': 'sidecar: it has ended',
      'it waits after a success': 'sidecar: it has ended',
      'it waits after a failure': 'sidecar: it has failed',
      'it waits': 'sidecar: it was made',
      'started, one of two runs': 'sidecar: it has started, one of two runs',
      'started, all run': 'sidecar: it has started, all run',
      'running, all run': 'sidecar: it starts again, all run',
      'ended, all run': 'sidecar: it has ended, all run',
      'in a backoff, all run': 'sidecar: it is in a backoff, all run',
      ...all(deletedTerminal, 'it failed, pod terminal', 'it succeeded, pod terminal'),
      'in a new sandbox': 'sidecar: it runs in a new sandbox, the others have not begun',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAlwaysAndPodHasRun`,
    file: phase,
    cases: {
      'init, sidecar and main container run, not initialized':
        'new sandbox: init and sidecar run, the old main container seems to',
      'init and sidecar run, the main container has ended':
        'new sandbox: init and sidecar run, the old main container has ended',
      'new sandbox: init passed, sidecar runs':
        'sidecar: it runs in a new sandbox, the others have not begun',
      'init passed, sidecar runs, main container has ended':
        'init passed, sidecar runs, main container is to run again',
      'init passed, sidecar and main container run': 'init passed, sidecar and main container run',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartNever`,
    file: phase,
    cases: {
      'nothing known': 'Never: nothing made',
      'all run': 'Never: all run',
      'all have succeeded': 'Never: all have succeeded',
      'all have failed': 'Never: all have failed',
      'one runs, one has succeeded': 'Never: one runs, one has succeeded',
      'one runs, one unknown': 'Never: one runs, one is missing',
      'one runs, one waits': 'Never: one runs, one was made',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartNeverInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'init, Never: nothing made',
      'it runs': 'init, Never: it runs',
      'it failed': 'init, Never: it failed',
      'it waits after a success': 'init, Never: it was made',
      'it waits after a failure': 'init, Never: it failed and the runtime has forgotten it',
      'it waits': 'init, Never: it was made',
      'it succeeded, all run': 'init, Never: it succeeded and the main containers run',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartNeverRestartableInitContainers`,
    file: phase,
    cases: {
      'nothing known': 'sidecar: nothing made',
      'it runs': 'sidecar: it runs',
      'it has ended': 'sidecar: it has ended',
      'it waits after a success': 'sidecar: it has ended',
      'it waits after a failure': 'sidecar: it has failed',
      'it waits': 'sidecar: it was made',
      'started, one of two runs': 'sidecar: it has started, one of two runs',
      'started, all have succeeded': 'sidecar, Never: it has started, all have succeeded',
      'starting again, all have succeeded': 'sidecar, Never: it starts again, all have succeeded',
      'all have succeeded, it too': 'sidecar, Never: all have succeeded, it too',
      'all have succeeded, it failed': 'sidecar, Never: all have succeeded, it has failed',
      ...all(
        'sidecar, Never: all have succeeded, it is in a backoff',
        'all have succeeded, it waits after a success',
        'all have succeeded, it waits after a failure',
      ),
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartOnFailure`,
    file: phase,
    cases: {
      'nothing known': 'OnFailure: nothing made',
      'all run': 'OnFailure: all run',
      'all have succeeded': 'OnFailure: all have succeeded',
      'all have failed': 'OnFailure: all have failed',
      'one runs, one has succeeded': 'OnFailure: one runs, one has succeeded',
      'one runs, one unknown': 'OnFailure: one runs, one is missing',
      'one runs, one waits': 'OnFailure: one runs, one was made',
      'one runs, one in a backoff': 'OnFailure: one runs, one is in a backoff',
    },
  },
  {
    test: `${pods} TestPodPhaseWithContainerRestartPolicy`,
    file: phase,
    cases: {
      'Never, failed': 'own policy Never under Always: failed',
      'OnFailure, failed': 'own policy OnFailure under Always: failed',
      'Always, failed': 'own policy Always under Always: failed',
      'one may run again': 'one may run again, one may not',
      'none may, one failed': 'none may run again, one has failed',
      'none may, all succeeded': 'none may run again, all have succeeded',
    },
  },
  {
    test: `${pods} TestPodPhaseWithContainerRestartPolicyInitContainers`,
    file: phase,
    cases: {
      'Never, failed': 'init, own policy Never under Always: it failed',
      'OnFailure, failed': 'init, own policy OnFailure under Never: it failed',
      'Always, failed': 'sidecar: it has failed',
    },
  },
  {
    test: `${pods} TestPodPhaseWithRestartAllContainers`,
    file: phase,
    cases: {
      'one ended by the rule': ofRestartAll('is Running before it is taken down'),
      'all removed': ofRestartAll('is Running all along without init containers'),
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
        none('a container that was made anew has the status of any other'),
        'restarting all: one runs again',
        'restarting all: one succeeded',
        'restarting all: one failed',
      ),
      'an init container of which nothing is left':
        'an init container of which nothing is left has passed where main containers run',
      'a sidecar of which nothing is left': 'a sidecar of which nothing is left waits',
    },
  },
  {
    test: `${pods} TestConvertToAPIContainerStatusesForResources`,
    file: container,
    cases: {
      'best effort': 'are left out where there are none',
      'just made': 'is being created',
      'just running': 'has started and is ready',
      'just ended': 'says how',
      'with requests and limits': 'are those of the spec',
      resized: ofResize('shows what the containers have, and no condition without a resize'),
    },
  },
  {
    test: `${pods} Test_generateAPIPodStatus`,
    file: status,
    cases: {
      'disrupted and deleted': none('nothing disrupts a pod here but what makes it Failed for good'),
      'ready, running before, being deleted': oneSource,
      'ready, running before': oneSource,
      'a phase of the end stays, Succeeded': 'keeps a pod Succeeded that the runtime has forgotten',
      'a phase of the end stays, Always': 'keeps a pod Failed that was made so, whatever its containers say',
      'a phase of the end stays, Never': 'keeps a pod Succeeded that the runtime has forgotten',
      'Running may become Pending': 'falls back to Pending when the pod is begun anew',
      'the reason stays with the phase': 'says why a pod may not run for now, as long as it is Pending',
      'the reason goes with the phase': 'says why a pod may not run for now, as long as it is Pending',
    },
  },
  {
    test: `${pods} Test_generateAPIPodStatusForInPlaceVPAEnabled`,
    file: status,
    cases: all(
      ofResize('shows what the containers have, and no condition without a resize'),
      'other resources',
      'cpu and memory',
    ),
  },
  {
    test: `${pods} TestGenerateAPIPodStatusHostNetworkPodIPs, TestNodeAddressUpdatesGenerateAPIPodStatusHostNetworkPodIPs`,
    file: status,
    cases: {
      'a pod on the host network': 'gives the addresses of the host to a pod on its network',
      'the node has other addresses now': none('the addresses of the host are asked for with every status'),
    },
  },
  {
    test: `${pods} TestGenerateAPIPodStatusPodIPs`,
    file: status,
    cases: {
      'one or two addresses': 'gives addresses, class and start',
      none: 'gives no address where there is none',
    },
  },
  {
    test: `${generate} TestGenerateContainersReadyCondition, TestGeneratePodReadyCondition`,
    file: status,
    cases: {
      ...all(alwaysThere, 'no statuses', 'none of the statuses', 'a status is missing', 'of a sidecar, too'),
      'no containers': none('a pod has at least one'),
      'all ready': 'all are ready',
      'one not ready': 'one has not passed its readiness probe',
      'the pod has succeeded': 'the pod has succeeded',
      'sidecars ready': 'all are ready, sidecars too',
      'a sidecar missing': 'a sidecar is missing',
      'a sidecar not ready': 'a sidecar is not ready',
      ...all(gates, 'a gate missing', 'a gate closed', 'a gate open', 'two gates', 'a gate and a container'),
    },
  },
  {
    test: `${generate} TestGeneratePodInitializedCondition`,
    file: status,
    cases: {
      'no statuses': alwaysThere,
      'no init containers': 'without init containers',
      'one, not made': 'before the first one has run',
      'two, passed': 'when all have passed',
      'two, one missing': 'when one is missing',
      'two, one not ready': 'while one runs',
      'the pod has succeeded': 'when the pod has succeeded',
      'a sidecar, not started': 'before a sidecar has started',
      'a sidecar, started': 'when a sidecar has started',
      'a sidecar, not started, a main container runs': 'while a sidecar starts again beside a main container',
      'waiting again, a main container has ended': 'when the remains of an init container are gone',
    },
  },
  {
    test: `${generate} TestGeneratePodReadyToStartContainersCondition`,
    file: status,
    cases: {
      nothing: 'without a sandbox',
      'not ready': 'when the sandbox is not ready',
      'ready, no address': 'when the sandbox has no address',
      'ready, an address': 'when the sandbox has an address',
    },
  },
  {
    test: `${generate} TestGenerateAllContainersRestartingCondition`,
    file: status,
    cases: {
      Pending: ofRestartAll('has the condition False before it was asked for'),
      ...all(
        ofRestartAll('has the condition False with the reason once the pod is over'),
        'Failed',
        'Succeeded',
      ),
      ...all(isTakenDown, 'begun', 'cleaning up'),
      'cleaned up': startsAnew,
    },
  },
  {
    test: 'pkg/kubelet/prober/prober_manager_test.go TestUpdatePodStatus, TestUpdatePodStatusWithInitContainers',
    file: container,
    cases: {
      'no probe': 'has started and is ready',
      'readiness failed': 'when its readiness probe fails',
      'readiness passed': 'when its readiness probe has passed',
      'not started': 'before its startup probe has passed',
      started: 'when its startup probe has passed',
      ended: 'says how',
      'an init container that passed': 'an init container that has passed',
      'an init container that runs': 'an init container that runs',
      'a sidecar': 'a sidecar that runs',
      'verdicts from before a restart': at(
        'unit/probes/prober.test.ts',
        'are taken over from before a restart of podd',
      ),
    },
  },
]
