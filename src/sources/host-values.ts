import { errorMessage, PoddError } from '../base/errors.ts'
import { readHostname, readMachineInfo } from '../host/facts/host-info.ts'
import { readAtOnce } from '../base/read-bounded.ts'
import type { HostValues } from '../pod/decode/substitute-values.ts'
import { DecodeUnavailable } from './decode-source.ts'
import type { DecodeSource } from './decode-source.ts'

/** The largest value, in bytes. */
const maxValueBytes = 64 * 1024

/** What `hostFactNames` lists. */
export function readHostFacts(hostnameOverride: string | undefined): HostValues {
  return {
    NODE_NAME: hostnameOverride ?? readHostname(),
    ARCH: process.arch === 'x64' ? 'amd64' : process.arch,
    MACHINE_ID: readMachineInfo().machineId,
  }
}

/** Reads the values of a host: configured ones, and the contents of files without a final newline. */
export class HostValueReader {
  readonly #given: HostValues
  readonly #files: Readonly<Record<string, string>>
  #read: Promise<HostValues> | undefined
  /** The values last read from the files, or why they couldn't be read. */
  #said: string | undefined

  /** @param files paths by the names of the values */
  constructor(given: HostValues, files: Readonly<Record<string, string>>) {
    this.#given = given
    this.#files = files
  }

  get paths(): readonly string[] {
    return Object.values(this.#files)
  }

  /** The values last read. Where a file couldn't be read, all are read again. Throws PoddError SOURCE_FILE. */
  read(): Promise<HostValues> {
    this.#read ??= this.#readAll().catch((error: unknown) => {
      this.#read = undefined
      throw error
    })
    return this.#read
  }

  /** Reads the files again. Returns whether their content changed or can't be read. Never rejects. */
  async reread(): Promise<boolean> {
    // Whoever began it gets the error, and `#said` has it.
    await this.#read?.catch(() => undefined)
    const before = this.#said
    // The next reader gets their content then.
    if (before === undefined) return false
    this.#read = undefined
    // `#said` has the error, which the next reader gets.
    await this.read().catch(() => undefined)
    return before !== this.#said
  }

  async #readAll(): Promise<HostValues> {
    try {
      const entries = await Promise.all(
        Object.entries(this.#files).map(async ([name, path]) => [name, await readValue(path)] as const),
      )
      this.#said = JSON.stringify(entries)
      return { ...this.#given, ...Object.fromEntries(entries) }
    } catch (error) {
      this.#said = errorMessage(error)
      throw error
    }
  }
}

async function readValue(path: string): Promise<string> {
  try {
    const bytes = await readAtOnce(path, maxValueBytes)
    if (bytes.byteLength > maxValueBytes)
      throw new PoddError('SOURCE_FILE', `it is larger than ${maxValueBytes / 1024} KiB`)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/u, '')
  } catch (error) {
    throw new PoddError('SOURCE_FILE', `cannot use the value in ${path}: ${errorMessage(error)}`, {
      cause: error,
    })
  }
}

/**
 * Decodes texts with the host's values substituted. Where the values can't be read nothing is decoded, and earlier
 * documents stay.
 */
export function decodeWithValues(decode: DecodeSource, values: HostValueReader): DecodeSource {
  return async (bytes, options) => {
    const known = await values.read().catch((error: unknown) => {
      throw new DecodeUnavailable(errorMessage(error), error)
    })
    return await decode(bytes, { ...options, values: known })
  }
}

/**
 * A URL with the host's values substituted. They are percent-encoded, so that none changes the URL's structure.
 * @throws PoddError SOURCE_URL where a name is unknown
 */
export function urlWithValues(template: string, values: HostValues): string {
  return template.replaceAll(/\$\{([^{}]*)\}/gu, (found, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value !== undefined) return encodeURIComponent(value)
    throw new PoddError('SOURCE_URL', `this host has no value ${found} for the URL ${template}`, {
      hint: 'Name it in `values` of the config file.',
    })
  })
}
