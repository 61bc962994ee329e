import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { readBounded } from '../../base/read-bounded.ts'
import { readProviderConfig, repeatedNames } from '../../decide/images/provider-config.ts'
import type { CredentialProvider, ProviderConfigReading } from '../../decide/images/provider-config.ts'
import { readYamlDocuments } from '../../pod/decode/read-documents.ts'

const maxBytes = 1024 * 1024
const extensions: readonly string[] = ['.json', '.yaml', '.yml']

/** The text of each file of a CredentialProviderConfig, by path. */
export type ProviderFiles = ReadonlyMap<string, string>

/**
 * Reads a file, or the `.json`, `.yaml` and `.yml` files of a directory in the order of their names
 * (`pkg/credentialprovider/plugin/config.go`, readCredentialProviderConfig, 1.36). Throws what the system throws.
 */
export async function readProviderFiles(path: string, clock: Clock): Promise<ProviderFiles> {
  const isDirectory = (await stat(path)).isDirectory()
  const paths = isDirectory ? await listFiles(path) : [path]
  const files = new Map<string, string>()
  for (const file of paths)
    files.set(file, (await readBounded(file, { maxBytes, clock })).subarray(0, maxBytes).toString('utf8'))
  return files
}

async function listFiles(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true })
  return entries
    .filter((entry) => !entry.isDirectory() && extensions.includes(extname(entry.name)))
    .map(({ name }) => join(directory, name))
    .sort()
}

/** The providers of all files. Where one of them is wrong, its problems and no providers. */
export async function parseProviderFiles(path: string, files: ProviderFiles): Promise<ProviderConfigReading> {
  if (files.size === 0) return { providers: [], problems: [`${path}: no configuration files in it`] }
  const providers: CredentialProvider[] = []
  const problems: string[] = []
  for (const [file, text] of files) {
    const read = await parseFile(text)
    providers.push(...read.providers)
    problems.push(...read.problems.map((problem) => `${file}: ${problem}`))
  }
  problems.push(...repeatedNames(providers.map(({ name }) => name)))
  return problems.length > 0 ? { providers: [], problems } : { providers, problems }
}

async function parseFile(text: string): Promise<ProviderConfigReading> {
  try {
    const documents = [...(await readYamlDocuments(text))]
    const [document] = documents
    if (document === undefined || documents.length > 1)
      return { providers: [], problems: ['must hold one CredentialProviderConfig'] }
    return document.kind === 'read'
      ? readProviderConfig(document.value)
      : { providers: [], problems: [document.message] }
  } catch (error) {
    return { providers: [], problems: [errorMessage(error)] }
  }
}
