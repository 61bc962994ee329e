/* A container's mounts, and the parts of volumes that they show. */
import { posix } from 'node:path'
import { PoddError } from '../base/errors.ts'
import { cleanPath } from '../base/text.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { VolumeSpec } from '../pod/schema/volume-schema.ts'
import { expandReferences, splitReferences } from './environment.ts'
import type { Environment } from './environment.ts'
import { idMappings } from './security-context.ts'
import type { UserRange } from './security-context.ts'
import type { ContainerSpec, VolumeMount } from '../pod/schema/container-schema.ts'

/** A prepared volume of a pod on the host. */
export interface HostVolume {
  readonly hostPath: string
  /** podd's own directories are labelled for the container; what belongs to the host keeps its labels. */
  readonly selinuxRelabel: boolean
  /** The name of the image that the runtime mounts; there is no path then. */
  readonly image?: string
  /** Whatever the mounts say. */
  readonly readOnly?: boolean
  /** Whether podd writes its files, so that containers may not. */
  readonly files?: boolean
}

/** A mount inside a directory of podd's files. */
export interface NestedMount {
  readonly directory: string
  /** Inside the directory. */
  readonly path: string
  /** What is mounted there; undefined: an image, which is a directory. */
  readonly source: string | undefined
}

const propagations = {
  None: 'PROPAGATION_PRIVATE',
  HostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  Bidirectional: 'PROPAGATION_BIDIRECTIONAL',
} as const

const resolvConf = '/etc/resolv.conf'

/**
 * What is mounted into a container: its volumes, the pod's hosts file and resolv.conf unless the container
 * mounts something of its own there, and the file for its termination message
 * (`kubelet_pods.go`, makeMounts; `kuberuntime_container.go`, makeMounts; 1.36).
 */
export function containerMounts(input: {
  readonly container: ContainerSpec
  readonly volumes: ReadonlyMap<string, HostVolume>
  /** The places of sub-paths, by the mount's index; for an image the path inside it. */
  readonly subPaths?: ReadonlyMap<number, string>
  /** Whether the runtime supports recursive read-only mounts. */
  readonly recursiveReadOnly?: boolean
  /** The pod's hosts file; undefined: the runtime's own. */
  readonly etcHostsPath: string | undefined
  /** The pod's resolv.conf; undefined: the runtime's own. */
  readonly resolvConfPath?: string | undefined
  /** The file that takes the termination message; undefined: none. */
  readonly terminationLogPath: string | undefined
  /** SELinux is on. */
  readonly selinux: boolean
  /** For a pod with a user namespace: files of the host's root belong to the pod's root inside it. */
  readonly userRange?: UserRange | undefined
}): readonly cri.Sent<cri.Mount>[] {
  const { container, etcHostsPath, resolvConfPath, terminationLogPath, userRange } = input
  const mounts = container.volumeMounts.map((mount, index) => volumeMount(mount, index, input))
  const own = new Set(mounts.map(({ containerPath }) => containerPath))
  const all = [...mounts]
  const add = (containerPath: string, hostPath: string, more: cri.Sent<cri.Mount> = {}): void =>
    void all.push({ containerPath, hostPath, ...more, selinuxRelabel: input.selinux })
  if (etcHostsPath !== undefined && !own.has('/etc/hosts')) add('/etc/hosts', etcHostsPath)
  // As the runtime's own is.
  const readonly = container.securityContext?.readOnlyRootFilesystem ?? false
  if (resolvConfPath !== undefined && !own.has(resolvConf)) add(resolvConf, resolvConfPath, { readonly })
  if (terminationLogPath !== undefined && container.terminationMessagePath !== '')
    add(absolute(container.terminationMessagePath), terminationLogPath)
  if (userRange === undefined) return all
  const mapped = idMappings(userRange)
  return all.map((mount) => withMappings(mount, mapped))
}

/** The runtime maps an image's files itself. */
function withMappings(
  mount: cri.Sent<cri.Mount>,
  mapped: readonly cri.Sent<cri.IDMapping>[],
): cri.Sent<cri.Mount> {
  return mount.image === undefined ? { ...mount, uidMappings: mapped, gidMappings: mapped } : mount
}

/**
 * The container's mounts inside a directory of podd's files: the container gets that directory read-only, so the
 * runtime could not create the mount points.
 */
export function selectNestedMounts(
  container: Pick<ContainerSpec, 'volumeMounts'>,
  volumes: ReadonlyMap<string, HostVolume>,
  mounts: readonly cri.Sent<cri.Mount>[],
): readonly NestedMount[] {
  const directories = new Map(
    container.volumeMounts.flatMap(({ name, mountPath, subPath = '', subPathExpr = '' }) => {
      const volume = volumes.get(name)
      return volume?.files === true && subPath === '' && subPathExpr === ''
        ? [[normalize(absolute(mountPath)), volume.hostPath] as const]
        : []
    }),
  )
  if (directories.size === 0) return []
  const places = mounts.map(({ containerPath = '' }) => normalize(containerPath))
  const contains = (outer: string, inner: string): boolean => outer !== inner && inner.startsWith(`${outer}/`)
  return mounts.flatMap(({ hostPath, image }, index) => {
    const place = places[index] ?? ''
    // The innermost of those around it.
    const [around] = places.filter((outer) => contains(outer, place)).toSorted((a, b) => b.length - a.length)
    const directory = around === undefined ? undefined : directories.get(around)
    if (around === undefined || directory === undefined) return []
    const source = image === undefined || image === null ? (hostPath ?? '') : undefined
    return [{ directory, path: place.slice(around.length + 1), source }]
  })
}

