import { resolveClasses } from '../../../src/decide/admission/resolve-classes.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { isPodDocument } from '../../../src/pod/objects/document.ts'
import type { LocalObject, ObjectReader } from '../../../src/pod/objects/local-object.ts'
import { keyOfObject, objectKey } from '../../../src/pod/objects/local-object.ts'
import { withClasses } from '../../../src/pod/schema/pod-resources.ts'
import type { ContainerSpec } from '../../../src/pod/schema/container-schema.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import type { VolumeSpec } from '../../../src/pod/schema/volume-schema.ts'
import { toContainerConfig, toSandboxConfig } from '../../../src/translate/runtime-config.ts'
import {
  formatResolvConf,
  podDns,
  hostNetworkHostsFile,
  podHostsFile,
  podHostname,
} from '../../../src/translate/network.ts'
import { envFileValue, parseEnvFile, resolveEnvironment } from '../../../src/translate/resolve-environment.ts'
import { execLimits, expandCommand } from '../../../src/translate/environment.ts'
import type { FieldFacts } from '../../../src/translate/references.ts'
import type { HostVolume } from '../../../src/translate/mounts.ts'
import { containerMounts, computeSubPath } from '../../../src/translate/mounts.ts'
import { podCgroupResources } from '../../../src/translate/resources.ts'
import { computeVolumeFiles } from '../../../src/translate/volume-files.ts'
import type { UserRange } from '../../../src/translate/security-context.ts'
import { hostFacts } from './pods.ts'

const uid = '3f6a1c52-0000-4000-8000-000000000001'
const host = { servers: ['192.0.2.1'], searches: ['lan'], options: [] }
const hostFile = '127.0.0.1\tlocalhost\n192.0.2.7\tbox\n'
const resources = { ...hostFacts, minOomScoreAdj: 0, hugePageSizes: ['2MB', '1GB'] }
const capacity = { cpu: '4', memory: '8Gi' }
/** What stands in any file of a volume that a container wrote. */
const writtenFile = "KEY='from a file'\n"

class Objects implements ObjectReader {
  readonly #objects: readonly LocalObject[]

  constructor(objects: readonly LocalObject[]) {
    this.#objects = objects
  }

  get: ObjectReader['get'] = (kind, namespace, name) => {
    const key = objectKey(kind, namespace, name)
    return this.list(kind).find((object) => keyOfObject(object) === key)
  }

  list: ObjectReader['list'] = (kind) =>
    this.#objects.filter(
      (object): object is Extract<LocalObject, { kind: typeof kind }> => object.kind === kind,
    )

  sourceOf(): 'file' {
    return 'file'
  }

  explainMissing(): undefined {
    return undefined
  }
}

/**
 * All that a runtime gets of the pod in these documents, on a host with 8 GiB and cgroup v2, and the files
 * that its containers see beside their images'.
 */
export function messagesOf(documents: readonly SourceDocument[]): object {
  const objects = new Objects(
    documents.flatMap((document) => (isPodDocument(document) ? [] : [document.object])),
  )
  const given = documents.find((document) => isPodDocument(document))
  if (given === undefined) throw new Error('there is no pod among the documents')
  const { pod, runtimeHandler } = resolved(given.pod, objects)
  const { metadata, spec } = pod
  const podIps = spec.hostNetwork ? ['192.0.2.7'] : ['10.88.0.5', 'fd00:88::5']
  const fields: FieldFacts = { pod, uid, nodeName: 'box', hostIps: ['192.0.2.7'], podIps }
  const files = new Map(
    spec.volumes.map((volume) => [volume.name, computeVolumeFiles(volume, { fields, capacity, objects })]),
  )
  const userRange = userRangeOf(pod)
  const dns = podDns(pod, host).config
  const config = toSandboxConfig({
    pod,
    uid,
    attempt: 1,
    instance: 'edge',
    manifestHash: 'v1-manifest',
    cgroupParent: '/kubepods/pod',
    logDirectory: `/var/log/pods/${metadata.namespace}_${metadata.name}_${uid}`,
    dns,
    resources,
    userRange,
  })
  const aliases = spec.hostAliases
  return {
    RunPodSandbox: { config, runtimeHandler },
    CreateContainer: [...spec.initContainers, ...spec.containers].map((container) =>
      containerMessage(pod, container, { fields, objects }),
    ),
    podCgroup: podCgroupResources(spec, resources, undefined),
    files: {
      '/etc/hosts': spec.hostNetwork
        ? hostNetworkHostsFile({ hostFile, aliases, services: '' })
        : podHostsFile({ ips: podIps, hostname: podHostname(pod), aliases, services: '' }),
      '/etc/resolv.conf': formatResolvConf(dns),
      ...Object.fromEntries(
        [...files].flatMap(([name, content]) =>
          [...(content ?? [])].map(([path, { data, mode }]) => [
            `${name}:${path}`,
            `${mode.toString(8)} ${Buffer.from(data).toString()}`,
          ]),
        ),
      ),
    },
  }
}

