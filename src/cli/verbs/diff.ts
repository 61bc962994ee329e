import { resolve } from 'node:path'
import type { AppliedReply, UnitObject } from '../../api/sources.ts'
import { PoddError, errorCode } from '../../base/errors.ts'
import { isSourceUrl } from '../../base/http.ts'
import type { SourceDocument } from '../../pod/objects/document.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { configFlag } from '../arguments/socket-path.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import {
  explainObjects,
  findRefused,
  formatChanges,
  placesOfManifest,
  planManifests,
  summarizeChanges,
  tellBlocked,
} from '../local/manifest-target.ts'
import {
  fieldValidationFlag,
  filenameFlag,
  formatProblemLine,
  placeOf,
  readManifests,
  recursiveFlag,
  substituteFlag,
} from '../local/read-manifests.ts'
import type { ReadManifest } from '../local/read-manifests.ts'
import { formatError, formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'

/** Throws UsageError where none is named. */
export function readFilenames(args: ParsedArguments, verb: string): readonly string[] {
  const names = args.values('filename')
  const isAnyNamed = names.length > 0 || args.values('kustomize').length > 0
  if (!isAnyNamed || args.positionals.length > 0)
    throw new UsageError(`${verb} which manifests?`, `podd ${verb} -f FILE|DIRECTORY|URL`)
  return names
}

export const diffVerb: Verb = {
  usage: 'diff -f FILE|DIRECTORY|URL [-R] [-o json|yaml]',
  help: `Shows what the daemon would do with these manifests: which pods start, change in place (and which containers
restart), are replaced (and for which fields) or end, and which are refused, as another file, a URL or the API has their
name already; or as another revision of their file counts, for this one failed. A pod ends if it comes from one of these files, or this directory
or URL, now, and no longer would. Changes nothing. The exit code is 1 if there are differences, 2 after an error.`,
  flags: [
    filenameFlag,
    recursiveFlag,
    fieldValidationFlag,
    substituteFlag,
    configFlag,
    reportFlag('a line for each change'),
  ],
  examples: [
    ['diff -f web.yaml', 'one file'],
    ['diff -f /etc/pods', 'the manifest directory: what is not applied yet'],
    ['diff -f https://fleet.example/pods.yaml', 'what a URL would change'],
    ['diff -f - <web.yaml', 'standard input'],
  ],
  async run(context) {
    try {
      return await diff(context)
    } catch (error) {
      // 1 means that there are differences.
      if (!(error instanceof PoddError) || error instanceof UsageError || errorCode(error) === 'INTERRUPTED')
        throw error
      return { kind: 'text', text: '', notes: [formatError(error)], exitCode: 2 }
    }
  },
}

async function diff(context: VerbContext): Promise<VerbResult> {
  const { args, client, signal } = context
  const names = readFilenames(args, 'diff')
  const format = readReportFormat(args)
  const { files, documents, problems } = await readManifests(context, names)
  const notes = problems.map((problem) => formatProblemLine(problem))
  if (problems.some(({ severity }) => severity === 'error'))
    return { kind: 'text', text: '', notes, exitCode: 2 }
  const [applied, status, units] = await Promise.all([
    client.get<AppliedReply>('/podd/v1/applied', signal),
    client.status(signal),
    client.get<readonly UnitObject[]>('/podd/v1/units', signal),
  ])
  const sourcePaths = status.sources.map(({ path }) => path)
  const placesOf = (file: ReadManifest) => placesOfManifest(file, applied, sourcePaths)
  const ofDocuments = new Map(
    files.flatMap((file) => {
      const isPlace = placesOf(file)
      return file.documents.map((document) => [document, isPlace] as const)
    }),
  )
  const places = names.map((name) => (isSourceUrl(name) ? placeOf(name) : resolve(name)))
  const replacesFile = (path: string): boolean =>
    places.some((place) => path === place || isBelow(path, place, args.has('recursive')))
  const standsIn = (document: SourceDocument, path: string): boolean =>
    ofDocuments.get(document)?.(path) ?? true
  const refused = findRefused(units, files, placesOf, status)
  const plan = planManifests(documents, applied, replacesFile, standsIn, refused)
  // The daemon's admission is loaded only where needed.
  const { findBlocked } = await import('../local/admit-manifests.ts')
  const blocked = await findBlocked(context, files)
  const changes = tellBlocked(await explainObjects(context, documents, plan), documents, blocked)
  const exitCode = changes.every(({ verdict }) => verdict === 'unchanged') ? 0 : 1
  const text = await formatReport(format, 'ManifestDiff', { changes }, () => formatChanges(changes))
  if (format === undefined) notes.push(summarizeChanges(changes))
  return { kind: 'text', text, notes, exitCode }
}

/** Whether reading the directory reads a file at this path too. */
function isBelow(path: string, directory: string, isRecursive: boolean): boolean {
  if (!path.startsWith(`${directory}/`)) return false
  return isRecursive || !path.slice(directory.length + 1).includes('/')
}
