import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { readBounded, readStream } from '../../base/read-bounded.ts'
import { word } from '../../config/option-type.ts'
import type { DecodeOptions } from '../../pod/decode/decode-documents.ts'
import { decodeDocuments, maxSourceBytes, unreadable } from '../../pod/decode/decode-documents.ts'
import type { Problem, SourceDocument } from '../../pod/objects/document.ts'
import { documentKey, errorAt, isPodDocument } from '../../pod/objects/document.ts'
import { formatProblem } from '../output/report-format.ts'
import { isKustomization, lookAtKustomization } from '../../sources/kustomization.ts'
import type { KustomizationLook } from '../../sources/kustomization.ts'
import { listManifests, lookAtFile } from '../../sources/read-manifest-file.ts'
import type { FileLook } from '../../sources/read-manifest-file.ts'
import { isSourceUrl, showUrl } from '../../base/http.ts'
import type { FlagSpec } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { VerbContext } from '../arguments/verb.ts'
import type { CheckSignature } from './check-signature.ts'
import type { ValuesOf } from './read-host-values.ts'

const fieldValidation = word('Strict', 'Warn')

export const filenameFlag: FlagSpec = {
  name: 'filename',
  short: 'f',
  label: 'FILE|DIRECTORY|URL',
  doc: 'The manifests; - for standard input. May be given more than once.',
}

export const kustomizeFlag: FlagSpec = {
  name: 'kustomize',
  short: 'k',
  label: 'DIRECTORY',
  doc: 'A directory with a kustomization.yaml, which `kubectl kustomize` or `kustomize build` makes into manifests: one of the two has to be installed. May be given more than once.',
}

export const fieldValidationFlag: FlagSpec = {
  name: 'field-validation',
  label: fieldValidation.label,
  doc: 'Whether unknown fields are errors (Strict, the default) or warnings.',
}

export const substituteFlag: FlagSpec = {
  name: 'substitute',
  doc: "Puts this host's values in place of ${NAME}, as for a source that says `substitute: true`; the daemon is asked for ${NODE_NAME}.",
}

export const recursiveFlag: FlagSpec = {
  name: 'recursive',
  short: 'R',
  doc: 'Reads the subdirectories of directories too, as a source that says `recursive: true` does.',
}

export const verifyFlag: FlagSpec = {
  name: 'verify',
  doc: 'Checks the signature of each manifest (FILE.minisig, URL.minisig) by the keys of all sources in the config.',
}

export const keyFlag: FlagSpec = {
  name: 'key',
  label: 'KEY|FILE',
  doc: 'Checks signatures by this public key of minisign, or that of a .pub file, instead. May be given more than once.',
}

export interface ReadManifest {
  /** As given; `-` for standard input. */
  readonly path: string
  readonly text: Uint8Array | string
  readonly documents: readonly SourceDocument[]
}

interface ReadManifests {
  readonly files: readonly ReadManifest[]
  readonly documents: readonly SourceDocument[]
  /** The problems of all files, including duplicate objects. */
  readonly problems: readonly Problem[]
}

/**
 * Reads manifests as the daemon does: files, URLs, `-` for standard input, and of directories the files that the directory
 * source reads. Throws PoddError UNREADABLE where one that was named can't be read, and UsageError.
 */
export async function readManifests(
  context: VerbContext,
  paths: readonly string[],
  {
    isRecursive = context.args.has('recursive'),
    needsSignatures = context.args.has('verify') || context.args.has('key'),
  }: { readonly isRecursive?: boolean; readonly needsSignatures?: boolean } = {},
): Promise<ReadManifests> {
  const given = (await Promise.all(paths.map((path) => expand(path, isRecursive)))).flat()
  const built = context.args.values('kustomize').map((directory): NamedFile => {
    return { path: join(directory, 'kustomization.yaml'), isListed: false, kustomized: directory }
  })
  const named = [...given, ...built]
  // The config is read only where needed.
  const valuesOf = context.args.has('substitute')
    ? await (await import('./read-host-values.ts')).readHostValues(context)
    : undefined
  const checkSignature = needsSignatures
    ? await (await import('./check-signature.ts')).createCheckSignature(context)
    : undefined
  const files: ReadManifest[] = []
  const problems: Problem[] = []
  for (const file of named) {
    const read = await readFile(context, file, valuesOf, checkSignature)
    files.push(read.file)
    problems.push(...read.problems)
  }
  const documents = files.flatMap((file) => file.documents)
  return { files, documents, problems: [...problems, ...findConflicts(documents)] }
}

/** A problem as one line, with `warning` for warnings. */
export function formatProblemLine(problem: Problem): string {
  if (problem.severity === 'error') return formatProblem(problem)
  const { field, message, ...rest } = problem
  return formatProblem({ ...rest, message: `warning: ${field === undefined ? '' : `${field}: `}${message}` })
}

interface NamedFile {
  readonly path: string
  /** It was found in a directory: pipes are allowed only where given explicitly. */
  readonly isListed: boolean
  /** As it was found, of a kustomization in a directory. */
  readonly look?: FileLook | undefined
  /** The directory whose kustomization makes it. */
  readonly kustomized?: string | undefined
}

async function expand(path: string, isRecursive: boolean): Promise<readonly NamedFile[]> {
  const named = [{ path, isListed: false }]
  if (path === '-' || isSourceUrl(path)) return named
  try {
    if (!(await stat(path)).isDirectory()) return named
    const names = (await listManifests(path, isRecursive)).toSorted()
    const looks = new Map<string, KustomizationLook>()
    for (const name of names)
      if (isKustomization(name)) looks.set(name, await lookAtKustomization(path, name))
    // What a kustomization refers to gives nothing by itself.
    const isReferred = (name: string): boolean =>
      [...looks].some(
        ([other, { files, isCircle }]) => files.has(name) && !(isCircle && looks.has(name) && other !== name),
      )
    return names
      .filter((name) => !isReferred(name))
      .map((name) => {
        const [file, look] = [join(path, name), looks.get(name)?.look]
        return { path: file, isListed: true, look, kustomized: look && dirname(file) }
      })
  } catch (error) {
    throw cannotRead(path, error)
  }
}

