import { at } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const e2e = (name: string) => `e2e/${name}.test.ts`
const inits = (title: string) => at(e2e('init-containers'), title)
const restarts = (title: string) => at(e2e('restarts'), title)
const updates = (title: string) => at(e2e('updates'), title)
const ending = (title: string) => at(e2e('ending'), title)
const life = (title: string) => at(e2e('pod-life'), title)
const probes = (title: string) => at(e2e('probes'), title)
const adoption = (title: string) => at('fault/adoption.test.ts', title)

/** What podd promises of a pod's life, and which test shows it: on real containerd, where that can be made to do it. */
export const lifecycleProofs: readonly LedgerSection[] = [
  {
    test: 'the loop and the workers',
    file: e2e('pod-life'),
    cases: {
      'added and removed': 'runs a dropped pod, and leaves nothing of it when its file goes',
      'changed, in place or not': 'takes labels in place, and replaces the pod for anything else',
      'the runtime goes away and comes back': at(
        'fault/containerd-killed.test.ts',
        'is started again, and the pods live on',
      ),
      'nothing is cleaned up before all sources have spoken': at(
        'fault/manifest-directory.test.ts',
        'keeps the pods that it has records of when neither it nor its last good copy was there at the start',
      ),
      'the grace can only shrink': ending('lets a shorter grace cut an ending short'),
      'a sync in flight is told to stop': ending(
        'starts nothing more of a pod that is removed while it initializes',
      ),
      'added again while it ends': updates(
        'starts a pod that was added again while it ended, after that end',
      ),
      'orphans, with what stands in their annotations': adoption(
        'ends what nobody wants any more, with its preStop hook, although its record is lost',
      ),
    },
  },
  {
    test: 'what a pod needs next',
    file: e2e('init-containers'),
    cases: {
      'a dead sandbox': updates('makes a sandbox that died anew, with the next attempt'),
      'init containers in order': 'runs init containers one after the other, then the main ones',
      'init containers again in a new sandbox': 'begins anew with the init containers in a new sandbox',
      'sidecars gate': 'starts what follows a sidecar only when its startup probe has passed',
      'sidecars restart': 'restarts a sidecar that fell, beside the main container',
      'ephemeral containers before the rest':
        'starts an ephemeral container while an init container still runs',
      'ephemeral containers once': updates(
        'starts an added ephemeral container in the running pod, and never again',
      ),
      Always: restarts('runs a container again that ended well, under Always'),
      OnFailure: restarts('runs a pod under OnFailure until it succeeds'),
      "a container's own policy and rules": restarts("follows a container's own rules for its exit code"),
      'the rule for all': restarts('restarts all containers of a pod in its sandbox when a rule asks for it'),
      'another image': updates('restarts only the container whose image changed, in the same pod'),
      'liveness fails': probes(
        "restarts a container that fails its liveness probe, with the probe's own grace",
      ),
      'startup fails': probes('protects a slow start by a startup probe, and kills one that never comes up'),
      'a container that the runtime lost track of': at(
        'component/control/runtime-trouble.test.ts',
        'that the runtime lost track of is stopped before its successor starts',
      ),
      'no new sandbox for what has finished': restarts(
        'leaves finished pods finished when it is started again',
      ),
      'a resize in place': at(e2e('resize'), 'gives a running container more and less, and its pod with it'),
      resizePolicy: at(e2e('resize'), 'restarts the container whose policy asks for it, and no other'),
      'a memory limit below usage': at(e2e('resize'), 'refuses a memory limit below what is in use'),
    },
  },
  {
    test: 'updates',
    file: e2e('updates'),
    cases: {
      'make before break': 'keeps the old pod running until the new one could start',
      'a version that is not admitted':
        'keeps the old pod running while the host has no room for the new one',
      'a version that can not be pulled, in place':
        'keeps the old image running when only the tag is mistyped, whatever ends its container',
      'the old grace, then at once': 'lets a replaced pod have its grace, and starts the new one right after',
      'a host port is waited for': 'has a pod wait for a host port that another one holds',
      'a host port is handed over': 'hands a host port over when the pod that holds it is replaced',
    },
  },
  {
    test: 'endings',
    file: e2e('ending'),
    cases: {
      'preStop inside the grace, and two seconds':
        'counts preStop towards the grace, and leaves SIGTERM two seconds',
      'sidecars last, in reverse': inits('ends sidecars after the main container, in reverse order'),
      'preStop of all at once': inits('runs all preStop hooks at once, before anything ends'),
      'the grace of a probe': probes(
        "restarts a container that fails its liveness probe, with the probe's own grace",
      ),
      activeDeadlineSeconds: restarts('ends a pod that is active for longer than its deadline'),
      'by force after the grace': 'kills by force what ignores SIGTERM for its grace',
      'a podd killed in the middle': adoption(
        'goes on with an ending that %s broke off, by its deadline, and runs no preStop twice',
      ),
      'termination messages': restarts('reads termination messages by both policies'),
    },
  },
  {
    test: 'hooks',
    file: e2e('ending'),
    cases: {
      exec: 'runs postStart before the container counts as running, and preStop before SIGTERM',
      'HTTP and sleep': 'runs hooks by HTTP and by waiting',
      'postStart holds the next container up':
        'starts a container only when postStart of the one before has ended',
      'postStart fails': 'kills a container whose postStart fails, and does not tell what the hook said',
      'preStop fails': 'ends a container although its preStop fails',
    },
  },
  {
    test: 'backoff',
    file: e2e('restarts'),
    cases: {
      'a free first restart, then the cap': 'restarts a crashed container at once, then after its backoff',
      'of images apart from it, and a change clears both': updates(
        'counts crashes and failed pulls apart, and forgets both when the manifest changes',
      ),
      'over a restart of podd': adoption('restarts nothing and forgets nothing after kill -9'),
    },
  },
  {
    test: 'status',
    file: e2e('restarts'),
    cases: {
      'phase, conditions, ids': life('runs a dropped pod, and leaves nothing of it when its file goes'),
      'over a restart of podd': 'leaves finished pods finished when it is started again',
      'over a reboot': 'after a reboot, runs what ran, and nothing that had finished',
      'the pod on the network of the host': life('runs in the network of the host when asked to'),
      'a pod that may not run for now': updates('has a pod wait for a host port that another one holds'),
    },
  },
  {
    test: 'reaching in',
    file: e2e('reaching-in'),
    cases: {
      exec: 'runs a command as the container runs its own',
      'the end of standard input': 'passes input on, and its end',
      'a terminal': 'is a terminal in raw mode, as large as the one before which one sits',
      'its size': 'follows the size of the terminal',
      'port-forward': 'forwards ports to the loopback device of the pod',
      restart: 'restarts containers in place, at once',
      top: 'shows what pods use',
    },
  },
]
