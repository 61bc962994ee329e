import { silentLogger } from '../../src/base/logger.ts'
import type { ImageCredentials } from '../../src/control/images/image-access.ts'
import type { PodHost } from '../../src/control/pod/host.ts'
import type { MemoryEnv } from '../../src/control/pod/memory.ts'
import { ObjectStore } from '../../src/control/serving/object-store.ts'
import type { ObjectViews } from '../../src/control/serving/object-store.ts'
import { HostShutdown } from '../../src/host/shutdown.ts'
import { execLimits } from '../../src/translate/environment.ts'
import { ManualClock } from './manual-clock.ts'
import { plainObjectRules } from './object-rules.ts'
import { plainResources } from './pod-builders.ts'

/** Cgroups that accept every pod, and in which nothing runs. */
export const plainCgroups: PodHost['cgroups'] = {
  ensure: async (uid) => `/kubepods/pod${uid}`,
  remove: async () => {},
  countOomKills: async () => undefined,
  isRemoved: async () => false,
  hasOomKills: async () => false,
  hasProcesses: async () => undefined,
  killProcesses: async () => 0,
}

/** Pulls without credentials, and every pod may use every image. */
export const noCredentials: ImageCredentials = {
  candidates: async () => [],
  mayUse: async () => true,
  begin: async () => {},
  end: async () => {},
}

/**
 * A host on which every pod gets what it asks for and nothing is written: whatever acting for a pod needs, but for
 * the runtime and what runs hooks. A test spreads it and overrides what it is about, so that only this file knows
 * all that a host has.
 */
export function plainPodHost(objects: ObjectViews): Omit<PodHost, 'calls' | 'hooks'> {
  return {
    cgroups: plainCgroups,
    killShim: () => undefined,
    volumes: {
      prepare: async ({ pod }) =>
        new Map(
          pod.spec.volumes.flatMap(({ name, image }) =>
            image === undefined
              ? []
              : [[name, { hostPath: '', selinuxRelabel: false, image: image.reference ?? '' }] as const],
          ),
        ),
      listClaimOwners: async () => new Map(),
      readFile: async () => undefined,
      checkHostPaths: async () => {},
      checkMountKinds: async () => {},
      whenThere: () => new Promise(() => {}),
      measureEmptyDir: async () => 0,
      makeMountPoint: async () => {},
      checkMountSharing: async () => {},
      bindSubPath: async ({ subPath }) => `/pods/sub/${subPath}`,
      writeHostsFile: async (uid) => `/pods/${uid}/hosts`,
      lastHostsFile: async () => undefined,
      refreshHostsFile: async () => true,
      writeResolvConf: async (uid) => `/pods/${uid}/resolv.conf`,
      removeResolvConf: async () => {},
      refreshResolvConf: async () => true,
      makeTerminationLog: async (uid, container) => `/pods/${uid}/${container}`,
      readTerminationLog: async () => '',
      removeTerminationLog: async () => {},
      userRange: () => ({ firstId: 65_536, length: 65_536 }),
      teardown: async () => {},
    },
    logs: {
      directory: ({ namespace, name, uid }) => `/logs/${namespace}_${name}_${uid}`,
      prepare: async () => true,
      newestInstance: async () => undefined,
      link: async () => true,
      retainLinks: async () => {},
      remove: async () => {},
      tail: async () => '',
      removeAll: async () => {},
    },
    archives: { awaited: () => undefined, prefer: () => {} },
    instance: '',
    hostName: 'box',
    readHostsFile: async () => '',
    readResolver: async () => ({ servers: [], searches: [], options: [] }),
    hostIps: () => ['192.0.2.1'],
    capacity: { cpu: '2', memory: '1Gi' },
    execLimits: execLimits(4096),
    objects,
    shutdown: new HostShutdown(undefined, new ManualClock(), silentLogger),
    bootId: 'boot-1',
    selinux: false,
    resources: plainResources,
    followResolver: async () => {},
    sandboxSeccompPath: () => undefined,
    security: { seccompRoot: '/seccomp', seccompDefault: false, appArmor: false },
  }
}

/** What a pod's record is kept with, on such a host: nothing is written, and nobody hears of it. */
export function plainMemoryEnv(): MemoryEnv {
  return {
    ...plainPodHost(new ObjectStore(plainObjectRules)),
    records: {
      save: async () => {},
      isThere: async () => true,
      remove: async () => {},
      checkRoom: async () => {},
    },
    events: { record: () => {}, recordNode: () => {} },
    logger: silentLogger,
  }
}
