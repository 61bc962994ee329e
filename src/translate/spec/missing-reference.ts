import { PoddError } from '../../base/errors.ts'
import type { ObjectReader } from '../../pod/objects/local-object.ts'
import { objectKey } from '../../pod/objects/local-object.ts'

/**
 * A pod refers to a missing object, key or file; the message is the kubelet's. A container waits with
 * CreateContainerConfigError, a volume with a FailedMount event, until it exists.
 */
export class MissingReference extends PoddError {
  constructor(message: string, hint?: string) {
    super('REFERENCE_MISSING', message, { hint })
  }
}

/** An object in its namespace. */
export interface NamespacedName {
  readonly kind: 'ConfigMap' | 'Secret' | 'PersistentVolumeClaim'
  readonly namespace: string
  readonly name: string
}

/** The API's message: `configmap "web" not found`; and why, where another source has one. */
export function missingObject(
  objects: Pick<ObjectReader, 'explainMissing'>,
  { kind, namespace, name }: NamespacedName,
): MissingReference {
  const why = objects.explainMissing(objectKey(kind, namespace, name))
  return new MissingReference(
    `${kind.toLowerCase()} "${name}" not found${why === undefined ? '' : `: ${why}`}`,
  )
}
