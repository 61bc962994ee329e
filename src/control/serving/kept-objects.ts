import type { LeaseObject, PodTemplateObject } from '../../api/cluster-objects.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { ShownResources } from '../status/shown-resources.ts'

export interface KeptObjectsDeps {
  readonly shown: Pick<ShownResources, 'leases' | 'podtemplates'>
  /** The manifests of one kind that were written over the API. */
  readonly written: (kind: string) => readonly JsonObject[]
}

/** Shows what the API keeps for its clients alone, as they wrote it. Writes the stores of these kinds. */
export class KeptObjects {
  readonly #deps: KeptObjectsDeps

  constructor(deps: KeptObjectsDeps) {
    this.#deps = deps
  }

  /** At once. */
  show(): void {
    const { shown, written } = this.#deps
    shown.leases.replaceAll(byUid(written('Lease'), toLease))
    shown.podtemplates.replaceAll(byUid(written('PodTemplate'), toPodTemplate))
  }
}

type Meta = LeaseObject['metadata']

function byUid<T extends LeaseObject | PodTemplateObject>(
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
  if (typeof name !== 'string' || typeof namespace !== 'string' || typeof uid !== 'string') return undefined
  return { ...metadata, name, namespace, uid }
}

function toLease({ spec }: JsonObject, metadata: Meta): LeaseObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata,
    ...(isJsonObject(spec) && { spec }),
  }
}

function toPodTemplate({ template }: JsonObject, metadata: Meta): PodTemplateObject {
  return { apiVersion: 'v1', kind: 'PodTemplate', metadata, ...(isJsonObject(template) && { template }) }
}
