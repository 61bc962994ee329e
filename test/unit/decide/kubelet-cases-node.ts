import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const room = 'component/control/room-and-change.test.ts'
const adoption = 'fault/adoption.test.ts'

/** The kubelet's own end-to-end cases about the host as a whole: shutdown, restart, unknown pods, critical pods, PIDs. */
export const nodeCases: readonly LedgerSection[] = [
  {
    test: 'test/e2e_node/eviction_test.go',
    file: 'e2e/eviction.test.ts',
    cases: {
      InodeEviction: at('unit/decide/node/rank-pods.test.ts', 'tells-inodes'),
      ImageGCNoEviction: 'reclaims-images-first',
      ImageGCTerminatedPodsContainersCleanup: 'reclaims-images-first',
      MemoryAllocatableEviction: 'evicts-over-memory-request',
      MemoryAllocatableEvictionPodLevelResources: at(
        'unit/decide/node/rank-pods.test.ts',
        'pod-level-request',
      ),
      LocalStorageEviction: 'spares-critical-on-disk',
      ...all(
        at('unit/control/node-pressure.test.ts', 'soft-threshold-grace'),
        'LocalStorageSoftEviction',
        'LocalStorageSoftEvictionNotOverwriteTerminationGracePeriodSeconds',
      ),
      LocalStorageCapacityIsolationEviction: at(
        'unit/control/volume-limits.test.ts',
        'ends-over-storage-limit',
      ),
      ...all(
        at('unit/decide/node/rank-pods.test.ts', 'ranks-by-priority'),
        'PriorityMemoryEvictionOrdering',
        'PriorityMemoryEvictionOrderingPodLevelResources',
        'PriorityLocalStorageEvictionOrdering',
      ),
      PriorityPidEvictionOrdering: at('unit/decide/node/rank-pods.test.ts', 'ranks-by-processes'),
      'the DisruptionTarget condition of the evicted pod': 'spares-critical-on-disk',
    },
  },
  {
    // logind's signals are left out: systemd calls `podd drain` (packaging/podd-drain.service), and so may anything else.
    test: 'test/e2e_node/node_shutdown_linux_test.go',
    file: 'e2e/drain.test.ts',
    cases: {
      ...all(
        'drains-by-priority',
        'the DisruptionTarget condition of the pods that were ended',
        'various grace periods, critical pods last',
        'various grace periods, by priority',
      ),
      'a shutdown that is called off': at('component/control/drain.test.ts', 'undone-while-pod-ends'),
      'after a restart of dbus': none('podd does not listen to dbus'),
    },
  },
  {
    test: 'test/e2e_node/restart_test.go',
    file: room,
    cases: {
      'addresses of pods, when the runtime is killed': at(
        'fault/containerd-killed.test.ts',
        'started-again-pods-live',
      ),
      'the room of pods that have ended': 'counts-no-finished-pod',
      'a pod that has ended and is deleted': 'removes-what-ended-meanwhile',
      'a pod that could not be admitted, created and deleted meanwhile': none(
        'a manifest that comes and goes while podd is down leaves nothing behind: there is no API server that kept it',
      ),
      'a pod that could not be admitted any more, deleted meanwhile': 'ends-pod-that-has-no-room',
    },
  },
  {
    test: 'test/e2e_node/unknown_pods_test.go',
    file: adoption,
    cases: {
      'a static pod whose manifest went meanwhile': 'ends-pod-file-went',
      'a pod of the API that was force-deleted meanwhile': 'ends-nobody-wants-any',
    },
  },
  {
    test: 'test/e2e_node/lock_contention_linux_test.go',
    file: 'component/server/instance-lock.test.ts',
    cases: {
      'who wants the lock': 'one-holder-of-lock',
      'stops for who wants the lock': none(
        'the kubelet does so with --exit-on-lock-contention; a podd keeps its directories until it ends, and a second one refuses to start',
      ),
    },
  },
  {
    test: 'test/e2e_node/critical_pod_test.go',
    file: 'e2e/eviction.test.ts',
    cases: all(
      none(
        'podd evicts no pod to admit another: which pods shall run on the one host is what its manifests say, and a pod that does not fit waits, and its status says for what',
      ),
      'a critical pod preempts others',
      'the DisruptionTarget condition of the preempted pod',
      'a critical pod with pod-level resources preempts others',
    ),
  },
  {
    test: 'test/e2e_node/pids_test.go',
    file: 'e2e/resources.test.ts',
    cases: { 'pids.max of a pod': 'limits-processes-of-pod' },
  },
  {
    test: 'test/e2e_node/system_node_critical_test.go',
    file: 'e2e/eviction.test.ts',
    cases: { 'is not evicted upon DiskPressure': 'spares-critical-on-disk' },
  },
]
