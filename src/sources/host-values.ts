import { errorMessage, PoddError } from '../base/errors.ts'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { hostname } from 'node:os'
import { readRest } from '../base/read-bounded.ts'
import { readMachineInfo } from '../host/facts/node-info.ts'
import type { HostValues } from '../pod/decode/substitute-values.ts'
import type { DecodeSource } from './decode-source.ts'
import { DecodeUnavailable } from './decode-thread.ts'

/** Of one value. */
const mostValueBytes = 64 * 1024

/** What `hostFactNames` lists. */
export function readHostFacts(hostnameOverride: string | undefined): HostValues {
  return {
    NODE_NAME: hostnameOverride ?? hostname().toLowerCase(),
    ARCH: process.arch === 'x64' ? 'amd64' : process.arch,
    MACHINE_ID: readMachineInfo().machineId,
  }
}

/** Reads the values of a host: those that are given, and the contents of files without the newline at their end. */
export class HostValueReader {
  readonly #given: HostValues
  readonly #files: Readonly<Record<string, string>>
  #read: Promise<HostValues> | undefined
  /** What the files gave last, or why they couldn't be read. */
  #said: string | undefined

  /** @param files paths by the names of the values */
  constructor(given: HostValues, files: Readonly<Record<string, string>>) {
    this.#given = given
    this.#files = files
  }

  get paths(): readonly string[] {
    return Object.values(this.#files)
  }

  /** What was read last. Where a file couldn't be read, all are read again. Throws PoddError SOURCE_FILE. */
  read(): Promise<HostValues> {
    this.#read ??= this.#readAll().catch((error: unknown) => {
      this.#read = undefined
      throw error
    })
    return this.#read
  }

  /** Reads the files again. Gives whether they say something else than before, or can't be read now. Never rejects. */
  async reread(): Promise<boolean> {
    await this.#read?.catch(() => undefined)
    const before = this.#said
    // Whoever reads them first gets what they say then.
    if (before === undefined) return false
    this.#read = undefined
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
    const bytes = await readStart(path)
    if (bytes.byteLength > mostValueBytes)
      throw new PoddError('SOURCE_FILE', `it is larger than ${mostValueBytes / 1024} KiB`)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/u, '')
  } catch (error) {
    throw new PoddError('SOURCE_FILE', `cannot use the value in ${path}: ${errorMessage(error)}`, {
      cause: error,
    })
  }
}

/** So much of a file as a value may have, and one byte. */
async function readStart(path: string): Promise<Buffer> {
  // A FIFO must not make this wait.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    return await readRest(file, mostValueBytes)
  } finally {
    await file.close()
  }
}

/** Decodes texts with the host's values in them. Without the values none is decoded, and what it gave before stays. */
export function decodeWithValues(decode: DecodeSource, values: HostValueReader): DecodeSource {
  return async (bytes, options) => {
    const known = await values.read().catch((error: unknown) => {
      throw new DecodeUnavailable(errorMessage(error), error)
    })
    return await decode(bytes, { ...options, values: known })
  }
}

/**
 * A URL with the host's values in it, encoded, so that none changes what the URL is made of.
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