function resolved(pod: Pod, objects: ObjectReader): { readonly pod: Pod; readonly runtimeHandler: string } {
  const found = resolveClasses(pod.spec, {
    runtimeClasses: new Map(
      objects
        .list('RuntimeClass')
        .map(({ metadata, handler, overhead }) => [metadata.name, { handler, overhead: overhead?.podFixed }]),
    ),
    priorityClasses: new Map(
      objects.list('PriorityClass').map((priority) => [priority.metadata.name, priority]),
    ),
    handlers: undefined,
  })
  if (found.kind === 'refused') throw new Error(found.message)
  return { pod: withClasses(pod, found.classes), runtimeHandler: found.classes.runtimeHandler }
}

function containerMessage(
  pod: Pod,
  container: ContainerSpec,
  { fields, objects }: { readonly fields: FieldFacts; readonly objects: ObjectReader },
): object {
  const environment = resolveEnvironment({
    container,
    fields,
    capacity,
    objects,
    limits: execLimits(4096),
    services: new Map(),
    fileValue: ({ key }) => envFileValue(parseEnvFile(writtenFile), key),
  })
  const subPaths = container.volumeMounts.flatMap((mount, index): [number, string][] => {
    const path = computeSubPath(mount, environment)
    return path === undefined ? [] : [[index, `/subpaths/${mount.name}/${container.name}/${index}:${path}`]]
  })
  return toContainerConfig({
    pod,
    uid,
    container,
    restartCount: 2,
    instance: 'edge',
    specHash: 'v1-spec',
    imageRef: 'sha256:image',
    imageUser: { uid: 0 },
    environment,
    command: expandCommand(container, environment, execLimits(4096)),
    mounts: containerMounts({
      container,
      volumes: new Map(pod.spec.volumes.map((volume) => [volume.name, hostVolume(volume)])),
      subPaths: new Map(subPaths),
      recursiveReadOnly: true,
      etcHostsPath: '/pod/etc-hosts',
      resolvConfPath: '/pod/resolv.conf',
      terminationLogPath: '/pod/log',
      selinux: true,
      userRange: userRangeOf(pod),
    }),
    resources,
    userRange: userRangeOf(pod),
    security: { seccompRoot: '/seccomp', seccompDefault: false, appArmor: true },
  })
}

function userRangeOf({ spec }: Pod): UserRange | undefined {
  return spec.hostUsers === false ? { firstId: 196_608, length: 65_536 } : undefined
}

/** As src/volumes makes them ready. */
function hostVolume({ name, hostPath, image, persistentVolumeClaim, emptyDir }: VolumeSpec): HostVolume {
  if (hostPath !== undefined) return { hostPath: hostPath.path, selinuxRelabel: false }
  if (image !== undefined) return { hostPath: '', selinuxRelabel: false, image: image.reference ?? '' }
  if (persistentVolumeClaim !== undefined) {
    const { claimName, readOnly } = persistentVolumeClaim
    return { hostPath: `/claims/default/${claimName}`, selinuxRelabel: true, readOnly }
  }
  return { hostPath: `/volumes/${name}`, selinuxRelabel: true, files: emptyDir === undefined }
}