async function readFile(
  context: VerbContext,
  { path, isListed, look: known, kustomized }: NamedFile,
  valuesOf: ValuesOf | undefined,
  checkSignature: CheckSignature | undefined,
): Promise<{ readonly file: ReadManifest; readonly problems: readonly Problem[] }> {
  const wanted = fieldValidation.fromText(context.args.value('field-validation') ?? 'Strict')
  if (wanted.kind === 'bad') throw new UsageError(`--field-validation ${wanted.message}`)
  const look = known ?? (isListed ? await lookAtFile(path) : undefined)
  if (look?.kind === 'unreadable') {
    const { documents, problems } = unreadable({ path }, look.reason)
    return { file: { path, text: '', documents }, problems }
  }
  const text =
    kustomized === undefined
      ? await readText(context, path)
      : await buildKustomization(kustomized, context.signal)
  const fault = await checkSignature?.(path, text)
  if (fault !== undefined) {
    const problem = errorAt(placeOf(path), fault.message, fault.hint)
    return { file: { path, text: '', documents: [] }, problems: [problem] }
  }
  const options: DecodeOptions = {
    path: placeOf(path),
    fieldValidation: wanted.value,
    ...(valuesOf !== undefined && { values: await valuesOf(text) }),
    ...whenEmpty(path),
  }
  let decoded = await decodeDocuments(text, options)
  if (decoded.problems.some((problem) => isRefusedKind(problem))) {
    const ignoreKinds = await readIgnoredKinds(context)
    if (ignoreKinds.length > 0) decoded = await decodeDocuments(text, { ...options, ignoreKinds })
  }
  return { file: { path, text, documents: decoded.documents }, problems: decoded.problems }
}

function isRefusedKind({ reason, field = '' }: Problem): boolean {
  return reason === 'RefusedHere' && /(?:^|\.)kind$/u.test(field)
}

/** What the config says to take without effect. */
async function readIgnoredKinds(context: VerbContext): Promise<readonly string[]> {
  const { loadConfig } = await import('./load-config.ts')
  try {
    return (await loadConfig(context)).config.ignoreKinds
  } catch {
    // Without it such kinds are refused; whoever checks the config itself says what is wrong with it.
    return []
  }
}

async function readText(context: VerbContext, path: string): Promise<Uint8Array> {
  if (path === '-') return await readStream(context.stdio.stdin, maxSourceBytes)
  if (isSourceUrl(path)) {
    // The HTTP client is loaded only where needed.
    const { readUrl } = await import('./read-url.ts')
    return await readUrl(path, context)
  }
  try {
    return await readBounded(path, { maxBytes: maxSourceBytes, clock: context.clock })
  } catch (error) {
    throw cannotRead(path, error)
  }
}

/** Bases may be fetched from elsewhere. */
const buildMs = 120_000

/** The manifests that the kustomization of a directory makes. Throws PoddError UNREADABLE. */
async function buildKustomization(directory: string, signal: AbortSignal): Promise<Uint8Array> {
  const { commandOutput, findExecutable } = await import('../../host/run-command.ts')
  const kubectl = findExecutable('kubectl')
  const program = kubectl ?? findExecutable('kustomize')
  if (program === undefined) {
    const message = `cannot build ${directory}: neither kubectl nor kustomize is installed`
    const hint =
      'Install one of them, or have another machine build it: `kubectl kustomize DIRECTORY >web.yaml`, and `podd apply -f web.yaml` here.'
    throw new PoddError('UNREADABLE', message, { hint })
  }
  const args = kubectl === undefined ? ['build', directory] : ['kustomize', directory]
  try {
    return Buffer.from(await commandOutput(program, args, { timeoutMs: buildMs, signal }))
  } catch (error) {
    signal.throwIfAborted()
    throw new PoddError('UNREADABLE', `cannot build ${directory}: ${errorMessage(error)}`, { cause: error })
  }
}

/** Nothing was read from these before that could stay, or end. */
function whenEmpty(path: string): Pick<DecodeOptions, 'whenEmpty'> {
  if (path === '-') return { whenEmpty: 'empty: standard input ended without a manifest' }
  return isSourceUrl(path) ? { whenEmpty: 'the answer is empty: a source takes nothing from it' } : {}
}

/** The name of the place in problems, and of the source of such documents. */
export function placeOf(name: string): string {
  if (name === '-') return '<stdin>'
  return isSourceUrl(name) ? showUrl(name) : name
}

function cannotRead(path: string, cause: unknown): PoddError {
  return new PoddError('UNREADABLE', `cannot read ${path}: ${errorMessage(cause)}`, { cause })
}

/** Duplicate objects: the daemon would run only the first one. */
function findConflicts(documents: readonly SourceDocument[]): readonly Problem[] {
  const seen = new Map<string, SourceDocument>()
  return documents.flatMap((document) => {
    const object = documentKey(document)
    const first = seen.get(object)
    if (first === undefined) {
      seen.set(object, document)
      return []
    }
    const { path, line, column } = first.place
    const what = isPodDocument(document) ? `pod ${object}` : object
    const message = `${what} stands in ${[path, line, column].filter((part) => part !== undefined).join(':')} already`
    return [{ severity: 'error', place: document.place, field: 'metadata.name', message, object }]
  })
}
