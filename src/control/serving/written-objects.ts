import type { PodObject } from '../../api/resource.ts'
import {
  isJsonObject,
  objectOrEmpty,
  sameData,
  textEntries,
  jsonAt,
  listOrEmpty,
  asJson,
} from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { gateReadiness } from '../../decide/writing/check-object.ts'
import { finalizersOf } from '../../decide/writing/judge-update.ts'
import { isPodDocument } from '../../pod/objects/document.ts'
import type { PodDocument } from '../../pod/objects/document.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { AskedEnd } from '../../pod/state/pod-record.ts'
import type { PodCondition, PodStatus } from '../../pod/state/status.ts'
import type { PodUid, SourceName } from '../../pod/values/ids.ts'
import { isBeingDeleted } from '../../sources/written/api-objects.ts'
import type { ApiObjects } from '../../sources/written/api-objects.ts'
import type { KeptManifest, ObjectName } from '../../sources/written/object-file.ts'
import type { ResourceStore } from './resource-store.ts'
import type { StatusStore } from './status-store.ts'

interface WrittenEnv {
  readonly objects: ApiObjects
  /** See PodSystem. */
  readonly pods: {
    showNew(document: PodDocument, source: SourceName, last?: PodStatus): void
    endPod(uid: PodUid, graceSeconds: number, asked: AskedEnd): boolean
    addDebuggers(uid: PodUid, added: readonly JsonObject[]): Promise<void>
    shortenGrace(uid: PodUid, graceSeconds: number): boolean
    knowsPod(uid: PodUid): boolean
  }
  readonly statuses: Pick<StatusStore, 'removeProvisional' | 'onHeld' | 'refresh'>
  readonly shown: Pick<ResourceStore<PodObject>, 'get' | 'subscribe'>
  /** Resolves when the claims are shown in their current state. */
  readonly showClaims: () => Promise<void>
  readonly nodeName: string
  /** See ObjectWriter. */
  readonly maxPods: number
  readonly logger: Logger
}

/** Carries out writes over the API: keeps the objects, and has them shown. */
export class WrittenObjects {
  readonly #env: WrittenEnv

  constructor(env: WrittenEnv) {
    this.#env = env
  }

  get nodeName(): string {
    return this.#env.nodeName
  }

  get maxPods(): number {
    return this.#env.maxPods
  }

  /** Begins to remove deleted pods once they have ended, for as long as the process runs. */
  begin(): void {
    const { shown, objects, statuses } = this.#env
    statuses.onHeld((object) => this.#keepLast(object))
    shown.subscribe(({ type, object }) => {
      if (type !== 'DELETED') return
      const kept = objects.findPod(object.metadata.uid)
      if (kept === undefined || !isBeingDeleted(kept.manifest)) return
      this.#forget(kept)
    })
  }

  /** Shows the deleted pods that finalizers hold, with their last status. Call it once the objects are loaded. */
  async showHeld(): Promise<void> {
    await this.exclusively(async () => {
      for (const { kind, manifest, document } of this.#env.objects.list())
        if (kind === 'Pod' && isBeingDeleted(manifest) && finalizersOf(manifest).length > 0)
          if (document !== undefined && isPodDocument(document))
            this.#env.pods.showNew(document, 'api', lastStatus(manifest, document))
    })
  }

  /** Settles pods that ended while podd did not run. Call it once it is known what runs. */
  async settle(): Promise<void> {
    await this.exclusively(async () => {
      const { objects, pods, statuses } = this.#env
      for (const kept of objects.list()) {
        if (kept.kind !== 'Pod' || !isBeingDeleted(kept.manifest) || pods.knowsPod(kept.uid)) continue
        if (finalizersOf(kept.manifest).length > 0) statuses.removeProvisional(kept.uid)
        else this.#forget(kept)
      }
    })
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#env.objects.exclusively(work)
  }

  get(name: ObjectName): KeptManifest | undefined {
    const kept = this.#env.objects.get(name)
    if (kept === undefined || !this.#isGone(kept)) return kept
    this.#forget(kept)
    return undefined
  }

  list(): readonly KeptManifest[] {
    return this.#env.objects.list()
  }

  /** Throws PoddError OBJECT_NOT_KEPT. */
  async put(manifest: JsonObject): Promise<void> {
    const { objects, pods, statuses, shown, showClaims } = this.#env
    const kept = await objects.put(manifest)
    const { kind, uid, document } = kept
    if (kind === 'PersistentVolumeClaim') await showClaims()
    if (document === undefined || !isPodDocument(document)) return
    if (shown.get(uid) === undefined) pods.showNew(document, 'api')
    else statuses.refresh(uid)
  }

  /** Throws PoddError OBJECT_NOT_KEPT. */
  async remove(name: ObjectName): Promise<void> {
    await this.#env.objects.remove(name)
    if (name.kind === 'PersistentVolumeClaim') await this.#env.showClaims()
  }

  /** Removes a namespace that was deleted, once nothing is left in it. Throws PoddError OBJECT_NOT_KEPT. */
  async settleNamespace(name: string): Promise<void> {
    const { objects } = this.#env
    const namespace = objects.get({ kind: 'Namespace', namespace: '', name })
    if (namespace === undefined || !isBeingDeleted(namespace.manifest)) return
    if (objects.list().some((object) => object.namespace === name)) return
    await objects.remove(namespace)
  }

  endPod(uid: PodUid, graceSeconds: number, asked: AskedEnd): void {
    const { pods, statuses } = this.#env
    if (!pods.endPod(uid, graceSeconds, asked)) statuses.removeProvisional(uid)
  }

  endOwned(uid: PodUid, graceSeconds: number, asked: AskedEnd): boolean {
    return this.#env.pods.endPod(uid, graceSeconds, asked)
  }

  addDebuggers(uid: PodUid, added: readonly JsonObject[]): Promise<void> {
    return this.#env.pods.addDebuggers(uid, added)
  }

  shortenGrace(uid: PodUid, graceSeconds: number): boolean {
    return this.#env.pods.shortenGrace(uid, graceSeconds)
  }

  /** A pod that was deleted, and ended while podd did not run. */
  #isGone({ kind, uid, manifest }: KeptManifest): boolean {
    const { pods, shown } = this.#env
    return kind === 'Pod' && isBeingDeleted(manifest) && shown.get(uid) === undefined && !pods.knowsPod(uid)
  }

  /** Keeps the last status of a pod that finalizers hold, also for the next podd. */
  #keepLast({ metadata, status }: PodObject): void {
    const { objects, logger } = this.#env
    void objects
      .exclusively(async () => {
        const kept = objects.findPod(metadata.uid)
        const last = asJson(status)
        if (kept === undefined || sameData(kept.manifest['status'], last)) return
        await objects.put({ ...kept.manifest, status: last })
      })
      .catch((error: unknown) =>
        logger.error(
          { pod: metadata.name, uid: metadata.uid, err: error },
          'cannot keep the last status of a pod',
        ),
      )
  }

  #forget(kept: KeptManifest): void {
    const { objects, logger } = this.#env
    void objects
      .exclusively(async () => {
        if (objects.get(kept)?.uid !== kept.uid) return
        await objects.remove(kept)
        await this.settleNamespace(kept.namespace)
      })
      .catch((error: unknown) =>
        logger.error({ pod: kept.name, uid: kept.uid, err: error }, 'cannot remove a deleted pod'),
      )
  }
}

