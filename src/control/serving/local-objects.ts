import type {
  ClaimObject,
  ConfigObject,
  LeaseObject,
  PodTemplateObject,
  ServiceObject,
} from '../../api/cluster-objects.ts'
import type { ResourceObject } from '../../api/resource.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { noCustomObjects, targetPortOf } from '../../pod/objects/object-kinds.ts'
import type { PersistentVolumeClaim, Service } from '../../pod/objects/object-kinds.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { dnsLabel, dnsSubdomain } from '../../pod/validation/name-rules.ts'
import { objectUid, toConfigObject, toObjectMeta } from '../../translate/volume-files.ts'
import type { ObjectOrigin } from '../../translate/volume-files.ts'
import { claimDirectory, listClaimDirectories, purgeClaimDirectory } from '../../volumes/claims.ts'
import type { ClaimName } from '../../volumes/claims.ts'
import { measureDiskUsage } from '../../volumes/open-inside.ts'
import type { ObjectStore } from './object-store.ts'
import type { ResourceStore, ShownResources } from './resource-store.ts'

/** A claim can't be purged: a pod uses it, or there is no such claim. */
export class ClaimError extends PoddError {
  constructor(code: 'CLAIM_IN_USE' | 'CLAIM_NOT_FOUND', message: string, hint?: string) {
    super(code, message, { hint })
  }
}

/** Where the objects are, and who uses them. */
interface LocalEnv {
  readonly objects: ObjectStore
  readonly shown: Pick<
    ShownResources,
    'pods' | 'configmaps' | 'secrets' | 'persistentvolumeclaims' | 'services'
  >
  readonly rootDir: string
  /** All pods, including those that are terminating. */
  readonly pods: () => Iterable<Pod>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly logger: Logger
}

/** The objects that pods refer to, as the API shows them: writes the stores of their kinds. */
export class LocalObjects {
  readonly #env: LocalEnv
  #reviewing: Promise<void> = Promise.resolve()
  #isReviewWanted = false

  constructor(env: LocalEnv) {
    this.#env = env
  }

