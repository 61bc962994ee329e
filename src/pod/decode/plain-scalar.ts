/**
 * Resolves an unquoted YAML scalar. Kubernetes reads YAML 1.1 as go-yaml v2 does (through sigs.k8s.io/yaml), and so
 * does podd: `yes`, `on` and `y` are booleans, `0644` and `0o644` are octal, `1_000` is a thousand; `12:30` is a string
 * and so is a date. A number is a JavaScript number, as everything becomes JSON. Source: sigs.k8s.io/yaml,
 * goyaml.v2/resolve.go.
 */
export type Plain = null | boolean | number | string

const words = new Map<string, Plain>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map(
    (word) => [word, true] as const,
  ),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (word) => [word, false] as const,
  ),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
])

const floatPattern = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/
const integerPattern = /^([-+]?)(?:(0[xX])([\da-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|(0|[1-9]\d*))$/
/** `.nan` and `.inf`, which JSON can't represent. */
const unspeakable = /^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$/

export function isUnspeakable(source: string): boolean {
  return unspeakable.test(source)
}

export function resolvePlain(source: string): Plain {
  const word = words.get(source)
  if (word !== undefined) return word
  if (!/^[-+.\d]/.test(source) || unspeakable.test(source)) return source
  const plain = source.startsWith('.') ? source : source.replaceAll('_', '')
  const integer = integerPattern.exec(plain)
  if (integer !== null) return readInteger(integer)
  if (!floatPattern.test(plain)) return source
  const value = Number(plain)
  return Number.isFinite(value) ? value : source
}

function readInteger(match: RegExpExecArray): number {
  const [, sign, , hex, , binary, , octal, decimal] = match
  const magnitude =
    hex !== undefined
      ? Number.parseInt(hex, 16)
      : binary !== undefined
        ? Number.parseInt(binary, 2)
        : octal !== undefined
          ? Number.parseInt(octal, 8)
          : Number(decimal)
  return sign === '-' && magnitude !== 0 ? -magnitude : magnitude
}
