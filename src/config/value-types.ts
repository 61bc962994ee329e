import { isJsonObject } from '../base/json.ts'
import type { Json } from '../base/json.ts'
import type { Decoded, OptionType } from './option-type.ts'
import { path } from './option-type.ts'

/** The built-in values of a host for `${NAME}`: its node's name, its architecture as images have it, and its machine id. */
const hostFactNames: readonly string[] = ['NODE_NAME', 'ARCH', 'MACHINE_ID']

type Texts = Readonly<Record<string, string>>

/** Of one value. */
const mostValueBytes = 64 * 1024

/** Texts by the names of values; only the file has it. `readText` reads one. */
function namedTexts(what: string, readText: (json: Json) => Decoded<string>): OptionType<Texts> {
  return {
    label: 'MAPPING',
    fromText: () => bad('has to stand in the config file'),
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
      return { kind: 'ok', value: Object.fromEntries(texts) }
    },
    /** Values may be credentials. */
    format: (value) => Object.keys(value).join(', '),
  }
}

function bad(message: string): Extract<Decoded<never>, { kind: 'bad' }> {
  return { kind: 'bad', message }
}

/** Numbers and switches would lose how they are written (`1.20`): they have to be quoted. */
export const hostValues = namedTexts('texts', (json) => {
  if (typeof json !== 'string') return bad('must be text: put it in quotes')
  if (Buffer.byteLength(json) > mostValueBytes) return bad(`is larger than ${mostValueBytes / 1024} KiB`)
  return { kind: 'ok', value: json }
})

export const valueFiles = namedTexts('paths', (json) => path.fromFile(json))
