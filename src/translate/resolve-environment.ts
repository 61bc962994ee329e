/* A container's environment, from its manifest, objects, fields and files of `NAME='value'` lines. */
import { objectData } from '../pod/objects/local-object.ts'
import type { ObjectReader } from '../pod/objects/local-object.ts'
import type { ContainerSpec, EnvVar } from '../pod/schema/container-schema.ts'
import { ExecSpace } from './environment.ts'
import type { Environment, ExecLimits } from './environment.ts'
import { fieldValue, missingObject, MissingReference, resourceFieldValue } from './references.ts'
import type { FieldFacts } from './references.ts'
import { allContainers } from '../pod/schema/pod-resources.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'

type FileRef = NonNullable<NonNullable<EnvVar['valueFrom']>['fileKeyRef']>

export interface EnvironmentInput {
  readonly container: Pick<ContainerSpec, 'name' | 'env' | 'envFrom'>
  readonly fields: FieldFacts
  /** The value of an unset limit: the host's capacity. */
  readonly capacity: ResourceList
  readonly objects: ObjectReader
  readonly limits: ExecLimits
  /** The variables of Services. */
  readonly services: ReadonlyMap<string, string>
  /** The value that a file in a volume gives; undefined where there is no such file or key. */
  readonly fileValue: (reference: FileRef) => string | undefined
}

type ResolveInput = EnvironmentInput & { readonly texts: ObjectTexts }

/**
 * A container's environment: all of envFrom, then env in order, each value expanded with what came before it and with the
 * variables of Services; and of these all that have no other value (`pkg/kubelet/kubelet_pods.go` makeEnvironmentVariables, 1.36).
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
  environment.addServices()
  return environment.variables
}

/** An environment within exec(2)'s limits. */
class BoundedEnvironment {
  readonly variables = new Map<string, string>()
  readonly #services: ReadonlyMap<string, string>
  readonly #space: ExecSpace

  constructor({ container, limits, services }: EnvironmentInput) {
    this.#services = services
    this.#space = new ExecSpace(container.name, limits)
  }

  addServices(): void {
    for (const [name, value] of this.#services) if (!this.variables.has(name)) this.set(name, value)
  }

  set(name: string, value: string): void {
    this.#release(name)
    this.#space.take(describe(name), value, `${name}=`)
    this.variables.set(name, value)
  }

  /** Expands a value with the variables so far. */
  setExpanded(name: string, value: string): void {
    this.#release(name)
    const known = { get: (key: string) => this.variables.get(key) ?? this.#services.get(key) }
    const expanded = this.#space.expand(describe(name), value, known, `${name}=`)
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

/** The content of a file of `NAME='value'` lines. */
export interface EnvFile {
  /** The first value of each name, of the lines before the problem where there is one. */
  readonly values: ReadonlyMap<string, string>
  /** Why the file can't be read from some line on; the message only names the line. */
  readonly problem: Error | undefined
}

const blanks = /[ \t]*/uy
/** With the comment before it. */
const lineEnd = /(?:#[^\n]*)?(?:\r?\n|\r?$)/uy
const beforeEquals = /[^=\n]*/uy
const equals = /=/uy
const blankAndRest = /[ \t][^\n]*/uy
const quoted = /'[^']*'/uy

/**
 * Reads a file of `NAME='value'` lines. Values stand in single quotes, literally, and may span lines; a comment may
 * follow them. A blank right after `=` makes the value empty (`pkg/kubelet/util/env/env_util.go`, 1.36). Takes linear
 * time, since containers write such files.
 */
export function parseEnvFile(text: string): EnvFile {
  const values = new Map<string, string>()
  let at = 0
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const taken = pattern.exec(text)?.[0]
    at += taken?.length ?? 0
    return taken
  }
  const fail = (problem: string, offset: number): EnvFile => {
    const line = text.slice(0, offset).split('\n').length
    return { values, problem: new Error(`invalid environment variable format at line ${line}: ${problem}`) }
  }
  while (at < text.length) {
    take(blanks)
    if (take(lineEnd) !== undefined) continue
    const start = at
    const name = take(beforeEquals) ?? ''
    if (take(equals) === undefined) return fail("missing '='", start)
    if (name.trim() === '') return fail('empty variable name', start)
    if (name.endsWith(' ') || name.endsWith('\t')) return fail("whitespace before '=' is not allowed", start)
    let value = ''
    if (take(blankAndRest) === undefined) {
      const isOpen = text[at] === "'"
      const inQuotes = take(quoted)
      if (inQuotes === undefined)
        return fail(isOpen ? 'unclosed single quote' : 'value must be enclosed in single quotes', start)
      value = inQuotes.slice(1, -1).replaceAll('\r\n', '\n')
      take(blanks)
    }
    if (take(lineEnd) === undefined) return fail('unexpected content after closing quote', at)
    if (!values.has(name)) values.set(name, value)
  }
  return { values, problem: undefined }
}

/**
 * The value of one key; undefined where the file doesn't name it.
 * @throws Error where a line before the key is of another form
 */
export function envFileValue({ values, problem }: EnvFile, key: string): string | undefined {
  const value = values.get(key)
  if (value === undefined && problem !== undefined) throw problem
  return value
}
