import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { clusterMetaSchema } from '../../pod/objects/object-kinds.ts'
import { checkValue } from '../../pod/schema/check-value.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import { any, ignored, list, map, object, oneOf, required, string } from '../../pod/schema/types.ts'
import { Issues } from '../../pod/schema/issues.ts'
import { dnsLabel } from '../../pod/validation/name-rules.ts'
import { validateClusterMetadata, validateMetadata } from '../../pod/validation/validate-metadata.ts'

const byServer = 'podd sets it itself'

const namespaceSchema = object('Namespace', {
  apiVersion: required(oneOf('v1')),
  kind: required(oneOf('Namespace')),
  metadata: required(clusterMetaSchema),
  spec: ignored(object('NamespaceSpec', { finalizers: ignored(list(string), byServer) }), byServer),
  status: ignored(map(any), byServer),
})

/** The problems of a written namespace (`pkg/apis/core/validation`, ValidateNamespace, 1.36). */
export function namespaceProblems(manifest: JsonObject): readonly FieldProblem[] {
  const metadata = withoutTemplate(manifest['metadata'])
  const { problems } = checkValue(namespaceSchema, { ...manifest, metadata }, { fieldValidation: 'Strict' })
  const issues = new Issues()
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  if (typeof name === 'string') issues.name(['metadata', 'name'], name, dnsLabel)
  const { labels, annotations } = isJsonObject(metadata) ? metadata : {}
  const texts = { labels: textsOf(labels), annotations: textsOf(annotations) }
  // The name has a stricter rule, and was already reported.
  validateMetadata({ name: 'checked', namespace: 'default', ...texts }, ['metadata'], issues)
  validateClusterMetadata('Namespace', metadata, ['metadata'], issues)
  return [...problems, ...issues.problems]
}

/** A name's template stands beside the name. */
function withoutTemplate(metadata: Json | undefined): Json {
  if (!isJsonObject(metadata)) return metadata ?? null
  const { generateName: _template, ...rest } = metadata
  return rest
}

function textsOf(value: Json | undefined): Record<string, string> {
  const entries = Object.entries(isJsonObject(value) ? value : {})
  return Object.fromEntries(entries.flatMap(([key, text]) => (typeof text === 'string' ? [[key, text]] : [])))
}
