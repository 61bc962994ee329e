import { isJsonObject, objectOrEmpty } from '../base/json.ts'
import type { Json } from '../base/json.ts'
import { canonicalQuantity } from '../pod/values/quantity.ts'
import { bad, ok, onlyInFile, path, splitPairs } from './option-type.ts'
import type { Decoded, OptionType } from './option-type.ts'

type Check = (item: string) => string | undefined

/** Texts: separated by commas in a flag, a list in the file. `check` says what is wrong with one (`must be …`). */
export function textList(label: string, check: Check): OptionType<readonly string[]> {
  const decode = (items: readonly string[]): Decoded<readonly string[]> => {
    for (const item of items) {
      const wrong = check(item)
      if (wrong !== undefined) return bad(`${JSON.stringify(item)} ${wrong}`)
    }
    return ok(items)
  }
  return {
    label: `${label}[,...]`,
    fromText: (text) => decode(text.split(',').filter((item) => item !== '')),
    fromFile(json) {
      const items = textsOf(json)
      return items === undefined ? bad('must be a list of texts') : decode(items)
    },
    format: (items) => items.join(','),
  }
}

/** Accepts numbers, such as ports, as their text. */
function textsOf(json: Json): readonly string[] | undefined {
  if (!Array.isArray(json)) return undefined
  const texts = json.flatMap((item) =>
    typeof item === 'string' || typeof item === 'number' ? [String(item)] : [],
  )
  return texts.length === json.length ? texts : undefined
}

export type Resources = Readonly<Record<string, string>>

/** Quantities by resource: `cpu=200m,memory=500Mi` in a flag, a mapping in the file. `idle` are taken with no effect. */
interface ResourceNames {
  /** Accepted resources without effect, with the reason. */
  readonly idle: ReadonlyMap<string, string>
  readonly isKnown: (name: string) => boolean
}

function resourceList(names: ResourceNames): OptionType<Resources> {
  return {
    label: 'RESOURCE=QUANTITY[,...]',
    fromText(text) {
      return readResources(Object.fromEntries(splitPairs(text, '=')), names)
    },
    fromFile: (json) =>
      isJsonObject(json) ? readResources(json, names) : bad('must be a mapping of quantities'),
    format: (value) =>
      Object.entries(value)
        .map(([name, quantity]) => `${name}=${quantity}`)
        .join(','),
  }
}

const idleDisk = ['ephemeral-storage', 'podd keeps no disk space back from pods'] as const

/** The resources that the kubelet can reserve (`cmd/kubelet/app/server.go`, parseResourceList, 1.36). */
export const reservedResources = resourceList({
  idle: new Map([idleDisk, ['pid', 'podd does not count the processes of the host']]),
  isKnown: isCpuOrMemory,
})
const overheadResources = resourceList({
  idle: new Map([idleDisk]),
  isKnown: (name) => isCpuOrMemory(name) || name.startsWith('hugepages-'),
})

function isCpuOrMemory(name: string): boolean {
  return name === 'cpu' || name === 'memory'
}

function readResources(
  mapping: Readonly<Record<string, Json | undefined>>,
  { idle, isKnown }: ResourceNames,
): Decoded<Resources> {
  const result: Record<string, string> = {}
  const warnings: string[] = []
  for (const [name, amount] of Object.entries(mapping)) {
    const quantity =
      typeof amount === 'string' || typeof amount === 'number' ? canonicalQuantity(String(amount)) : undefined
    if (quantity === undefined || quantity.startsWith('-'))
      return bad(`${name} must be a quantity such as 200m or 500Mi`)
    const reason = idle.get(name)
    if (reason !== undefined) warnings.push(`${name} has no effect: ${reason}`)
    else if (isKnown(name)) result[name] = quantity
    else return bad(`must not name ${JSON.stringify(name)}: there are cpu and memory`)
  }
  return okWith(result, warnings)
}

function okWith<T>(value: T, warnings: readonly string[]): Decoded<T> {
  return { kind: 'ok', value, ...(warnings.length > 0 && { warnings }) }
}

/** A RuntimeClass in the config. */
interface RuntimeClassSetting {
  readonly handler: string
  readonly overhead?: Resources | undefined
}

type RuntimeClassSettings = Readonly<Record<string, RuntimeClassSetting>>

/** By name: `{gvisor: {handler: runsc, overhead: {memory: 64Mi}}}`; only the file has it. */
export const runtimeClasses: OptionType<RuntimeClassSettings> = {
  label: 'MAPPING',
  fromText: onlyInFile,
  fromFile(json) {
    if (!isJsonObject(json)) return bad('must be a mapping of names')
    const result = new Map<string, RuntimeClassSetting>()
    const warnings: string[] = []
    for (const [name, entry] of Object.entries(json)) {
      const read = readRuntimeClass(entry)
      if (read.kind === 'bad') return bad(`${name} ${read.message}`)
      result.set(name, read.value)
      warnings.push(...(read.warnings ?? []).map((warning) => `in the overhead of ${name}, ${warning}`))
    }
    return okWith(Object.fromEntries(result), warnings)
  },
  format: (value) => Object.keys(value).join(', '),
}

function readRuntimeClass(entry: Json): Decoded<RuntimeClassSetting> {
  const { handler, overhead = {}, ...unknown } = objectOrEmpty(entry)
  if (typeof handler !== 'string' || handler === '') return bad('must have a handler')
  const [unknownField] = Object.keys(unknown)
  if (unknownField !== undefined) return bad(`has the unknown field ${unknownField}`)
  const amounts = overheadResources.fromFile(overhead)
  if (amounts.kind === 'bad') return bad(`has an overhead that ${amounts.message}`)
  const isNone = Object.keys(amounts.value).length === 0
  return okWith(isNone ? { handler } : { handler, overhead: amounts.value }, amounts.warnings ?? [])
}

/** The built-in values of a host for `${NAME}`: its node's name, its architecture as images have it, and its machine id. */
const hostFactNames: readonly string[] = ['NODE_NAME', 'ARCH', 'MACHINE_ID']

type Texts = Readonly<Record<string, string>>

/** Of one value. */
const maxValueBytes = 64 * 1024

/** Texts by the names of values; only the file has it. `readText` reads one. */
function namedTexts(what: string, readText: (json: Json) => Decoded<string>): OptionType<Texts> {
  return {
    label: 'MAPPING',
    fromText: onlyInFile,
    fromFile(json) {
      if (!isJsonObject(json)) return bad(`must be a mapping of ${what}`)
      const texts = new Map<string, string>()
      for (const [name, entry] of Object.entries(json)) {
        if (!/^[A-Za-z_][A-Za-z0-9_]*$/u.test(name))
          return bad(`${JSON.stringify(name)} must be of letters, digits and underscores`)
        if (hostFactNames.includes(name)) return bad(`must not name ${name}, which the host itself gives`)
        const read = readText(entry ?? null)
        if (read.kind === 'bad') return bad(`${name} ${read.message}`)
        texts.set(name, read.value)
      }
      return ok(Object.fromEntries(texts))
    },
    /** Values may be credentials. */
    format: (value) => Object.keys(value).join(', '),
  }
}

/** Numbers and switches would lose how they are written (`1.20`): they have to be quoted. */
export const hostValues = namedTexts('texts', (json) => {
  if (typeof json !== 'string') return bad('must be text: put it in quotes')
  if (Buffer.byteLength(json) > maxValueBytes) return bad(`is larger than ${maxValueBytes / 1024} KiB`)
  return ok(json)
})

export const valueFiles = namedTexts('paths', (json) => path.fromFile(json))
