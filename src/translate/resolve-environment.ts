import type { ObjectReader } from '../pod/local-object.ts'
import { objectData } from '../pod/object-data.ts'
import type { ContainerSpec, EnvVar } from '../pod/schema/container-schema.ts'
import { expandReferences } from './environment.ts'
import type { Environment } from './environment.ts'
import { fieldValue, resourceFieldValue } from './field-ref.ts'
import type { FieldFacts } from './field-ref.ts'
import { MissingReference, missingObject } from './missing-reference.ts'
import type { ResourceList } from './spec-view.ts'
import { allContainers } from './spec-view.ts'

type FileRef = NonNullable<NonNullable<EnvVar['valueFrom']>['fileKeyRef']>

export interface EnvironmentInput {
  readonly container: Pick<ContainerSpec, 'name' | 'env' | 'envFrom'>
  readonly fields: FieldFacts
  /** What a limit that isn't set comes to: what the host has. */
  readonly capacity: ResourceList
  readonly objects: ObjectReader
  /** The value that a file in a volume gives; undefined where there is no such file or key. */
  readonly fileValue: (reference: FileRef) => string | undefined
}

/**
 * A container's environment: all of envFrom, then env in order, each value expanded with what came before
 * it (`pkg/kubelet/kubelet_pods.go` makeEnvironmentVariables, 1.36).
 * @throws MissingReference for the first thing that is missing and not optional
 */
export function resolveEnvironment(input: EnvironmentInput): Environment {
  const environment = new Map<string, string>()
  for (const { prefix, configMapRef, secretRef } of input.container.envFrom) {
    const source =
      configMapRef === undefined
        ? { kind: 'Secret' as const, name: secretRef?.name ?? '', optional: secretRef?.optional === true }
        : { kind: 'ConfigMap' as const, ...configMapRef }
    for (const [key, value] of textData(input, source) ?? []) environment.set(`${prefix}${key}`, value)
  }
  for (const variable of input.container.env) {
    const value =
      variable.value === '' && variable.valueFrom !== undefined
        ? sourceValue(input, variable.valueFrom)
        : expandReferences(variable.value, environment)
    if (value !== undefined) environment.set(variable.name, value)
  }
  return environment
}

/** Undefined: an optional thing that isn't there, so that the variable isn't either. */
function sourceValue(
  input: EnvironmentInput,
  { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef }: NonNullable<EnvVar['valueFrom']>,
): string | undefined {
  if (fieldRef !== undefined) {
    const value = fieldValue(fieldRef.fieldPath, input.fields)
    if (value === undefined) throw new MissingReference(`unsupported fieldPath: ${fieldRef.fieldPath}`)
    return value
  }
  if (resourceFieldRef !== undefined) return resourceValue(input, resourceFieldRef)
  if (configMapKeyRef !== undefined) return keyValue(input, { kind: 'ConfigMap', ...configMapKeyRef })
  if (secretKeyRef !== undefined) return keyValue(input, { kind: 'Secret', ...secretKeyRef })
  if (fileKeyRef === undefined) return ''
  const value = input.fileValue(fileKeyRef)
  if (value !== undefined || fileKeyRef.optional) return value
  const { key, path, volumeName } = fileKeyRef
  throw new MissingReference(
    `environment variable key "${key}" not found in file "${path}" of volume ${volumeName}`,
  )
}

function resourceValue(
  input: EnvironmentInput,
  reference: NonNullable<NonNullable<EnvVar['valueFrom']>['resourceFieldRef']>,
): string {
  const name = reference.containerName || input.container.name
  const container = allContainers(input.fields.pod.spec).find((candidate) => candidate.name === name)
  const value = container && resourceFieldValue(reference, container, input.capacity)
  if (value !== undefined) return value
  throw new MissingReference(`unsupported resource: ${reference.resource} of container ${name}`)
}

type ObjectRef = { readonly kind: 'ConfigMap' | 'Secret'; readonly name: string; readonly optional: boolean }

function keyValue(
  input: EnvironmentInput,
  reference: ObjectRef & { readonly key: string },
): string | undefined {
  const data = textData(input, reference)
  if (data === undefined) return undefined
  const value = data.get(reference.key)
  if (value !== undefined || reference.optional) return value
  const { namespace } = input.fields.pod.metadata
  throw new MissingReference(
    `couldn't find key ${reference.key} in ${reference.kind} ${namespace}/${reference.name}`,
  )
}

/** The texts of a ConfigMap (what is in binaryData is none) or a Secret. */
function textData(
  { objects, fields }: EnvironmentInput,
  { kind, name, optional }: ObjectRef,
): ReadonlyMap<string, string> | undefined {
  const object = objects.get(kind, fields.pod.metadata.namespace, name)
  if (object === undefined) {
    if (optional) return undefined
    throw missingObject(objects, { kind, namespace: fields.pod.metadata.namespace, name })
  }
  if (object.kind === 'ConfigMap') return new Map(Object.entries(object.data))
  return new Map([...objectData(object)].map(([key, value]) => [key, value.toString('utf8')]))
}
