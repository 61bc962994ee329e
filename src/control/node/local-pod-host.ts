import type { Clock } from '../../base/clock.ts'
import { objectKey } from '../../pod/objects/local-object.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { kindOfSource } from '../../pod/values/ids.ts'
import { podSecurityContextSchema } from '../../pod/schema/pod-schema.ts'
import { fieldOf } from '../../pod/schema/issues.ts'
import { podCgroupResources } from '../../translate/resources.ts'
import type { ResourceFacts } from '../../translate/resources.ts'
import type { ResourceList } from '../../translate/spec-view.ts'
import { computeVolumeFiles } from '../../translate/volume-files.ts'
import { whenThere } from '../../host/watch-names.ts'
import { readIfExists } from '../../base/atomic-file.ts'
import { checkMountSharing } from '../../host/mounts.ts'
import { listClaimOwners } from '../../volumes/claims.ts'
import {
  writeEtcHosts,
  ResolvConfFiles,
  volumeDirectory,
  prepareTerminationLog,
  readTerminationLog,
  removeTerminationLog,
  claimUserRange,
} from '../../volumes/pod-directory.ts'
import type { FsGroup } from '../../volumes/open-inside.ts'
import { makeNestedMountPoint, bindSubPath, checkMountKinds } from '../../volumes/sub-path.ts'
import { checkHostPath } from '../../volumes/volume-plugins.ts'
import { prepareVolumes, teardownVolumes } from '../../volumes/prepare-volumes.ts'
import { readInside, measureDiskUsage } from '../../volumes/open-inside.ts'
import { missingObject } from '../../translate/references.ts'
import type { ObjectViews } from '../objects/object-store.ts'
import type { PodVolumes } from '../actions/pod-host.ts'

/** The pods' directories under `<root-dir>/pods`. */
export function createPodVolumes(options: {
  readonly rootDir: string
  readonly resources: ResourceFacts
  readonly objects: ObjectViews
  readonly capacity: ResourceList
  readonly hostName: string
  readonly clock: Clock
}): PodVolumes {
  const { rootDir, objects, capacity, hostName, clock } = options
  const resolvConfs = new ResolvConfFiles(rootDir)
  return {
    prepare: ({ uid, pod, source, warn }) => {
      const { namespace } = pod.metadata
      const seen = objects.seenBy(source)
      const fields = { pod, uid, nodeName: hostName, hostIps: [], podIps: [] }
      return prepareVolumes(pod.spec.volumes, {
        uid,
        namespace,
        rootDir,
        memoryBytes: podMemoryBytes(pod, options.resources),
        fsGroup: fsGroupOf(pod),
        files: (volume) => computeVolumeFiles(volume, { fields, capacity, objects: seen }),
        findClaim: (name) => {
          const owner = seen.sourceOf(objectKey('PersistentVolumeClaim', namespace, name))
          if (owner === undefined)
            throw missingObject(seen, { kind: 'PersistentVolumeClaim', namespace, name })
          return { source: owner, readsDataOf: objects.rules.policies[kindOfSource(owner)].readsObjectsOf }
        },
        warn: (volume, message) => warn?.(`volume "${volume}": ${message}`),
        nowMs: clock.wallMs(),
      })
    },
    listClaimOwners: () => listClaimOwners(rootDir),
    readFile: readInside,
    checkHostPaths: async ({ spec }) => {
      for (const volume of spec.volumes) await checkHostPath(volume)
    },
    checkMountKinds: ({ spec }, container, pid) => checkMountKinds(container, spec.volumes, pid),
    whenThere,
    measureEmptyDir: (uid, volume) => measureDiskUsage(volumeDirectory(rootDir, uid, 'empty-dir', volume)),
    makeMountPoint: makeNestedMountPoint,
    checkMountSharing,
    bindSubPath: (mount) => bindSubPath({ rootDir, ...mount }),
    writeHostsFile: (uid, text) => writeEtcHosts(rootDir, uid, text),
    writeResolvConf: (uid, text) => resolvConfs.write(uid, text),
    removeResolvConf: (uid) => resolvConfs.remove(uid),
    refreshResolvConf: (uid, text) => resolvConfs.refresh(uid, text),
    makeTerminationLog: (uid, container, restartCount) =>
      prepareTerminationLog({ rootDir, uid, container, restartCount }),
    readTerminationLog: (uid, container, restartCount) =>
      readTerminationLog({ rootDir, uid, container, restartCount }),
    removeTerminationLog: (uid, container, restartCount) =>
      removeTerminationLog({ rootDir, uid, container, restartCount }),
    userRange: (uid) => claimUserRange(rootDir, uid),
    teardown: (uid) => {
      resolvConfs.forget(uid)
      return teardownVolumes(rootDir, uid)
    },
  }
}

function fsGroupOf(pod: Pod): FsGroup | undefined {
  const context = fieldOf(pod.spec, 'securityContext', podSecurityContextSchema)
  if (context?.fsGroup === undefined) return undefined
  return { gid: context.fsGroup, changePolicy: context.fsGroupChangePolicy ?? 'Always' }
}

/**
 * The pod's memory limit (its cgroup's), if any; else the host's memory (`pkg/volume/emptydir/empty_dir.go`,
 * calculateEmptyDirMemorySize, 1.36).
 */
function podMemoryBytes(pod: Pod, facts: ResourceFacts): number {
  const { memoryLimitBytes } = podCgroupResources(pod.spec, facts, undefined)
  return Math.min(memoryLimitBytes ?? Infinity, facts.memoryCapacityBytes)
}

/** A small file of the host's, such as /etc/hosts; empty where there is none. */
export async function readIfThere(path: string): Promise<string> {
  return (await readIfExists(path)) ?? ''
}
