import { PoddError } from '../../base/errors.ts'
import type { PoddConfig } from '../../config/options.ts'
import { admissionRules, objectRules, PodAdmission } from '../../control/desired/pod-admission.ts'
import type { AdmissionRules } from '../../control/desired/pod-admission.ts'
import { ObjectStore } from '../../control/serving/object-store.ts'
import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { HostTally, claimsOf, hostShares } from '../../decide/admission/admit-pod.ts'
import { selectAllowedObjects, renamePod, renamedPodProblem } from '../../decide/sources/merge-snapshots.ts'
import { podOf, toDocument, WorkloadTargets } from '../../decide/workloads/replica-pods.ts'
import { apiSocketPath } from '../../config/places.ts'
import { diskBytes } from '../../host/host-probe.ts'
import { readHostInfo } from '../../host/facts/host-info.ts'
import { isJsonObject } from '../../base/json.ts'
import { isSourceUrl } from '../../base/http.ts'
import { readYamlDocuments, toText } from '../../pod/decode/read-documents.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import type { Place, Problem, SourceDocument, SourceName } from '../../pod/objects/document.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import {
  isBatchKind,
  isWorkloadKind,
  pathBelowTemplate,
  templatePath,
} from '../../pod/objects/workload-kinds.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { isExtendedResource, podRequests } from '../../pod/schema/pod-resources.ts'
import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import type { VerbContext } from '../arguments/verb.ts'
import { loadConfig } from './load-config.ts'
import type { ReadManifest } from './read-manifests.ts'
import { readManifests } from './read-manifests.ts'

/** All pods, against which each pod is checked. */
const maxNeighbours = 1000

/** A problem that admission found, and the field of the pod that it is about. */
interface Finding {
  readonly problem: Problem
  readonly at: FieldPath | undefined
}

interface Sourced<Document extends SourceDocument = SourceDocument> {
  readonly document: Document
  readonly source: SourceName
}

/**
 * Checks manifests by the daemon's admission: classes, sysctls and the security policy of their source; with `--host` or
 * a named config also ports and resources of this host, beside the pods of the configured directories, replacing those of
 * the same names. With a config file problems are errors. Without one the host may not run podd: problems are warnings, as
 * the classes may be elsewhere.
 *
 * Throws what reading the config throws, if it was named.
 */
export async function admitManifests(
  context: VerbContext,
  files: readonly ReadManifest[],
): Promise<readonly Problem[]> {
  const loaded = await readConfig(context)
  if ('severity' in loaded) return [loaded]
  const { config, configPath } = loaded
  const isConfigured = configPath !== undefined
  const isHost = isConfigured && (context.args.has('host') || context.args.value('config') !== undefined)
  const own = sourced(files)
  const others = isConfigured ? await readDirectories(context, config) : []
  // Elsewhere other pods run; classes are the same.
  const present = others.filter(({ document }) => isHost || isClass(document))
  const rules = isHost
    ? admissionRules(config, readHostInfo(), diskBytes(config.rootDir))
    : rulesAnywhere(config)
  const found = await locateFindings(admit(own, present, config, rules), files)
  return isConfigured
    ? [...found, ...suffixProblems(own, config)]
    : found.map(({ place, object, field, message }) => ({
        severity: 'warning',
        place,
        object,
        field,
        message,
      }))
}

/**
 * Why pods of these manifests may not run on this host now, by the places of their documents. Nothing is said where another podd than that of
 * the usual config is asked, or the config has errors: then its rules are not known.
 */
export async function findBlocked(
  context: VerbContext,
  files: readonly ReadManifest[],
): Promise<ReadonlyMap<Place, string>> {
  const loaded = await readConfig(context)
  if ('severity' in loaded) return new Map()
  const { config } = loaded
  if (context.client.socketPath !== apiSocketPath(config.runDir)) return new Map()
  const present = await readDirectories(context, config)
  const rules = admissionRules(config, readHostInfo(), diskBytes(config.rootDir))
  const found = admit(sourced(files), present, config, rules)
  return new Map(found.map(({ problem: { place, message } }) => [place, message]))
}

function isClass(document: SourceDocument): boolean {
  return !isPodDocument(document) && !isWorkloadKind(document.object.kind)
}

function sourced(files: readonly ReadManifest[]): readonly Sourced[] {
  return files.flatMap(({ path, documents }) =>
    documents.map<Sourced>((document) => ({ document, source: isSourceUrl(path) ? 'http' : 'file' })),
  )
}

/** The findings at the places of their fields. */
async function locateFindings(
  findings: readonly Finding[],
  files: readonly ReadManifest[],
): Promise<readonly Problem[]> {
  const located: Problem[] = []
  for (const { at, problem } of findings) {
    const file = files.find(({ documents }) => documents.some(({ place }) => place === problem.place))
    const text = at === undefined || file === undefined ? undefined : toText(file.text)
    if (at === undefined || text === undefined) located.push(problem)
    else {
      const place = await placeOfField(text, problem.place, at)
      located.push({ ...problem, place, field: formatFieldPath(at) })
    }
  }
  return located
}

/** The place of a field of the document at `place`, which is an object of a file or an item of a list. */
async function placeOfField(text: string, place: Place, at: FieldPath): Promise<Place> {
  for (const document of await readYamlDocuments(text)) {
    if (document.kind !== 'read') continue
    const items = isJsonObject(document.value) ? document.value['items'] : undefined
    const tops: readonly FieldPath[] = Array.isArray(items) ? items.map((_, index) => ['items', index]) : [[]]
    for (const top of tops) {
      const position = document.locate(top)
      // A file of JSON is decoded without places: which item of a list it is isn't known.
      if (place.line === undefined && tops.length !== 1) return place
      const isHere =
        place.line === undefined || (position?.line === place.line && position.column === place.column)
      if (isHere) return { ...place, ...document.locate([...top, ...at]) }
    }
  }
  return place
}

