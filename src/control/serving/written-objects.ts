import type { PodObject } from '../../api/objects.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { isPodDocument } from '../../pod/objects/document.ts'
import type { PodDocument } from '../../pod/objects/document.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ApiObjects } from '../../sources/written/api-objects.ts'
import { isBeingDeleted } from '../../sources/written/api-objects.ts'
import type { KeptManifest, ObjectName } from '../../sources/written/kept-document.ts'
import type { ResourceStore } from '../status/resource-store.ts'

/** The pods, as far as writing needs them. */
export interface WritablePods {
  /** Shows a pod until its worker says how it is. */
  showNew(document: PodDocument): void
  /** Shows a pod again, of which the API keeps something else now. */
  refresh(uid: PodUid): void
  endPod(uid: PodUid, graceSeconds: number): void
  /** Whether anything is left of a pod; true while that is unknown. */
  knowsPod(uid: PodUid): boolean
}

export interface WrittenObjectsDeps {
  readonly objects: ApiObjects
  readonly pods: WritablePods
  readonly shown: Pick<ResourceStore<PodObject>, 'get' | 'subscribe'>
  /** Resolves when the claims are shown as they are wanted now. */
  readonly showClaims: () => Promise<void>
  readonly nodeName: string
  readonly logger: Logger
}

/** Carries out what is written over the API: keeps it, and sees that it is shown. */
export class WrittenObjects {
  readonly #deps: WrittenObjectsDeps

  constructor(deps: WrittenObjectsDeps) {
    this.#deps = deps
  }

  get nodeName(): string {
    return this.#deps.nodeName
  }

  /** Removes the pods that were deleted once they have ended; ends with the process. */
  begin(): void {
    const { shown, objects } = this.#deps
    shown.subscribe(({ type, object }) => {
      if (type !== 'DELETED') return
      const kept = objects.findPod(object.metadata.uid)
      if (kept === undefined || !isBeingDeleted(kept.manifest)) return
      this.#forget(kept)
    })
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#deps.objects.exclusively(work)
  }

  get(name: ObjectName): KeptManifest | undefined {
    const kept = this.#deps.objects.get(name)
    if (kept === undefined || !this.#isGone(kept)) return kept
    this.#forget(kept)
    return undefined
  }

  list(): readonly KeptManifest[] {
    return this.#deps.objects.list()
  }

  /** Throws PoddError OBJECT_NOT_KEPT. */
  async put(manifest: JsonObject): Promise<void> {
    const { objects, pods, shown, showClaims } = this.#deps
    const kept = await objects.put(manifest)
    const { kind, uid, document } = kept
    if (kind === 'PersistentVolumeClaim') await showClaims()
    if (document === undefined || !isPodDocument(document)) return
    if (shown.get(uid) === undefined) pods.showNew(document)
    else pods.refresh(uid)
  }

  /** Throws PoddError OBJECT_NOT_KEPT. */
  async remove(name: ObjectName): Promise<void> {
    await this.#deps.objects.remove(name)
    if (name.kind === 'PersistentVolumeClaim') await this.#deps.showClaims()
  }

  /** Removes a namespace that was deleted, once nothing is left in it. Throws PoddError OBJECT_NOT_KEPT. */
  async settleNamespace(name: string): Promise<void> {
    const { objects } = this.#deps
    const namespace = objects.get({ kind: 'Namespace', namespace: '', name })
    if (namespace === undefined || !isBeingDeleted(namespace.manifest)) return
    if (objects.list().some((object) => object.namespace === name)) return
    await objects.remove(namespace)
  }

  endPod(uid: PodUid, graceSeconds: number): void {
    this.#deps.pods.endPod(uid, graceSeconds)
  }

  /** It was deleted, and ended while no podd was there to hear of it. */
  #isGone({ kind, uid, manifest }: KeptManifest): boolean {
    const { pods, shown } = this.#deps
    return kind === 'Pod' && isBeingDeleted(manifest) && shown.get(uid) === undefined && !pods.knowsPod(uid)
  }

  #forget(kept: KeptManifest): void {
    const { objects, logger } = this.#deps
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
