import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { isJsonObject } from '../../src/base/json.ts'
import type { JudgedDocument } from './judged-document.ts'

/** Documents of the kinds that podd takes, one each, and the pods of workloads' templates. */
export function* documentsIn(directory: string): Generator<JudgedDocument> {
  const entries = readdirSync(directory, { recursive: true }).map(String).toSorted()
  for (const entry of entries) {
    const path = join(directory, entry)
    if (!/\.(?:ya?ml|json)$/.test(path) || !statSync(path).isFile()) continue
    for (const [index, document] of parseAllDocuments(readFileSync(path, 'utf8'), {
      logLevel: 'error',
    }).entries()) {
      const value: unknown = 'toJS' in document && document.errors.length === 0 ? document.toJS() : undefined
      for (const [part, object] of [...objectsOf(value)].entries())
        yield { name: `${path}#${index}.${part}`, value: object }
    }
  }
}

function* objectsOf(value: unknown): Generator<JsonObject> {
  if (!isJsonObject(value)) return
  const { kind, spec, items } = value
  if (Array.isArray(items)) for (const item of items as readonly Json[]) yield* objectsOf(item)
  if (typeof kind === 'string' && kinds.has(kind)) {
    const metadata = isJsonObject(value['metadata']) ? { ...value['metadata'] } : {}
    yield { ...value, metadata: 'namespace' in metadata ? { ...metadata, namespace: 'default' } : metadata }
    return
  }
  const template = isJsonObject(spec) ? (templateOf(spec) ?? spec['template']) : undefined
  if (!isJsonObject(template) || !isJsonObject(template['spec'])) return
  const metadata = isJsonObject(template['metadata']) ? template['metadata'] : {}
  yield { ...template, apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'of-a-template' } }
}

/** Of a CronJob. */
function templateOf({ jobTemplate }: JsonObject): Json | undefined {
  if (!isJsonObject(jobTemplate) || !isJsonObject(jobTemplate['spec'])) return undefined
  return jobTemplate['spec']['template']
}

const kinds: ReadonlySet<string> = new Set([
  'Pod',
  'ConfigMap',
  'Secret',
  'PersistentVolumeClaim',
  'RuntimeClass',
  'PriorityClass',
])
