import type { ServedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { JsonObject } from '../../base/json.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import { conflict } from './write-errors.ts'

const modified = 'the object has been modified; please apply your changes to the latest version and try again'

/** Throws ApiError Conflict where the client refers to another version, or to another object of that name. */
export function refuseStale(kind: ServedKind, { metadata: shown }: ResourceObject, wanted: JsonObject): void {
  const { resourceVersion = '', uid = '' } = metadataOf(wanted)
  if (resourceVersion !== '' && resourceVersion !== '0' && resourceVersion !== shown.resourceVersion)
    throw conflict(kind, shown.name, modified)
  if (uid !== '' && uid !== shown.uid)
    throw conflict(
      kind,
      shown.name,
      `Precondition failed: UID in precondition: ${JSON.stringify(uid)}, UID in object meta: ${shown.uid}`,
    )
}