  /** Begins to follow the sources' objects and the pods that use claims. */
  begin(): void {
    const { objects, shown } = this.#env
    objects.follow(() => this.#showConfigs())
    shown.pods.subscribe(({ object: { spec } }) => {
      const { volumes } = spec
      const isClaim = (volume: Json): boolean => isJsonObject(volume) && 'persistentVolumeClaim' in volume
      if (Array.isArray(volumes) && volumes.some(isClaim)) this.#reviewClaims()
    })
    this.#showConfigs()
  }

  /** Measures the claims; resolves when they are shown with their sizes. Rejects with what the file system throws. */
  measureClaims(): Promise<void> {
    const measured = this.#reviewing.then(() => this.#showClaims(measureDiskUsage))
    // The caller gets the error; the next review starts afresh.
    this.#reviewing = measured.catch(() => {})
    return measured
  }

  #showConfigs(): void {
    const { objects, shown } = this.#env
    const [configmaps, secrets] = [new Map<string, ConfigObject>(), new Map<string, ConfigObject>()]
    const services = new Map<string, ServiceObject>()
    for (const { source, document } of objects.documents()) {
      const { object, place, kept } = document
      if (object.kind === 'Service') {
        const made = this.#dated(toServiceObject(object, { source, place, kept }), shown.services)
        services.set(made.metadata.uid, made)
      }
      if (object.kind !== 'ConfigMap' && object.kind !== 'Secret') continue
      const isSecret = object.kind === 'Secret'
      const made = this.#dated(
        toConfigObject(object, { source, place, kept }),
        isSecret ? shown.secrets : shown.configmaps,
      )
      const kind = isSecret ? secrets : configmaps
      kind.set(made.metadata.uid, made)
    }
    shown.configmaps.replaceAll(configmaps)
    shown.secrets.replaceAll(secrets)
    shown.services.replaceAll(services)
    this.#reviewClaims()
  }

  /**
   * Looks for claims that are new, or whose directory was made or removed. Requests during a look are served by one
   * further look.
   */
  #reviewClaims(): void {
    if (this.#isReviewWanted) return
    this.#isReviewWanted = true
    const { shown, logger } = this.#env
    this.#reviewing = this.#reviewing
      .then(() => {
        this.#isReviewWanted = false
        const claims = shown.persistentvolumeclaims.list()
        const known = new Map(claims.map(({ status }) => [status.path, status.usedBytes]))
        return this.#showClaims(async (path) => known.get(path))
      })
      .catch((error: unknown) => logger.warn({ err: error }, 'cannot read the directories of claims'))
  }

  /** Claims with a document, then those that left data behind. */
  async #showClaims(measure: Measure): Promise<void> {
    const { objects, shown, rootDir } = this.#env
    const directories = await listClaimDirectories(rootDir)
    const wanted = objects.documents().flatMap(({ source, document }) => {
      const { object } = document
      return object.kind === 'PersistentVolumeClaim' ? [{ source, document, object }] : []
    })
    const isWanted = (claim: ClaimName): boolean =>
      wanted.some(({ object: { metadata } }) => sameClaim(metadata, claim))
    const claims = await Promise.all([
      ...wanted.map(({ source, document, object }) => {
        const hasData = directories.some((directory) => sameClaim(directory, object.metadata))
        return this.#toClaim(
          object,
          { source, place: document.place, kept: document.kept },
          hasData ? measure : undefined,
        )
      }),
      ...directories
        .filter((directory) => !isWanted(directory))
        .map((directory) => this.#toReleased(directory, measure)),
    ])
    shown.persistentvolumeclaims.replaceAll(
      new Map(claims.map((claim) => [claim.metadata.uid, this.#dated(claim, shown.persistentvolumeclaims)])),
    )
  }

  /** An object that has no creation time gets that at which this podd first shows it, and keeps it. */
  #dated<T extends ConfigObject | ClaimObject | ServiceObject>(
    object: T,
    shown: Pick<ResourceStore<T>, 'get'>,
  ): T {
    const { metadata } = object
    if (metadata.creationTimestamp !== undefined) return object
    const known = shown.get(metadata.uid)?.metadata.creationTimestamp
    const creationTimestamp = known ?? formatTime(this.#env.clock.wallMs())
    return { ...object, metadata: { ...metadata, creationTimestamp } }
  }

  /**
   * Deletes a claim's data.
   * @throws ClaimError
   */
  async purgeClaim(claim: ClaimName): Promise<void> {
    const { namespace, name } = claim
    // Any other name may be a path to this claim or to something that is no claim.
    if (dnsLabel(namespace).length > 0 || dnsSubdomain(name).length > 0) {
      throw new ClaimError(
        'CLAIM_NOT_FOUND',
        `${JSON.stringify(name)} in namespace ${JSON.stringify(namespace)} is not the name of a claim`,
        'Give the name alone, as `podd get pvc` shows it.',
      )
    }
    for (const { metadata, spec } of this.#env.pods()) {
      const uses = spec.volumes.some(({ persistentVolumeClaim: used }) => used?.claimName === name)
      if (!uses || metadata.namespace !== namespace) continue
      const message = `claim ${name} is used by pod ${metadata.name}`
      throw new ClaimError('CLAIM_IN_USE', message, 'Remove the pod first.')
    }
    try {
      await purgeClaimDirectory(this.#env.rootDir, claim)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
      throw new ClaimError('CLAIM_NOT_FOUND', `claim ${name} has no data in namespace ${namespace}`)
    } finally {
      this.#reviewClaims()
    }
  }

  async #toClaim(
    claim: PersistentVolumeClaim,
    origin: ObjectOrigin,
    measure: Measure | undefined,
  ): Promise<ClaimObject> {
    const { spec } = claim
    const metadata = toObjectMeta(claim, origin)
    const path = claimDirectory(this.#env.rootDir, metadata.namespace, metadata.name)
    const { accessModes } = spec
    const isBound = measure !== undefined
    const usedBytes = isBound ? await measure(path) : 0
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: {
        accessModes,
        resources: { requests: spec.resources.requests },
        storageClassName: 'podd-local',
        volumeMode: 'Filesystem',
        // As a provisioner names it; it is the claim's directory.
        ...(isBound && { volumeName: `pvc-${metadata.uid}` }),
      },
      status: {
        ...(isBound
          ? {
              phase: 'Bound',
              accessModes,
              capacity: { storage: spec.resources.requests['storage'] ?? '' },
            }
          : { phase: 'Pending' }),
        path,
        ...(usedBytes !== undefined && { usedBytes }),
      },
    }
  }

  async #toReleased({ namespace, name }: ClaimName, measure: Measure): Promise<ClaimObject> {
    const path = claimDirectory(this.#env.rootDir, namespace, name)
    const usedBytes = await measure(path)
    // It remains when the claim's document is removed.
    const uid = objectUid({ kind: 'PersistentVolumeClaim', namespace, name, source: undefined })
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace, uid },
      status: { phase: 'Released', path, ...(usedBytes !== undefined && { usedBytes }) },
    }
  }
}

