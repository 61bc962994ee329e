import { canonicalJson } from '../base/json.ts'
import { containerSpecHash, digestText } from '../pod/values/hash.ts'
import type { SourceName } from '../pod/objects/document.ts'
import type { LocalObject } from '../pod/objects/local-object.ts'
import { objectData } from '../pod/objects/object-data.ts'
import { containerReferences } from '../pod/objects/pod-references.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { findMissingReference } from './find-missing-reference.ts'
import type { ReferenceHost } from './find-missing-reference.ts'

/** On a pod: its containers are restarted when a ConfigMap or Secret changes that they consume. */
export const restartAnnotation = 'podd.dev/restart-on-config-change'

export interface ConfigHashInput {
  readonly host: ReferenceHost
  readonly pod: Pod
  readonly source: SourceName
  readonly container: ContainerSpec
  /** The hash of the container that runs; undefined where one is to be made. */
  readonly running: string | undefined
  /** What isn't there is missing, and not just not read yet. */
  readonly objectsKnown?: boolean
}

/**
 * The hash that a container bears, or would bear: of its name and image, and where the pod asks to be
 * restarted, `.` and a hash of what its ConfigMaps and Secrets hold. A running container whose pod began or
 * stopped to ask is taken as it is; so is one that could not start again, for something it needs is gone,
 * and any as long as the sources have not given all objects.
 */
export function computeSpecHash(input: ConfigHashInput): string {
  const { container, running, objectsKnown = true } = input
  const base = containerSpecHash(container)
  const config = configHash(input)
  const known = running?.split('.')[1]
  if (running === undefined) return config === undefined ? base : `${base}.${config}`
  if (known === undefined) return base
  return `${base}.${objectsKnown ? (config ?? known) : known}`
}

function configHash({ host, pod, source, container }: ConfigHashInput): string | undefined {
  if (pod.metadata.annotations[restartAnnotation] !== 'true') return undefined
  if (findMissingReference(host, { pod, source }, container) !== undefined) return undefined
  const { namespace } = pod.metadata
  const objects = host.objects.seenBy(source)
  const held: [string, unknown][] = []
  for (const { kind, name } of containerReferences(container, pod)) {
    held.push([`${kind}/${name}`, contentOf(objects.get(kind, namespace, name))])
  }
  return digestText(canonicalJson(held.toSorted(([a], [b]) => (a < b ? -1 : 1))))
}

function contentOf(object: LocalObject | undefined): unknown {
  if (object?.kind !== 'ConfigMap' && object?.kind !== 'Secret') return null
  return Object.fromEntries([...objectData(object)].map(([key, data]) => [key, data.toString('base64')]))
}
