import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { readBounded, readStream } from '../../base/read-bounded.ts'
import { word } from '../../config/option-type.ts'
import { decodeDocuments, maxSourceBytes, unreadable } from '../../pod/decode/decode-documents.ts'
import type { Problem, SourceDocument } from '../../pod/objects/document.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import { formatProblem } from '../../pod/objects/format-problem.ts'
import { isManifestName } from '../../sources/manifest-name.ts'
import { lookAtFile } from '../../sources/read-manifest-file.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'

const fieldValidation = word('Strict', 'Warn')

export const validateVerb: Verb = {
  usage: 'validate FILE... [--field-validation Strict|Warn]',
  help: `Checks manifests as the daemon does, without a daemon and without running anything. Prints every problem as
PATH:LINE:COLUMN: MESSAGE; the exit code is 1 if there are errors. A directory means its .yaml, .yml and .json
files, - means standard input.`,
  flags: [
    {
      name: 'field-validation',
      label: fieldValidation.label,
      doc: 'Whether unknown fields are errors (Strict, the default) or warnings.',
    },
  ],
  examples: [
    ['validate /etc/pods', 'all that podd would run'],
    ['validate web.yaml db.yaml', 'some files'],
    ['validate - <web.yaml', 'standard input'],
  ],
  async run(context) {
    const { positionals } = context.args
    if (positionals.length === 0) throw new UsageError('validate which files?', 'podd validate FILE...')
    const files = (await Promise.all(positionals.map((path) => expand(path)))).flat()
    const documents: SourceDocument[] = []
    const problems: Problem[] = []
    for (const file of files) {
      const decoded = await decodeFile(context, file)
      documents.push(...decoded.documents)
      problems.push(...decoded.problems)
    }
    problems.push(...findConflicts(documents))
    const errors = problems.filter(({ severity }) => severity === 'error').length
    const warnings = problems.length - errors
    const pods = documents.filter((document) => isPodDocument(document)).length
    const objects = documents.length - pods
    const summary = [
      counted(pods, 'valid pod'),
      ...(objects === 0 ? [] : [counted(objects, 'other valid object')]),
      counted(errors, 'error'),
      ...(warnings === 0 ? [] : [counted(warnings, 'warning')]),
    ].join(', ')
    context.notify(`${summary} in ${counted(files.length, 'file')}`)
    return {
      kind: 'text',
      text: problems.map((problem) => `${formatLine(problem)}\n`).join(''),
      exitCode: errors === 0 ? 0 : 1,
    }
  },
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

function formatLine(problem: Problem): string {
  if (problem.severity === 'error') return formatProblem(problem)
  const { field, message, ...rest } = problem
  return formatProblem({ ...rest, message: `warning: ${field === undefined ? '' : `${field}: `}${message}` })
}

interface NamedFile {
  readonly path: string
  /** It was found in a directory, and not named by the caller, who may well give a pipe. */
  readonly isListed: boolean
}

/** The files that a path stands for: those that the directory source reads, where it is a directory. */
async function expand(path: string): Promise<readonly NamedFile[]> {
  const named = [{ path, isListed: false }]
  if (path === '-') return named
  try {
    if (!(await stat(path)).isDirectory()) return named
    const names = (await readdir(path)).filter((name) => isManifestName(name))
    return names.sort().map((name) => ({ path: join(path, name), isListed: true }))
  } catch (error) {
    throw cannotRead(path, error)
  }
}

async function decodeFile(
  { args, clock, stdio }: VerbContext,
  { path, isListed }: NamedFile,
): ReturnType<typeof decodeDocuments> {
  const wanted = fieldValidation.fromText(args.value('field-validation') ?? 'Strict')
  if (wanted.kind === 'bad') throw new UsageError(`--field-validation ${wanted.message}`)
  const look = isListed ? await lookAtFile(path) : undefined
  if (look?.kind === 'unreadable') return unreadable({ path }, look.reason)
  const text =
    path === '-'
      ? await readStream(stdio.stdin, maxSourceBytes)
      : await readBounded(path, { maxBytes: maxSourceBytes, clock }).catch((error: unknown) => {
          throw cannotRead(path, error)
        })
  return decodeDocuments(text, { path: path === '-' ? '<stdin>' : path, fieldValidation: wanted.value })
}

function cannotRead(path: string, cause: unknown): PoddError {
  return new PoddError('UNREADABLE', `cannot read ${path}: ${errorMessage(cause)}`, { cause })
}

/** The same object twice: the daemon would run the first one only. */
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