/** The last status of a pod. Of one that an earlier podd held without its status, only its end is known. */
function lastStatus({ status }: JsonObject, { pod }: PodDocument): PodStatus {
  if (isWhole(status)) return status
  return { phase: 'Failed', conditions: [], qosClass: computeQosClass(pod.spec) }
}

function isWhole(status: unknown): status is PodStatus {
  return isJsonObject(status) && typeof status['phase'] === 'string' && Array.isArray(status['conditions'])
}

/**
 * A pod that was written over the API as it is shown: its metadata and spec as they are kept, with what podd found.
 * @param taken the same as the pod's worker gets it; undefined where that is unknown
 */
export function presentWritten(
  object: PodObject,
  written: JsonObject,
  taken: JsonObject | undefined,
): PodObject {
  const { metadata, spec, status } = written
  const { annotations, labels, ...kept } = objectOrEmpty(metadata)
  const { annotations: own = {}, labels: _labels, ...others } = object.metadata
  const { nodeName, priority, overhead } = object.spec
  return {
    ...object,
    metadata: {
      ...kept,
      ...others,
      ...deletionOf(kept),
      generation: object.metadata.generation + changesAhead(object, kept, taken),
      ...(isJsonObject(labels) && { labels: textEntries(labels) }),
      annotations: {
        ...textEntries(annotations),
        ...pick(own, 'podd.dev/source'),
        ...pick(own, 'podd.dev/path'),
      },
    },
    spec: {
      ...objectOrEmpty(spec),
      ...(nodeName !== undefined && { nodeName }),
      priority: priority ?? 0,
      ...(overhead !== undefined && { overhead }),
    },
    status: gateReadiness(
      { ...object.status, conditions: withKept(object.status.conditions, status) },
      objectOrEmpty(spec),
    ),
  }
}

/**
 * How many changes the pod's worker has not taken over yet. Its status then has an older observed generation, which
 * tells clients that it doesn't reflect the newest change.
 */
function changesAhead(
  { metadata, spec }: PodObject,
  kept: JsonObject,
  taken: JsonObject | undefined,
): number {
  const isDeletedSince =
    typeof kept['deletionTimestamp'] === 'string' && metadata.deletionTimestamp === undefined
  const wanted = taken?.['spec']
  const isChangedSince = isJsonObject(wanted) && !sameData(withoutFound(spec), withoutFound(wanted))
  return Number(isDeletedSince) + Number(isChangedSince)
}

/** The spec without the fields that podd adds when it shows it. */
function withoutFound(spec: JsonObject): JsonObject {
  const { nodeName: _node, priority: _priority, overhead: _overhead, ...rest } = spec
  return rest
}

/** With the conditions that clients set, and all of them for a pod that has ended; podd's own take precedence. */
function withKept(own: readonly PodCondition[], status: Json | undefined): readonly PodCondition[] {
  const kept = listOrEmpty(jsonAt(status, 'conditions')).filter((condition) => isCondition(condition))
  return own.concat(kept.filter(({ type }) => own.every((condition) => condition.type !== type)))
}

function isCondition(condition: unknown): condition is PodCondition {
  return (
    isJsonObject(condition) &&
    typeof condition['type'] === 'string' &&
    ['True', 'False', 'Unknown'].some((word) => word === condition['status'])
  )
}

/** The deletion time comes from the delete request. */
function deletionOf({ deletionTimestamp, deletionGracePeriodSeconds }: JsonObject) {
  return {
    ...(typeof deletionTimestamp === 'string' && { deletionTimestamp }),
    ...(typeof deletionGracePeriodSeconds === 'number' && { deletionGracePeriodSeconds }),
  }
}

function pick(values: Readonly<Record<string, string>>, key: string): Readonly<Record<string, string>> {
  const value = values[key]
  return value === undefined ? {} : { [key]: value }
}