async function readConfig(context: VerbContext): Promise<Awaited<ReturnType<typeof loadConfig>> | Problem> {
  try {
    return await loadConfig(context)
  } catch (error) {
    if (!(error instanceof PoddError) || context.args.value('config') !== undefined) throw error
    const message = `the config has errors, so nothing was checked against it: ${error.message}`
    return { severity: 'warning', place: { path: 'config' }, message }
  }
}

function rulesAnywhere(config: PoddConfig): AdmissionRules {
  const machine = { cpus: 0, memoryBytes: 0, hugePagesBytes: new Map(), appArmor: true }
  return { ...admissionRules(config, machine, undefined), limits: { maxPods: Infinity } }
}

/** Of pods whose names are too long with what `podNameSuffix` adds. */
function suffixProblems(own: readonly Sourced[], config: PoddConfig): readonly Problem[] {
  if (config.podNameSuffix !== 'node') return []
  const suffix = `-${config.hostnameOverride ?? readHostInfo().hostname}`
  return own.flatMap(({ document }) =>
    isPodDocument(document) ? (renamedPodProblem(renamePod(document, suffix), suffix) ?? []) : [],
  )
}

/** An unreadable one is skipped: the daemon reports it. */
async function readDirectories(context: VerbContext, config: PoddConfig): Promise<readonly Sourced[]> {
  const { staticPodPath: path } = config
  const directories = [
    ...(path === undefined ? [] : [{ path, recursive: false }]),
    ...config.sources.filter((source) => source.kind === 'file'),
  ]
  const read = directories.map(async ({ path: directory, recursive: isRecursive }) => {
    try {
      return (await readManifests(context, [directory], { isRecursive, needsSignatures: false })).documents
    } catch (error) {
      if (error instanceof PoddError) return []
      throw error
    }
  })
  return (await Promise.all(read)).flat().map((document) => ({ document, source: 'file' }))
}

/** What keeps documents from running beside those that are present, of which they replace those of the same names. */
function admit(
  own: readonly Sourced[],
  present: readonly Sourced[],
  config: PoddConfig,
  rules: AdmissionRules,
): readonly Finding[] {
  const replaced = new Set(own.map(({ document }) => documentKey(document)))
  const others = present.filter(({ document }) => !replaced.has(documentKey(document)))
  const targets = new WorkloadTargets()
  const all = [...others, ...own].flatMap(({ document, source }) =>
    withPods(document, targets).map((each): Sourced => ({ document: each, source })),
  )
  const objects = all.flatMap(({ document, source }) =>
    isPodDocument(document) ? [] : [{ document, source }],
  )
  const { allowed, problems } = selectAllowedObjects(objects, objectRules(config))
  const store = new ObjectStore(objectRules(config))
  store.replace(allowed)
  const extended = plentyOfDevices(
    all.flatMap(({ document }) => (isPodDocument(document) ? [document.pod] : [])),
  )
  const admission = new PodAdmission({ ...rules, extended }, store, () => 'any')
  const places = new Set(own.map(({ document }) => document.place))
  const neighbours = new Map<string, Neighbour>()
  const tally = new HostTally([])
  const toldOfOwners = new Set<string>()
  const found: Finding[] = problems
    .filter(({ place }) => places.has(place))
    .map((problem) => ({ problem, at: undefined }))
  for (const { document, source } of all) {
    const key = documentKey(document)
    if (!isPodDocument(document) || neighbours.has(key)) continue
    const { pod, place } = document
    const candidate = { pod, source, isAccepted: false, classes: undefined }
    const answer = admission.admit({ ...candidate, neighbours: [...neighbours.values()], tally })
    // Where resources count, `maxPods` bounds them; elsewhere pods without conflicts are left out.
    const holdsAlone = hostShares(pod).ports.length > 0 || claimsOf(pod.spec).length > 0
    const isInTheWay = rules.limits.allocatable !== undefined || holdsAlone
    if (answer.kind === 'admitted') {
      if (!isInTheWay || neighbours.size >= maxNeighbours) continue
      neighbours.set(key, { key, pod })
      tally.add({ pod })
    } else if (places.has(place)) {
      const message = `${answer.reason}: ${answer.message}`
      // The pods of a workload differ in their names alone.
      const told = `${document.owner?.kind} ${document.owner?.name} ${answer.reason}`
      if (document.owner !== undefined && toldOfOwners.has(told)) continue
      toldOfOwners.add(told)
      const path = document.owner && templatePath(document.owner.kind)
      const at = path && answer.at ? pathBelowTemplate(path, answer.at) : answer.at
      found.push({ problem: { severity: 'error', place, object: key, message }, at })
    }
  }
  return found
}

/** A document, and what is made of one of a workload: of a Job or CronJob one pod. */
function withPods(document: SourceDocument, targets: WorkloadTargets): readonly SourceDocument[] {
  if (isPodDocument(document)) return [document]
  const { kind, metadata } = document.object
  if (isBatchKind(kind)) return [document, toDocument(document, podOf(document, metadata.name))]
  return [document, ...targets.claimsOf(document), ...targets.podsOf(document)]
}

/** Extended resources are written over the API, and only the daemon knows them: any amount counts as available. */
function plentyOfDevices(pods: readonly Pod[]): () => ResourceList {
  const names = pods.flatMap(({ spec }) =>
    Object.keys(podRequests(spec, 'with-overhead')).filter((name) => isExtendedResource(name)),
  )
  const devices = Object.fromEntries(names.map((name) => [name, '1000000000']))
  return () => devices
}