function volumeMount(
  mount: VolumeMount,
  index: number,
  input: Pick<
    Parameters<typeof containerMounts>[0],
    'volumes' | 'selinux' | 'subPaths' | 'recursiveReadOnly'
  >,
): cri.Sent<cri.Mount> {
  const volume = input.volumes.get(mount.name)
  if (volume === undefined) throw new PoddError('INTERNAL', `volume ${mount.name} was not prepared`)
  if (volume.image !== undefined) {
    return {
      containerPath: absolute(mount.mountPath),
      image: { image: volume.image, userSpecifiedImage: volume.image },
      imageSubPath: input.subPaths?.get(index),
      readonly: true,
    }
  }
  return {
    containerPath: absolute(mount.mountPath),
    hostPath: input.subPaths?.get(index) ?? volume.hostPath,
    // Containers can't write to files that podd keeps up to date (`kubelet_pods.go` makeMounts, volume.GetAttributes, 1.36).
    readonly: mount.readOnly || volume.readOnly === true || volume.files === true,
    ...(isRecursive(mount, input.recursiveReadOnly === true) && { recursiveReadOnly: true }),
    selinuxRelabel: input.selinux && volume.selinuxRelabel,
    propagation: propagations[mount.mountPropagation ?? 'None'],
  }
}

/**
 * `IfPossible` is what the runtime can; `Enabled` on one that can't never comes this far
 * (decide/admission/preflight-pod.ts).
 */
function isRecursive({ recursiveReadOnly = 'Disabled' }: VolumeMount, canBe: boolean): boolean {
  return recursiveReadOnly === 'Enabled' || (recursiveReadOnly === 'IfPossible' && canBe)
}

function absolute(path: string): string {
  return path.startsWith('/') ? path : `/${path}`
}

function normalize(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/$/, '')
}

/** PATH_MAX, without its NUL. */
const longestPath = 4095

/**
 * The path inside its volume that a mount shows; undefined: all of the volume. A subPathExpr is expanded with
 * the container's environment, in which all its references have to stand
 * (`pkg/kubelet/kubelet_pods.go` makeMounts, `container/helpers.go` ExpandContainerVolumeMounts, 1.36).
 * @throws PoddError SUB_PATH
 */
export function computeSubPath(
  { subPath, subPathExpr }: Pick<VolumeMount, 'subPath' | 'subPathExpr'>,
  environment: Environment,
): string | undefined {
  if (subPathExpr === undefined || subPathExpr === '') return subPath === '' ? undefined : subPath
  for (const part of splitReferences(subPathExpr)) {
    if (part.kind === 'text' || environment.has(part.name)) continue
    throw new PoddError('SUB_PATH', `missing value for "${part.name}"`)
  }
  const path = expandReferences(subPathExpr, environment, longestPath)
  if (path === undefined) {
    throw new PoddError('SUB_PATH', `subPathExpr gives a path of more than ${longestPath} bytes`)
  }
  if (path.startsWith('/')) {
    throw new PoddError('SUB_PATH', `error SubPath "${path}" must not be an absolute path`)
  }
  if (path.split('/').includes('..')) {
    throw new PoddError('SUB_PATH', `unable to provision SubPath "${path}": must not contain '..'`)
  }
  return path === '' ? undefined : path
}

/** What a mount shows where nothing is at its path: a directory that is made in the volume, an empty one, or nothing. */
export type MissingSubPath =
  | { readonly kind: 'make' }
  | { readonly kind: 'empty' }
  /** The container waits. */
  | { readonly kind: 'fail'; readonly message: string }

/**
 * A kubelet makes a directory in every volume (`pkg/kubelet/kubelet_pods.go` makeMounts, 1.36). Where podd writes the
 * files, that directory would stand in the way of the file for good, so the container waits for the file instead. What
 * is optional may be missing: the container gets an empty directory, as from a kubelet, and the file when it starts
 * again.
 */
export function whenSubPathMissing(volume: VolumeSpec, subPath: string): MissingSubPath {
  const { configMap, secret, downwardAPI, projected } = volume
  if ((configMap ?? secret ?? downwardAPI ?? projected) === undefined) return { kind: 'make' }
  const path = cleanPath(subPath)
  const objects = sourcesOf(volume).filter(({ items }) => mayGive(items, path))
  if (objects.some(({ optional }) => optional)) return { kind: 'empty' }
  const [name, key] = [volume.name, path].map((text) => JSON.stringify(text))
  const owners = objects.filter(({ items }) => items.length === 0).map(({ object }) => object)
  const remedy =
    owners.length === 0
      ? 'give one of the items of the volume that path'
      : `add the key ${key} to ${owners.join(' or ')}`
  return {
    kind: 'fail',
    message: `volume ${name} has no file ${key}: ${remedy}, or correct the subPath; the container starts by itself then`,
  }
}

interface ObjectSource {
  /** `ConfigMap "settings"` */
  readonly object: string
  readonly items: readonly { readonly path: string }[]
  readonly optional: boolean
}

function sourcesOf({ configMap, secret, projected }: VolumeSpec): readonly ObjectSource[] {
  const own = { configMap, secret: secret && { ...secret, name: secret.secretName } }
  return (projected?.sources ?? [own]).flatMap(({ configMap, secret }) =>
    [
      configMap && { ...configMap, object: `ConfigMap ${JSON.stringify(configMap.name)}` },
      secret && { ...secret, object: `Secret ${JSON.stringify(secret.name)}` },
    ].filter((source) => source !== undefined),
  )
}

/** Keys become files at the top of the volume, unless items give them other paths. */
function mayGive(items: readonly { readonly path: string }[], wanted: string): boolean {
  if (items.length === 0) return !wanted.includes('/')
  const paths = items.map(({ path }) => cleanPath(path))
  return paths.some((path) => path === wanted || path.startsWith(`${wanted}/`))
}
