import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const workers = 'pkg/kubelet/pod_workers_test.go'
const node = 'test/e2e_node/container_lifecycle_test.go'
const life = 'component/control/pod-life.test.ts'
const inits = 'unit/decide/init-containers.test.ts'
const ofActions = (title: string) => at('unit/decide/compute-pod-actions.test.ts', title)
const e2eInits = (title: string) => at('e2e/init-containers.test.ts', title)
const e2eEnding = (title: string) => at('e2e/ending.test.ts', title)
const e2eUpdates = (title: string) => at('e2e/updates.test.ts', title)
const adoption = (title: string) => at('fault/adoption.test.ts', title)

const noQueue = none('a worker of podd has one slot and no queue, and its state is no set of flags')
const comesBack = at(life, 'and comes back while it still ends, starts when it has ended')
const orphan = adoption('ends what nobody wants any more, with its preStop hook, although its record is lost')
const endsOnce = at(
  'unit/decide/properties.test.ts',
  'is told nothing more than to stop and to go once it ends',
)
const forgotten = ofActions('starts nothing of a finished pod that the runtime has forgotten')
const newImage = all(
  ofActions('replaces a container whose image changed, once the new one is there'),
  'Always',
  'OnFailure',
)
const policies = ['Always', 'OnFailure', 'Never'] as const
const gatesStart = at(inits, 'waits for the one that runs')
const sidecarImage = at(inits, 'replaces a sidecar whose image changed, and holds nothing up for it')
const sidecarEnds = at(inits, 'restarts sidecars that ended before the one it has come to')
const sidecarBeside = at(
  inits,
  'restarts a sidecar beside running main containers although the pod runs once',
)
const heldImage = ofActions('says what a container waits for, and until when')
const reverse = e2eInits('ends sidecars after the main container, in reverse order')
const sidecarFailure = at(
  'unit/decide/derive-phase.test.ts',
  'sidecar, Never: all have succeeded, it has failed',
)
const byForce = e2eEnding('kills by force what ignores SIGTERM for its grace')
const keepsRunning = adoption('restarts nothing and forgets nothing after kill -9')