/** The size of a directory's content; undefined where it is unknown. */
type Measure = (path: string) => Promise<number | undefined>

function sameClaim(a: ClaimName, b: ClaimName): boolean {
  return a.name === b.name && a.namespace === b.namespace
}

/**
 * Shows what the API keeps for its clients alone, as they wrote it: writes the stores of these kinds.
 * @param written the manifests of one kind that were written over the API
 */
export function showKept(
  shown: Pick<ShownResources, 'leases' | 'podtemplates' | IdleResource>,
  written: (kind: string) => readonly JsonObject[],
): void {
  shown.leases.replaceAll(byUid(written('Lease'), toLease))
  shown.podtemplates.replaceAll(byUid(written('PodTemplate'), toPodTemplate))
  for (const [resource, kind] of idleResources)
    shown[resource].replaceAll(
      byUid(written(kind), (manifest, metadata) => ({
        ...manifest,
        apiVersion: apiVersionOf(manifest),
        kind,
        metadata,
        ...(kind === 'CustomResourceDefinition' && { status: refusedDefinition(metadata) }),
      })),
    )
}

/** As that of a definition whose names are not accepted: apiextensions.k8s.io/v1, CustomResourceDefinitionStatus. */
function refusedDefinition({ creationTimestamp }: Meta): JsonObject {
  const condition = (type: string): JsonObject => ({
    type,
    status: 'False',
    reason: 'NotServed',
    message: noCustomObjects,
    ...(creationTimestamp !== undefined && { lastTransitionTime: creationTimestamp }),
  })
  return {
    conditions: [condition('NamesAccepted'), condition('Established')],
    acceptedNames: { plural: '', kind: '' },
    storedVersions: [],
  }
}

const idleResources = [
  ['roles', 'Role'],
  ['rolebindings', 'RoleBinding'],
  ['clusterroles', 'ClusterRole'],
  ['clusterrolebindings', 'ClusterRoleBinding'],
  ['poddisruptionbudgets', 'PodDisruptionBudget'],
  ['storageclasses', 'StorageClass'],
  ['ingressclasses', 'IngressClass'],
  ['customresourcedefinitions', 'CustomResourceDefinition'],
] as const

type IdleResource = (typeof idleResources)[number][0]

function apiVersionOf({ apiVersion }: JsonObject): string {
  return typeof apiVersion === 'string' ? apiVersion : 'v1'
}

type Meta = LeaseObject['metadata']

function byUid<T extends ResourceObject>(
  manifests: readonly JsonObject[],
  convert: (manifest: JsonObject, metadata: Meta) => T,
): ReadonlyMap<string, T> {
  return new Map(
    manifests.flatMap((manifest) => {
      const metadata = metadataOf(manifest)
      return metadata === undefined ? [] : [[metadata.uid, convert(manifest, metadata)] as const]
    }),
  )
}

function metadataOf({ metadata }: JsonObject): Meta | undefined {
  if (!isJsonObject(metadata)) return undefined
  const { name, namespace, uid } = metadata
  if (typeof name !== 'string' || typeof uid !== 'string') return undefined
  return { ...metadata, name, ...(typeof namespace === 'string' && { namespace }), uid }
}

function toLease({ spec }: JsonObject, metadata: Meta): LeaseObject {
  const apiVersion = 'coordination.k8s.io/v1'
  return { apiVersion, kind: 'Lease', metadata, ...(isJsonObject(spec) && { spec }) }
}

function toPodTemplate({ template }: JsonObject, metadata: Meta): PodTemplateObject {
  return { apiVersion: 'v1', kind: 'PodTemplate', metadata, ...(isJsonObject(template) && { template }) }
}

/** A Service as the API shows it. */
function toServiceObject(service: Service, origin: ObjectOrigin): ServiceObject {
  const { type, clusterIP, ports, selector, publishNotReadyAddresses } = service.spec
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: toObjectMeta(service, origin),
    spec: {
      type,
      ...(clusterIP === 'None' && { clusterIP, clusterIPs: [clusterIP] }),
      ...(ports.length > 0 && {
        ports: ports.map((port) => {
          const { name, protocol, appProtocol } = port
          const shown = { protocol, port: port.port, targetPort: targetPortOf(port) }
          if (appProtocol !== undefined) Object.assign(shown, { appProtocol })
          return name === '' ? shown : Object.assign(shown, { name })
        }),
      }),
      selector,
      ...(publishNotReadyAddresses && { publishNotReadyAddresses: true }),
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
    },
    status: { loadBalancer: {} },
  }
}
