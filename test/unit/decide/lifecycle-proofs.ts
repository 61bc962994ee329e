import { at } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const e2e = (name: string) => `e2e/${name}.test.ts`
const control = (name: string) => `component/control/${name}.test.ts`
const inits = (id: string) => at(e2e('init-containers'), id)
const restarts = (id: string) => at(e2e('restarts'), id)
const updates = (id: string) => at(e2e('updates'), id)
const ending = (id: string) => at(e2e('ending'), id)
const life = (id: string) => at(e2e('pod-life'), id)
const probes = (id: string) => at(e2e('probes'), id)
const adoption = (id: string) => at('fault/adoption.test.ts', id)

/**
 * What podd promises of a pod's life, and which test shows it: on real containerd where that has a part in it, else by a
 * decider's table or the fake runtime.
 */
export const lifecycleProofs: readonly LedgerSection[] = [
  {
    test: 'the loop and the workers',
    file: e2e('pod-life'),
    cases: {
      'added and removed': 'dropped-pod',
      'changed, in place or not': 'takes-labels-place-replaces',
      'the runtime goes away and comes back': at(
        'fault/containerd-killed.test.ts',
        'started-again-pods-live',
      ),
      'nothing is cleaned up before all sources have spoken': at(
        'fault/manifest-directory.test.ts',
        'keeps-pods-records-neither',
      ),
      'the grace can only shrink': ending('lets-shorter-grace-cut'),
      'a sync in flight is told to stop': at('unit/decide/plan/ending.test.ts', 'stops-init-container-runs'),
      'added again while it ends': at(control('pod-life'), 'comes-back-still-ends'),
      'orphans, with what stands in their annotations': adoption('ends-nobody-wants-any'),
    },
  },
  {
    test: 'what a pod needs next',
    file: e2e('init-containers'),
    cases: {
      'a dead sandbox': at(control('runtime-trouble'), 'makes-sandbox-died-anew'),
      'init containers in order': 'init-containers',
      'init containers again in a new sandbox': 'begins-anew-init-containers',
      'sidecars gate': at(control('probed-pods'), 'starts-follows-sidecar-only'),
      'sidecars restart': 'sidecar',
      'ephemeral containers before the rest': at(
        'unit/decide/plan/init-containers.test.ts',
        'starts-ephemeral-container-init',
      ),
      'ephemeral containers once': updates('starts-added-ephemeral-container'),
      Always: at('unit/decide/plan/compute-pod-actions.test.ts', 'restarts-ended-under-always'),
      OnFailure: restarts('runs-pod-under-onfailure'),
      "a container's own policy and rules": restarts('restart-rules'),
      'the rule for all': restarts('restarts-containers-pod-sandbox'),
      'another image': updates('restarts-only-container-image'),
      'liveness fails': probes('liveness'),
      'startup fails': probes('startup'),
      'a container that the runtime lost track of': at(
        control('runtime-trouble'),
        'runtime-lost-track-stopped',
      ),
      'no new sandbox for what has finished': restarts('leaves-finished-pods-finished'),
      'a resize in place': at(e2e('resize'), 'gives-running-container-more'),
      resizePolicy: at(e2e('resize'), 'resize-policy'),
      'a memory limit below usage': at(e2e('resize'), 'refuses-memory-limit-below'),
    },
  },
  {
    test: 'updates',
    file: e2e('updates'),
    cases: {
      'make before break': 'keeps-old-pod-running',
      'a version that is not admitted': at(control('room-and-change'), 'keeps-old-pod-running-host'),
      'a version that can not be pulled, in place': 'keeps-old-image-running',
      'the old grace, then at once': 'lets-replaced-pod-grace',
      'a host port is waited for': at(control('pod-updates'), 'pod-wait-host-port'),
      'a host port is handed over': 'swaps-host-ports',
    },
  },
  {
    test: 'endings',
    file: e2e('ending'),
    cases: {
      'preStop inside the grace, and two seconds': 'counts-prestop-towards-grace',
      'sidecars last, in reverse': at(control('pod-ending'), 'ends-sidecars-after-main'),
      'preStop of all at once': inits('runs-prestop-hooks-once'),
      'the grace of a probe': probes('liveness'),
      activeDeadlineSeconds: restarts('active-deadline'),
      'by force after the grace': 'grace',
      'a podd killed in the middle': adoption('goes-on-ending-s'),
      'termination messages': restarts('termination-messages'),
    },
  },
  {
    test: 'hooks',
    file: e2e('ending'),
    cases: {
      exec: 'hooks',
      'HTTP and sleep': 'http-and-sleep-hooks',
      'postStart holds the next container up': at(control('pod-ending'), 'starts-container-only-poststart'),
      'postStart fails': 'kills-container-poststart-fails',
      'preStop fails': at(control('pod-ending'), 'ends-container-although-prestop'),
    },
  },
  {
    test: 'backoff',
    file: e2e('restarts'),
    cases: {
      'a free first restart, then the cap': 'restarts-crashed-container-once',
      'of images apart from it, and a change clears both': at(
        control('pod-updates'),
        'counts-crashes-failed-pulls',
      ),
      'over a restart of podd': adoption('restarts-nothing-forgets-nothing'),
    },
  },
  {
    test: 'status',
    file: e2e('restarts'),
    cases: {
      'phase, conditions, ids': life('dropped-pod'),
      'over a restart of podd': 'leaves-finished-pods-finished',
      'over a reboot': 'after-reboot-runs-ran',
      'the pod on the network of the host': life('host-network'),
      'a pod that may not run for now': at(control('pod-updates'), 'pod-wait-host-port'),
    },
  },
  {
    test: 'reaching in',
    file: e2e('reaching-in'),
    cases: {
      exec: 'runs-command-container-runs',
      'the end of standard input': 'passes-input-on-end',
      'a terminal': 'terminal-raw-mode-large',
      'its size': 'follows-size-terminal',
      'port-forward': 'forwards-ports-loopback-device',
      restart: 'restarts-containers-place-once',
      top: 'shows-pods-use',
    },
  },
]
