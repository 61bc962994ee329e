import { canonicalQuantity, quantityValue } from '../pod/values/quantity.ts'
import { duration, integer } from './option-type.ts'
import type { Decoded, OptionType } from './option-type.ts'
import { option } from './option.ts'

/** A size in bytes, written as a quantity (`10Mi`); a number below zero means none. */
const size: OptionType<number> = {
  label: 'SIZE',
  fromText: readSize,
  fromFile: (json) =>
    typeof json === 'string' || typeof json === 'number'
      ? readSize(String(json))
      : { kind: 'bad', message: 'must be a size such as 10Mi' },
  format: (bytes) => canonicalSize(bytes),
}

function readSize(text: string): Decoded<number> {
  if (canonicalQuantity(text) === undefined) return { kind: 'bad', message: 'must be a size such as 10Mi' }
  const bytes = quantityValue(text)
  return bytes === 0 ? { kind: 'bad', message: 'must not be 0' } : { kind: 'ok', value: bytes }
}

function canonicalSize(bytes: number): string {
  const units = ['Ti', 'Gi', 'Mi', 'Ki']
  const at = units.findIndex((_, index) => bytes > 0 && bytes % 1024 ** (units.length - index) === 0)
  return at === -1 ? String(bytes) : `${bytes / 1024 ** (units.length - at)}${units[at]}`
}

/** How the logs of containers are rotated; a part of the table in options.ts. */
export const logOptions = {
  containerLogMaxSizeBytes: option({
    field: 'containerLogMaxSize',
    flag: 'container-log-max-size',
    type: size,
    default: 10 * 1024 * 1024,
    owner: 'kubelet',
    zeroIsDefault: true,
    doc: "The size at which a container's log is rotated; a negative number for never.",
  }),
  containerLogMaxFiles: option({
    field: 'containerLogMaxFiles',
    flag: 'container-log-max-files',
    type: integer(2, 1000),
    default: 5,
    owner: 'kubelet',
    zeroIsDefault: true,
    doc: "How many files a container's log may have, including the current one. The oldest are removed.",
  }),
  containerLogMaxWorkers: option({
    field: 'containerLogMaxWorkers',
    type: integer(1, 1000),
    default: 1,
    owner: 'kubelet',
    zeroIsDefault: true,
    doc: 'How many logs are rotated at a time.',
  }),
  containerLogMonitorIntervalMs: option({
    field: 'containerLogMonitorInterval',
    type: duration(3000),
    default: 10_000,
    owner: 'kubelet',
    zeroIsDefault: true,
    doc: 'How often the sizes of logs are checked.',
  }),
} as const
