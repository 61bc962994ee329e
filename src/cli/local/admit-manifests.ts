import { PoddError } from '../../base/errors.ts'
import type { PoddConfig } from '../../config/options.ts'
import { admissionRules, objectRules } from '../../control/desired/admission-rules.ts'
import type { AdmissionRules } from '../../control/desired/pod-admission.ts'
import { PodAdmission } from '../../control/desired/pod-admission.ts'
import { ObjectStore } from '../../control/objects/object-store.ts'
import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { claimsOf } from '../../decide/admission/exclusive-claims.ts'
import { hostShares } from '../../decide/admission/host-shares.ts'
import { selectAllowedObjects } from '../../decide/sources/merge-objects.ts'
import { diskBytes } from '../../host/disk-space.ts'
import { readHostInfo } from '../../host/facts/host-info.ts'
import type { Problem, SourceDocument, SourceName } from '../../pod/objects/document.ts'
import { documentKey, isPodDocument } from '../../pod/objects/document.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { isExtendedResource, podRequests } from '../../pod/spec/pod-resources.ts'
import type { ResourceList } from '../../pod/spec/pod-resources.ts'
import { isSourceUrl } from '../../sources/http/show-url.ts'
import type { VerbContext } from '../arguments/verb.ts'
import { loadConfig } from './load-config.ts'
import type { ReadManifest } from './read-manifests.ts'
import { readManifests } from './read-manifests.ts'

/** Each pod is held against all of them. */
const maxNeighbours = 1000

interface Sourced<Document extends SourceDocument = SourceDocument> {
  readonly document: Document
  readonly source: SourceName
}

/**
 * What the daemon's admission says of manifests, in its words: classes, sysctls, the security policy of their source,
 * ports and resources of the host. They come on top of what the configured directories hold, whose documents of equal names
 * they replace. Errors where there is a config file. Without one the host may be none of podd's: what its hardware
 * would decide is left out, and the rest is a warning, for the classes may be elsewhere.
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
  const isHost = configPath !== undefined
  const own = files.flatMap(({ path, documents }) =>
    documents.map<Sourced>((document) => ({ document, source: isSourceUrl(path) ? 'http' : 'file' })),
  )
  const replaced = new Set(own.map(({ document }) => documentKey(document)))
  const others = isHost ? await readDirectories(context, config) : []
  const present = others.filter(({ document }) => !replaced.has(documentKey(document)))
  const found = admit({ present, own }, config, isHost ? rulesOfHost(config) : rulesAnywhere(config))
  return isHost
    ? found
    : found.map(({ place, object, message }) => ({ severity: 'warning', place, object, message }))
}

async function readConfig(context: VerbContext): Promise<Awaited<ReturnType<typeof loadConfig>> | Problem> {
  try {
    return await loadConfig(context.args)
  } catch (error) {
    if (!(error instanceof PoddError) || context.args.value('config') !== undefined) throw error
    const message = `the config has errors, so that nothing was held against it: ${error.message}`
    return { severity: 'warning', place: { path: 'config' }, message }
  }
}

function rulesOfHost(config: PoddConfig): AdmissionRules {
  return admissionRules(config, readHostInfo(), diskBytes(config.rootDir))
}

function rulesAnywhere(config: PoddConfig): AdmissionRules {
  const machine = { cpus: 0, memoryBytes: 0, hugePagesBytes: new Map(), appArmor: true }
  return { ...admissionRules(config, machine, undefined), limits: { maxPods: Infinity } }
}

/** One that can't be read gives nothing: the daemon complains of it. */
async function readDirectories(context: VerbContext, config: PoddConfig): Promise<readonly Sourced[]> {
  const paths = [
    config.staticPodPath,
    ...config.sources.map((source) => (source.kind === 'file' ? source.path : undefined)),
  ].filter((path) => path !== undefined)
  const read = paths.map(async (path) => {
    try {
      return (await readManifests(context, [path])).documents
    } catch (error) {
      if (error instanceof PoddError) return []
      throw error
    }
  })
  return (await Promise.all(read)).flat().map((document) => ({ document, source: 'file' }))
}

function holdsAlone(pod: Pod): boolean {
  return hostShares(pod).ports.length > 0 || claimsOf(pod.spec).length > 0
}

function admit(
  { present, own }: { readonly present: readonly Sourced[]; readonly own: readonly Sourced[] },
  config: PoddConfig,
  rules: AdmissionRules,
): readonly Problem[] {
  const all = [...present, ...own]
  const objects = all.flatMap(({ document, source }) =>
    isPodDocument(document) ? [] : [{ document, source }],
  )
  const { allowed, problems } = selectAllowedObjects(objects, objectRules(config))
  const store = new ObjectStore(objectRules(config))
  store.replace(allowed)
  const extended = plentyOfDevices(
    all.flatMap(({ document }) => (isPodDocument(document) ? [document.pod] : [])),
  )
  const admission = new PodAdmission({ ...rules, extended }, { objects: store, features: () => 'any' })
  const places = new Set(own.map(({ document }) => document.place))
  const neighbours = new Map<string, Neighbour>()
  const found = problems.filter(({ place }) => places.has(place))
  for (const { document, source } of all) {
    const key = documentKey(document)
    if (!isPodDocument(document) || neighbours.has(key)) continue
    const { pod, place } = document
    const candidate = { pod, source, isAccepted: false, classes: undefined }
    const answer = admission.admit({ ...candidate, neighbours: [...neighbours.values()] })
    // Where room counts, `maxPods` bounds them; elsewhere those are left out that stand in no pod's way.
    const isInTheWay = rules.limits.allocatable !== undefined || holdsAlone(pod)
    if (answer.kind === 'admitted') {
      if (isInTheWay && neighbours.size < maxNeighbours) neighbours.set(key, { key, pod })
    } else if (places.has(place)) {
      found.push({ severity: 'error', place, object: key, message: `${answer.reason}: ${answer.message}` })
    }
  }
  return found
}

/** Which devices the node has is written over the API, and the daemon alone knows it: whatever is asked for is there. */
function plentyOfDevices(pods: readonly Pod[]): () => ResourceList {
  const names = pods.flatMap(({ spec }) =>
    Object.keys(podRequests(spec, 'with-overhead')).filter((name) => isExtendedResource(name)),
  )
  const devices = Object.fromEntries(names.map((name) => [name, '1000000000']))
  return () => devices
}
