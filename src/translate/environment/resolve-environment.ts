import type { ObjectReader } from '../../pod/objects/local-object.ts'
import { objectData } from '../../pod/objects/local-object.ts'
import type { ContainerSpec, EnvVar } from '../../pod/schema/container-schema.ts'
import type { Environment } from './environment.ts'
import { ExecSpace } from './exec-limits.ts'
import type { ExecLimits } from './exec-limits.ts'
import { fieldValue, resourceFieldValue } from '../spec/field-ref.ts'
import type { FieldFacts } from '../spec/field-ref.ts'
import { MissingReference, missingObject } from '../spec/missing-reference.ts'
import type { ResourceList } from '../spec/spec-view.ts'
import { allContainers } from '../spec/spec-view.ts'

type FileRef = NonNullable<NonNullable<EnvVar['valueFrom']>['fileKeyRef']>

export interface EnvironmentInput {
  readonly container: Pick<ContainerSpec, 'name' | 'env' | 'envFrom'>
  readonly fields: FieldFacts
  /** The value of an unset limit: the host's capacity. */
  readonly capacity: ResourceList
  readonly objects: ObjectReader
  readonly limits: ExecLimits
  /** The value that a file in a volume gives; undefined where there is no such file or key. */
  readonly fileValue: (reference: FileRef) => string | undefined
}

type ResolveInput = EnvironmentInput & { readonly texts: ObjectTexts }

/**
 * A container's environment: all of envFrom, then env in order, each value expanded with what came before it
 * (`pkg/kubelet/kubelet_pods.go` makeEnvironmentVariables, 1.36).
 * @throws MissingReference for the first missing, non-optional reference
 * @throws ArgumentsTooLarge where no process could have it
 */
export function resolveEnvironment(given: EnvironmentInput): Environment {
  const input = { ...given, texts: new ObjectTexts(given) }
  const environment = new BoundedEnvironment(input)
  for (const { prefix, configMapRef, secretRef } of input.container.envFrom) {
    const source =
      configMapRef === undefined
        ? { kind: 'Secret' as const, name: secretRef?.name ?? '', optional: secretRef?.optional === true }
        : { kind: 'ConfigMap' as const, ...configMapRef }
    for (const [key, value] of input.texts.get(source) ?? []) environment.set(`${prefix}${key}`, value)
  }
  for (const variable of input.container.env) {
    if (variable.value !== '' || variable.valueFrom === undefined) {
      environment.setExpanded(variable.name, variable.value)
      continue
    }
    const value = sourceValue(input, variable.valueFrom)
    if (value !== undefined) environment.set(variable.name, value)
  }
  return environment.variables
}

/** An environment within exec(2)'s limits. */
class BoundedEnvironment {
  readonly variables = new Map<string, string>()
  readonly #space: ExecSpace

  constructor({ container, limits }: EnvironmentInput) {
    this.#space = new ExecSpace(container.name, limits)
  }

  set(name: string, value: string): void {
    this.#release(name)
    this.#space.take(describe(name), value, `${name}=`)
    this.variables.set(name, value)
  }

  /** Expands a value with the variables so far. */
  setExpanded(name: string, value: string): void {
    this.#release(name)
    const expanded = this.#space.expand(describe(name), value, this.variables, `${name}=`)
    this.variables.set(name, expanded)
  }

  #release(name: string): void {
    const before = this.variables.get(name)
    if (before !== undefined) this.#space.release(before, `${name}=`)
  }
}

function describe(name: string): string {
  return `environment variable ${name}`
}

/** Undefined: an optional thing that isn't there, so that the variable isn't either. */
function sourceValue(
  input: ResolveInput,
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
  const pod = input.fields.pod.spec
  const container = allContainers(pod).find((candidate) => candidate.name === name)
  const value = container && resourceFieldValue(reference, container, { pod, capacity: input.capacity })
  if (value !== undefined) return value
  throw new MissingReference(`unsupported resource: ${reference.resource} of container ${name}`)
}

type ObjectRef = { readonly kind: 'ConfigMap' | 'Secret'; readonly name: string; readonly optional: boolean }

function keyValue(input: ResolveInput, reference: ObjectRef & { readonly key: string }): string | undefined {
  const data = input.texts.get(reference)
  if (data === undefined) return undefined
  const value = data.get(reference.key)
  if (value !== undefined || reference.optional) return value
  const { namespace } = input.fields.pod.metadata
  throw new MissingReference(
    `couldn't find key ${reference.key} in ${reference.kind} ${namespace}/${reference.name}`,
  )
}

/** The texts of ConfigMaps (what is in binaryData is none) and Secrets, each decoded once however many refer to it. */
class ObjectTexts {
  readonly #input: EnvironmentInput
  readonly #decoded = new Map<string, ReadonlyMap<string, string> | undefined>()

  constructor(input: EnvironmentInput) {
    this.#input = input
  }

  /** Undefined: an optional object that isn't there. Throws MissingReference. */
  get({ kind, name, optional }: ObjectRef): ReadonlyMap<string, string> | undefined {
    const key = `${kind}/${name}`
    if (!this.#decoded.has(key)) this.#decoded.set(key, this.#decode(kind, name))
    const texts = this.#decoded.get(key)
    if (texts === undefined && !optional) {
      const { objects, fields } = this.#input
      throw missingObject(objects, { kind, namespace: fields.pod.metadata.namespace, name })
    }
    return texts
  }

  #decode(kind: ObjectRef['kind'], name: string): ReadonlyMap<string, string> | undefined {
    const { objects, fields } = this.#input
    const object = objects.get(kind, fields.pod.metadata.namespace, name)
    if (object === undefined) return undefined
    if (object.kind === 'ConfigMap') return new Map(Object.entries(object.data))
    return new Map([...objectData(object)].map(([key, value]) => [key, value.toString('utf8')]))
  }
}
