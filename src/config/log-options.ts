import { canonicalQuantity, quantityValue } from '../pod/values/quantity.ts'
import { bad, ok, duration, integer, kubeletOption, poddOption } from './option-type.ts'
import type { Decoded, OptionType } from './option-type.ts'

function sized<T>(
  read: (text: string) => Decoded<T>,
  words: string,
  format: (value: T) => string,
): OptionType<T> {
  return {
    label: 'SIZE',
    isOpen: true,
    fromText: read,
    fromFile: (json) =>
      typeof json === 'string' || typeof json === 'number' ? read(String(json)) : bad(words),
    format,
  }
}

const sizeWords = 'must be a size such as 10Mi'

/** A size in bytes, written as a quantity (`10Mi`); a number below zero means none. */
export const size = sized(readSize, sizeWords, formatSize)

function readSize(text: string): Decoded<number> {
  if (canonicalQuantity(text) === undefined) return bad(sizeWords)
  const bytes = quantityValue(text)
  return bytes === 0 ? bad('must not be 0') : ok(bytes)
}

/** With the largest unit of which it is a whole number. */
export function formatSize(bytes: number): string {
  const units = ['Ti', 'Gi', 'Mi', 'Ki']
  const at = units.findIndex((_, index) => bytes > 0 && bytes % 1024 ** (units.length - index) === 0)
  return at === -1 ? String(bytes) : `${bytes / 1024 ** (units.length - at)}${units[at]}`
}

/** A part of a disk, or a number of bytes; undefined for no limit. */
export type LogTotal = { readonly percent: number } | { readonly bytes: number } | undefined

const totalWords = 'must be a size such as 2Gi, or a part of the disk such as 10%'

/** A size, or a part of the disk (`10%`); a number below zero means no limit. */
const sizeOrPercent = sized<LogTotal>(readTotal, totalWords, (total) => {
  if (total === undefined) return '-1'
  return 'percent' in total ? `${total.percent}%` : formatSize(total.bytes)
})

function readTotal(text: string): Decoded<LogTotal> {
  const percent = /^(\d{1,3})%$/u.exec(text)?.[1]
  if (percent !== undefined) {
    const value = Number(percent)
    return value >= 1 && value <= 100 ? ok({ percent: value }) : bad('must be from 1% to 100%')
  }
  const size = readSize(text)
  if (size.kind === 'bad') return canonicalQuantity(text) === undefined ? bad(totalWords) : size
  return ok(size.value < 0 ? undefined : { bytes: size.value })
}

/** How the logs of containers are rotated; a part of the table in options.ts. */
export const logOptions = {
  containerLogMaxSizeBytes: kubeletOption('containerLogMaxSize', 10 * 1024 * 1024, size, {
    flag: 'container-log-max-size',
    zeroIsDefault: true,
    doc: "The size at which a container's log is rotated; a negative number for never.",
  }),
  containerLogMaxFiles: kubeletOption('containerLogMaxFiles', 5, integer(2, 1000), {
    flag: 'container-log-max-files',
    zeroIsDefault: true,
    doc: "How many files a container's log may have, including the current one. The oldest are removed.",
  }),
  containerLogMaxWorkers: kubeletOption('containerLogMaxWorkers', 1, integer(1, 1000), {
    zeroIsDefault: true,
    doc: 'How many logs are rotated at a time.',
  }),
  containerLogMonitorIntervalMs: kubeletOption('containerLogMonitorInterval', 10_000, duration(3000), {
    zeroIsDefault: true,
    doc: 'How often the sizes of logs are checked.',
  }),
  containerLogTotalMaxSize: poddOption('containerLogTotalMaxSize', { percent: 10 }, sizeOrPercent, {
    flag: 'container-log-total-max-size',
    secret: false,
    doc: 'How much the logs of all containers may take, as a size or as a part of the disk that they are on (at least 100Mi, or half of the disk where that is less); a negative number for no limit. Above it the oldest rotated logs are removed, and those of removed pods. The files that containers write to are never removed.',
  }),
  removedPodLogMaxAgeMs: poddOption('removedPodLogMaxAge', 0, duration(0), {
    flag: 'removed-pod-log-max-age',
    doc: 'How long the logs of a removed pod are kept, for `podd logs`; 0 removes them with the pod. They count for containerLogTotalMaxSize.',
  }),
} as const
