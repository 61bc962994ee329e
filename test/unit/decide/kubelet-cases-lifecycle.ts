import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const workers = 'pkg/kubelet/pod_workers_test.go'
const node = 'test/e2e_node/container_lifecycle_test.go'
const life = 'component/control/pod-life.test.ts'
const inits = 'unit/decide/plan/init-containers.test.ts'
const ofActions = (id: string) => at('unit/decide/plan/compute-pod-actions.test.ts', id)
const e2eInits = (id: string) => at('e2e/init-containers.test.ts', id)
const e2eEnding = (id: string) => at('e2e/ending.test.ts', id)
const e2eUpdates = (id: string) => at('e2e/updates.test.ts', id)
const adoption = (id: string) => at('fault/adoption.test.ts', id)

const noQueue = none('a worker of podd has one slot and no queue, and its state is no set of flags')
const comesBack = at(life, 'comes-back-still-ends')
const orphan = adoption('ends-nobody-wants-any')
const endsOnce = at('unit/decide/plan/properties.test.ts', 'told-nothing-more-than')
const forgotten = ofActions('starts-nothing-finished-pod')
const newImage = all(ofActions('replaces-container-image-changed'), 'Always', 'OnFailure')
const policies = ['Always', 'OnFailure', 'Never'] as const
const gatesStart = at(inits, 'waits-for-the-one-that-runs')
const sidecarImage = at(inits, 'replaces-sidecar-image-changed')
const sidecarEnds = at(inits, 'restarts-sidecars-ended-before')
const sidecarBeside = at(inits, 'restarts-sidecar-beside-running')
const heldImage = ofActions('says-container-waits-until')
const podEnding = (id: string) => at('component/control/pod-ending.test.ts', id)
const reverse = podEnding('ends-sidecars-after-main')
const sidecarFailure = at('unit/decide/status/derive-phase.test.ts', 'sidecar-never-succeeded-failed')
const byForce = e2eEnding('grace')
const keepsRunning = adoption('restarts-nothing-forgets-nothing')