/** The kubelet's pod workers, and its end-to-end tests of containers' lives. */
export const lifecycleCases: readonly LedgerSection[] = [
  {
    test: `${workers} TestUpdatePod`,
    file: life,
    cases: {
      'a new pod': 'runs, is Ready, and is recorded before it runs',
      'again under the UID of one that ends': comesBack,
      'new, with an orphan beside it': adoption('takes up pods whose records are lost, by their manifests'),
      'an update deletes it': 'leaves nothing behind',
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
      TestUpdatePodParallel: none('the newest manifest wins by there being one slot; see base/wake-slot.ts'),
      TestUpdatePodForRuntimePod: orphan,
      TestUpdatePodForTerminatedRuntimePod: 'stays gone, though events of its end come late',
      TestUpdatePodDoesNotForgetSyncPodKill: endsOnce,
      TestTerminalPhaseTransition: ofActions('stops what is left of a pod that has ended'),
      TestStaticPodExclusion: comesBack,
      Test_removeTerminatedWorker: noQueue,
      TestCompleteWork_Enqueue: noQueue,
      TestCompleteWork_PendingUpdate: noQueue,
      TestSyncKnownPods: adoption('ends a pod whose file went while podd was not there'),
      TestKillPodNowFunc: 'leaves nothing behind',
      Test_allowPodStart: comesBack,
      Test_calculateEffectiveGracePeriod: e2eEnding('lets a shorter grace cut an ending short'),
      TestFakePodWorkers: none('about a fake of the kubelet itself'),
    },
  },
  {
    test: `${node} regular containers, image updated`,
    file: 'unit/decide/compute-pod-actions.test.ts',
    cases: {
      ...newImage,
      Never: 'replaces a container whose image changed under Never too',
      'the others run on': e2eUpdates('restarts only the container whose image changed, in the same pod'),
      ...all(gatesStart, ...policies.map((policy) => `while an init container runs, ${policy}`)),
      ...all(
        'replaces a container that fails its liveness probe while it waits for its new image',
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
      'one after the other': e2eInits('runs init containers one after the other, then the main ones'),
      'a failed one starts nothing': e2eInits('fails a pod under Never whose init container fails'),
      'before postStart of a main container': e2eEnding(
        'runs postStart before the container counts as running, and preStop before SIGTERM',
      ),
      'a failing main container, Always': at(
        'e2e/restarts.test.ts',
        'restarts a crashed container at once, then after its backoff',
      ),
      'postStart of the first before the second starts': e2eEnding(
        'runs postStart before the container counts as running, and preStop before SIGTERM',
      ),
      ...all(heldImage, 'bad image: told', 'bad image: not started', 'bad image: nothing else started'),
      'not run again when a main container is': 'runs none again once a main container was made',
      'the grace': byForce,
      'the grace, with a long preStop': e2eEnding(
        'counts preStop towards the grace, and leaves SIGTERM two seconds',
      ),
      'preStop after a failed startup probe': at(
        'e2e/probes.test.ts',
        'protects a slow start by a startup probe, and kills one that never comes up',
      ),
      'preStop after a failed liveness probe': at(
        'e2e/probes.test.ts',
        "restarts a container that fails its liveness probe, with the probe's own grace",
      ),
      'readiness during preStop, no liveness': at(
        'unit/probes/prober.test.ts',
        'has liveness and startup stopped, at once and quietly, and readiness going on',
      ),
      'no liveness of sidecars during preStop': at(
        'unit/probes/prober.test.ts',
        'has liveness and startup stopped, at once and quietly, and readiness going on',
      ),
      ...all('runs none again once a main container was made', 'image of a passed one updated'),
      // The kubelet leaves it alone in a pod of the API's, and makes a static pod anew.
      'image of a running one updated': 'replaces a running one whose image changed',
      'image updated while it ends': endsOnce,
    },
  },
  {
    test: `${node} reboots and restarts of the kubelet`,
    file: inits,
    cases: {
      'in order after a reboot': 'runs them all again in a new sandbox',
      'in order after a reboot, with sidecars': 'starts a sidecar anew in a new sandbox',
      'Pending until it is initialized again': at(
        'unit/decide/derive-phase.test.ts',
        'sidecar: it runs in a new sandbox, the others have not begun',
      ),
      'no passed init container after a restart': keepsRunning,
      'no passed init container after a restart, remains gone':
        'runs none again once a main container was made',
      'the same while one runs': keepsRunning,
      'the same while one runs, remains gone': 'does not run those again whose remains are gone',
      'an update during a reboot': 'begins with the first one in a new sandbox',
      'an update during a restart': 'gets the new image before it stops a sidecar whose image changed',
      ...all(
        at('unit/probes/prober.test.ts', 'are taken over from before a restart of podd'),
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
      finishes: e2eInits('ends sidecars when a pod that runs once is done'),
      ...all(
        'starts the next one when one has passed',
        'the first before the first sidecar',
        'the second before the second sidecar',
        'the third before the main container',
      ),
      ...all(
        'starts what follows a sidecar that has started',
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
      'it runs on':
        policy === 'Always'
          ? 'starts the main containers once the sidecars have started'
          : e2eInits('ends sidecars when a pod that runs once is done'),
      'it is not restarted': 'starts the main containers once the sidecars have started',
      'the main container does its work': 'starts the main containers once the sidecars have started',
      'new image': sidecarImage,
      ...all(heldImage, 'bad image: told', 'bad image: not started', 'bad image: nothing else started'),
      ...all(sidecarEnds, 'ends well, before the main container', 'fails, before the main container'),
      ...all(sidecarBeside, 'ends well, beside the main container', 'fails, beside the main container'),
      ...all(
        policy === 'Never'
          ? 'stops the pod when one fails under Never'
          : 'runs the one that failed again under OnFailure',
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
      'startup probes gate': e2eInits('starts what follows a sidecar only when its startup probe has passed'),
      ...all(
        'replaces a sidecar that fails its startup probe, and holds up what follows',
        ...policies.map((policy) => `image updated after a failed startup probe, ${policy}`),
        'preStop after a failed startup probe',
      ),
      'preStop after a failed liveness probe, the next one starts':
        'replaces a sidecar that fails its liveness probe, and holds nothing up for it',
      ...all(
        'replaces a sidecar that fails its liveness probe while it waits for its new image',
        ...policies.map((policy) => `image updated after a failed liveness probe, ${policy}`),
      ),
      'one that fails first and then starts': e2eInits(
        'restarts a sidecar that fell, beside the main container',
      ),
    },
  },
  {
    test: `${node} endings with sidecars`,
    file: 'unit/decide/ending.test.ts',
    cases: {
      'after the main container, in reverse order': reverse,
      ...all(endsOnce, ...policies.map((policy) => `image updated meanwhile, ${policy}`)),
      'preStop hooks that do not end': e2eEnding(
        'counts preStop towards the grace, and leaves SIGTERM two seconds',
      ),
      'preStop hooks at the same time': e2eInits('runs all preStop hooks at once, before anything ends'),
      'ended while initializing': 'stops an init container that runs in the first wave',
      'one has not started': 'makes no waves of what has ended',
      ...all(sidecarFailure, 'one ends with a failure', 'one is killed after the grace', 'a preStop fails'),
      ...all(byForce, 'the main container is killed after the grace', 'its preStop takes too long'),
      'a preStop of a sidecar takes too long': at(
        'component/control/pod-ending.test.ts',
        'wait for nobody when the grace is over',
      ),
    },
  },
]
