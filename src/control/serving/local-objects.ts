import type { ClaimObject, ConfigObject } from '../../api/local-objects.ts'
import { PoddError, errorCode } from '../../base/errors.ts'
import type { ObjectDocument } from '../../pod/objects/document.ts'
import type { PersistentVolumeClaim } from '../../pod/kinds/persistent-volume-claim.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { dnsLabel, dnsSubdomain } from '../../pod/validation/name-rules.ts'
import { objectUid, toConfigObject, toObjectMeta } from '../../translate/config-object.ts'
import {
  claimDirectory,
  listClaimDirectories,
  purgeClaimDirectory,
} from '../../volumes/plugins/claim-directory.ts'
import type { ClaimName } from '../../volumes/plugins/claim-directory.ts'
import { measureDiskUsage } from '../../volumes/files/disk-usage.ts'
import type { ObjectStore } from '../objects/object-store.ts'

/** A claim can't be purged: a pod uses it, or there is no such claim. */
export class ClaimError extends PoddError {
  constructor(code: 'CLAIM_IN_USE' | 'CLAIM_NOT_FOUND', message: string, hint?: string) {
    super(code, message, { hint })
  }
}

export interface LocalObjectsDeps {
  readonly objects: ObjectStore
  readonly rootDir: string
  /** The pods that are there, those that are ending included. */
  readonly pods: () => Iterable<Pod>
}

/** The objects that pods refer to, as the API shows them. */
export class LocalObjects {
  readonly #deps: LocalObjectsDeps

  constructor(deps: LocalObjectsDeps) {
    this.#deps = deps
  }

  listConfigs(kind: 'ConfigMap' | 'Secret', options: { readonly values: boolean }): readonly ConfigObject[] {
    return this.#deps.objects.documents().flatMap(({ source, document: { object, place } }) => {
      if (object.kind !== 'ConfigMap' && object.kind !== 'Secret') return []
      return object.kind === kind ? [toConfigObject(object, { source, place }, options)] : []
    })
  }

  /** Claims with a document, then those that left data behind. */
  async listClaims(): Promise<readonly ClaimObject[]> {
    const { objects, rootDir } = this.#deps
    const directories = await listClaimDirectories(rootDir)
    const wanted = objects.documents().flatMap(({ source, document }) => {
      const { object } = document
      return object.kind === 'PersistentVolumeClaim' ? [{ source, document, object }] : []
    })
    const isWanted = (claim: ClaimName): boolean =>
      wanted.some(({ object: { metadata } }) => sameClaim(metadata, claim))
    return Promise.all([
      ...wanted.map(({ source, document, object }) => {
        const hasData = directories.some((directory) => sameClaim(directory, object.metadata))
        return this.#toClaim(object, { source, place: document.place }, hasData)
      }),
      ...directories
        .filter((directory) => !isWanted(directory))
        .map((directory) => this.#toReleased(directory)),
    ])
  }

  /**
   * Deletes a claim's data.
   * @throws ClaimError
   */
  async purgeClaim(claim: ClaimName): Promise<void> {
    const { namespace, name } = claim
    // Anything else may be a path, to this claim by another name or to what is no claim at all.
    if (dnsLabel(namespace).length > 0 || dnsSubdomain(name).length > 0) {
      throw new ClaimError(
        'CLAIM_NOT_FOUND',
        `${JSON.stringify(name)} in namespace ${JSON.stringify(namespace)} is not the name of a claim`,
        'Give the name alone, as `podd get pvc` shows it.',
      )
    }
    for (const { metadata, spec } of this.#deps.pods()) {
      const uses = spec.volumes.some(({ persistentVolumeClaim: used }) => used?.claimName === name)
      if (!uses || metadata.namespace !== namespace) continue
      const message = `claim ${name} is used by pod ${metadata.name}`
      throw new ClaimError('CLAIM_IN_USE', message, 'Remove the pod first.')
    }
    try {
      await purgeClaimDirectory(this.#deps.rootDir, claim)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
      throw new ClaimError('CLAIM_NOT_FOUND', `claim ${name} has no data in namespace ${namespace}`)
    }
  }

  async #toClaim(
    claim: PersistentVolumeClaim,
    origin: { readonly source: 'file' | 'http'; readonly place: ObjectDocument['place'] },
    hasData: boolean,
  ): Promise<ClaimObject> {
    const { metadata, spec } = claim
    const path = claimDirectory(this.#deps.rootDir, metadata.namespace, metadata.name)
    const { accessModes } = spec
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: toObjectMeta(claim, origin, { values: false }),
      spec: {
        accessModes,
        resources: { requests: spec.resources.requests },
        storageClassName: 'podd-local',
      },
      status: {
        phase: hasData ? 'Bound' : 'Pending',
        accessModes,
        capacity: { storage: spec.resources.requests['storage'] ?? '' },
        path,
        usedBytes: hasData ? await measureDiskUsage(path) : 0,
      },
    }
  }

  async #toReleased({ namespace, name }: ClaimName): Promise<ClaimObject> {
    const path = claimDirectory(this.#deps.rootDir, namespace, name)
    const usedBytes = await measureDiskUsage(path)
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name,
        namespace,
        uid: objectUid({ kind: 'PersistentVolumeClaim', namespace, name, source: undefined }),
      },
      status: { phase: 'Released', path, usedBytes },
    }
  }
}

function sameClaim(a: ClaimName, b: ClaimName): boolean {
  return a.name === b.name && a.namespace === b.namespace
}