/** The kubelet's pod workers, and its end-to-end tests of containers' lives. */
export const lifecycleCases: readonly LedgerSection[] = [
  {
    test: `${workers} TestUpdatePod`,
    file: life,
    cases: {
      'a new pod': 'runs-ready-recorded-before',
      'again under the UID of one that ends': comesBack,
      'new, with an orphan beside it': adoption('takes-up-pods-records'),
      'an update deletes it': 'leaves-nothing-behind',
      evicted: none('not yet: eviction'),
      'terminal, never started': forgotten,
      'terminal, and the runtime agrees': forgotten,
      'an orphan': orphan,
      'an orphan that is not to be killed': none('orphans come to podd only to be ended'),
    },
  },
  {
    test: `${workers} other tests`,
    file: life,
    cases: {
      TestUpdatePodParallel: none('the newest manifest wins by there being one slot; see base/waits.ts'),
      TestUpdatePodForRuntimePod: orphan,
      TestUpdatePodForTerminatedRuntimePod: 'stays-gone-though-events',
      TestUpdatePodDoesNotForgetSyncPodKill: endsOnce,
      TestTerminalPhaseTransition: ofActions('stops-left-pod-ended'),
      TestStaticPodExclusion: comesBack,
      Test_removeTerminatedWorker: noQueue,
      TestCompleteWork_Enqueue: noQueue,
      TestCompleteWork_PendingUpdate: noQueue,
      TestSyncKnownPods: adoption('ends-pod-file-went'),
      TestKillPodNowFunc: 'leaves-nothing-behind',
      Test_allowPodStart: comesBack,
      Test_calculateEffectiveGracePeriod: e2eEnding('lets-shorter-grace-cut'),
      TestFakePodWorkers: none('about a fake of the kubelet itself'),
    },
  },
  {
    test: `${node} regular containers, image updated`,
    file: 'unit/decide/plan/compute-pod-actions.test.ts',
    cases: {
      ...newImage,
      Never: 'replaces-container-image-changed-under',
      'the others run on': e2eUpdates('restarts-only-container-image'),
      ...all(gatesStart, ...policies.map((policy) => `while an init container runs, ${policy}`)),
      ...all(
        'replaces-container-fails-liveness-probe',
        'after a failed startup probe, Always',
        'after a failed startup probe, OnFailure',
        'after a failed liveness probe, Always',
        'after a failed liveness probe, OnFailure',
      ),
      ...all(endsOnce, ...policies.map((policy) => `while it ends, ${policy}`)),
    },
  },
  {
    test: `${node} init and regular containers`,
    file: inits,
    cases: {
      'one after the other': e2eInits('init-containers'),
      'a failed one starts nothing': 'stops-pod-fails-under',
      'before postStart of a main container': e2eEnding('hooks'),
      'a failing main container, Always': at('e2e/restarts.test.ts', 'restarts-crashed-container-once'),
      'postStart of the first before the second starts': e2eEnding('hooks'),
      ...all(heldImage, 'bad image: told', 'bad image: not started', 'bad image: nothing else started'),
      'not run again when a main container is': 'runs-none-again-once',
      'the grace': byForce,
      'the grace, with a long preStop': e2eEnding('counts-prestop-towards-grace'),
      'preStop after a failed startup probe': at('e2e/probes.test.ts', 'startup'),
      'preStop after a failed liveness probe': at('e2e/probes.test.ts', 'liveness'),
      'readiness during preStop, no liveness': at(
        'unit/control/prober.test.ts',
        'liveness-startup-stopped-once',
      ),
      'no liveness of sidecars during preStop': at(
        'unit/control/prober.test.ts',
        'liveness-startup-stopped-once',
      ),
      ...all('runs-none-again-once', 'image of a passed one updated'),
      // The kubelet leaves it alone in a pod of the API's, and recreates a static pod.
      'image of a running one updated': 'replaces-running-image-changed',
      'image updated while it ends': endsOnce,
    },
  },
  {
    test: `${node} reboots and restarts of the kubelet`,
    file: inits,
    cases: {
      'in order after a reboot': 'runs-them-again-new',
      'in order after a reboot, with sidecars': 'starts-sidecar-anew-new',
      'Pending until it is initialized again': at(
        'unit/decide/status/derive-phase.test.ts',
        'sidecar-runs-new-sandbox',
      ),
      'no passed init container after a restart': keepsRunning,
      'no passed init container after a restart, remains gone': 'runs-none-again-once',
      'the same while one runs': keepsRunning,
      'the same while one runs, remains gone': 'does-not-run-those',
      'an update during a reboot': 'begins-first-new-sandbox',
      'an update during a restart': 'gets-new-image-before',
      ...all(
        at('unit/control/prober.test.ts', 'taken-over-before-restart'),
        'status stays, startup probe',
        'status stays, readiness probe',
        'status stays, both',
        'status stays, several containers',
        'status stays, a sidecar',
      ),
      'status stays, no probe': keepsRunning,
    },
  },
  {
    test: `${node} sidecars among init containers`,
    file: inits,
    cases: {
      finishes: 'stops-sidecars-once-main',
      ...all(
        'starts-next-passed',
        'the first before the first sidecar',
        'the second before the second sidecar',
        'the third before the main container',
      ),
      ...all(
        'starts-follows-sidecar-started',
        'the first sidecar beside the second init container',
        'the second sidecar before the third init container',
        'both sidecars beside the third',
        'both sidecars beside the main container',
      ),
      ...all(sidecarImage, ...policies.map((policy) => `image updated while others initialize, ${policy}`)),
    },
  },
  ...policies.map((policy): LedgerSection => ({
    test: `${node} a sidecar under ${policy}`,
    file: inits,
    cases: {
      'it runs on': policy === 'Always' ? 'starts-main-containers-once' : 'stops-sidecars-once-main',
      'it is not restarted': 'starts-main-containers-once',
      'the main container does its work': 'starts-main-containers-once',
      'new image': sidecarImage,
      ...all(heldImage, 'bad image: told', 'bad image: not started', 'bad image: nothing else started'),
      ...all(sidecarEnds, 'ends well, before the main container', 'fails, before the main container'),
      ...all(sidecarBeside, 'ends well, beside the main container', 'fails, beside the main container'),
      ...all(
        policy === 'Never' ? 'stops-pod-fails-under' : 'runs-failed-again-under-onfailure',
        'an init container before it fails',
        'an init container after it fails',
        'it does not start after a failed init container',
      ),
    },
  })),
  {
    test: `${node} probes of sidecars`,
    file: inits,
    cases: {
      'startup probes gate': at('component/control/probed-pods.test.ts', 'starts-follows-sidecar-only'),
      ...all(
        'replaces-sidecar-fails-startup',
        ...policies.map((policy) => `image updated after a failed startup probe, ${policy}`),
        'preStop after a failed startup probe',
      ),
      'preStop after a failed liveness probe, the next one starts': 'replaces-sidecar-fails-liveness',
      ...all(
        'replaces-sidecar-fails-liveness-probe',
        ...policies.map((policy) => `image updated after a failed liveness probe, ${policy}`),
      ),
      'one that fails first and then starts': e2eInits('sidecar'),
    },
  },
  {
    test: `${node} endings with sidecars`,
    file: 'unit/decide/plan/ending.test.ts',
    cases: {
      'after the main container, in reverse order': reverse,
      ...all(endsOnce, ...policies.map((policy) => `image updated meanwhile, ${policy}`)),
      'preStop hooks that do not end': e2eEnding('counts-prestop-towards-grace'),
      'preStop hooks at the same time': e2eInits('runs-prestop-hooks-once'),
      'ended while initializing': 'stops-init-container-runs',
      'one has not started': 'makes-no-waves-ended',
      ...all(sidecarFailure, 'one ends with a failure', 'one is killed after the grace', 'a preStop fails'),
      ...all(byForce, 'the main container is killed after the grace', 'its preStop takes too long'),
      'a preStop of a sidecar takes too long': podEnding('wait-nobody-grace-over'),
    },
  },
]
