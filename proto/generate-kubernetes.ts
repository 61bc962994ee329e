import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Writes src/api/kubernetes.wire.json, by which request bodies in Kubernetes' protobuf are read: the fields of the
 * messages that clients send, from Kubernetes' own generated.proto files, and what those don't say from the Go types
 * beside them: which fields are pointers, so that a zero means something, and which are inlined in JSON.
 *
 * node proto/generate-kubernetes.ts KUBERNETES_SOURCE
 */
const places: Readonly<Record<string, string>> = {
  'k8s.io.api.core.v1': 'staging/src/k8s.io/api/core/v1',
  'k8s.io.api.apps.v1': 'staging/src/k8s.io/api/apps/v1',
  'k8s.io.api.batch.v1': 'staging/src/k8s.io/api/batch/v1',
  'k8s.io.api.rbac.v1': 'staging/src/k8s.io/api/rbac/v1',
  'k8s.io.api.policy.v1': 'staging/src/k8s.io/api/policy/v1',
  'k8s.io.api.node.v1': 'staging/src/k8s.io/api/node/v1',
  'k8s.io.api.scheduling.v1': 'staging/src/k8s.io/api/scheduling/v1',
  'k8s.io.api.coordination.v1': 'staging/src/k8s.io/api/coordination/v1',
  'k8s.io.api.events.v1': 'staging/src/k8s.io/api/events/v1',
  'k8s.io.api.authorization.v1': 'staging/src/k8s.io/api/authorization/v1',
  'k8s.io.api.authentication.v1': 'staging/src/k8s.io/api/authentication/v1',
  'k8s.io.apimachinery.pkg.apis.meta.v1': 'staging/src/k8s.io/apimachinery/pkg/apis/meta/v1',
}

/** What clients may send, and in which API version. */
const roots: Readonly<Record<string, string>> = {
  'v1/Pod': 'k8s.io.api.core.v1.Pod',
  'v1/ConfigMap': 'k8s.io.api.core.v1.ConfigMap',
  'v1/Secret': 'k8s.io.api.core.v1.Secret',
  'v1/PersistentVolumeClaim': 'k8s.io.api.core.v1.PersistentVolumeClaim',
  'v1/Service': 'k8s.io.api.core.v1.Service',
  'v1/Namespace': 'k8s.io.api.core.v1.Namespace',
  'v1/ServiceAccount': 'k8s.io.api.core.v1.ServiceAccount',
  'v1/Event': 'k8s.io.api.core.v1.Event',
  'v1/Binding': 'k8s.io.api.core.v1.Binding',
  'v1/DeleteOptions': 'k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions',
  'apps/v1/Deployment': 'k8s.io.api.apps.v1.Deployment',
  'apps/v1/StatefulSet': 'k8s.io.api.apps.v1.StatefulSet',
  'apps/v1/DaemonSet': 'k8s.io.api.apps.v1.DaemonSet',
  'batch/v1/Job': 'k8s.io.api.batch.v1.Job',
  'batch/v1/CronJob': 'k8s.io.api.batch.v1.CronJob',
  'rbac.authorization.k8s.io/v1/Role': 'k8s.io.api.rbac.v1.Role',
  'rbac.authorization.k8s.io/v1/RoleBinding': 'k8s.io.api.rbac.v1.RoleBinding',
  'rbac.authorization.k8s.io/v1/ClusterRole': 'k8s.io.api.rbac.v1.ClusterRole',
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': 'k8s.io.api.rbac.v1.ClusterRoleBinding',
  'policy/v1/PodDisruptionBudget': 'k8s.io.api.policy.v1.PodDisruptionBudget',
  'policy/v1/Eviction': 'k8s.io.api.policy.v1.Eviction',
  'node.k8s.io/v1/RuntimeClass': 'k8s.io.api.node.v1.RuntimeClass',
  'scheduling.k8s.io/v1/PriorityClass': 'k8s.io.api.scheduling.v1.PriorityClass',
  'v1/PodTemplate': 'k8s.io.api.core.v1.PodTemplate',
  'coordination.k8s.io/v1/Lease': 'k8s.io.api.coordination.v1.Lease',
  'events.k8s.io/v1/Event': 'k8s.io.api.events.v1.Event',
  'authorization.k8s.io/v1/SelfSubjectAccessReview': 'k8s.io.api.authorization.v1.SelfSubjectAccessReview',
  'authorization.k8s.io/v1/SelfSubjectRulesReview': 'k8s.io.api.authorization.v1.SelfSubjectRulesReview',
  'authorization.k8s.io/v1/SubjectAccessReview': 'k8s.io.api.authorization.v1.SubjectAccessReview',
  'authentication.k8s.io/v1/SelfSubjectReview': 'k8s.io.api.authentication.v1.SelfSubjectReview',
}

/** Messages that have a form of their own in JSON; the decoder knows them by these words. */
const special: Readonly<Record<string, string>> = {
  'k8s.io.apimachinery.pkg.apis.meta.v1.Time': 'time',
  'k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime': 'microTime',
  'k8s.io.apimachinery.pkg.api.resource.Quantity': 'quantity',
  'k8s.io.apimachinery.pkg.util.intstr.IntOrString': 'intOrString',
  'k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1': 'rawJson',
  'k8s.io.api.authorization.v1.ExtraValue': 'items',
  'k8s.io.api.authentication.v1.ExtraValue': 'items',
}

/** Name, type, and `*` for a pointer, `[]` for a list, `{}` for a map, `.` for what is inlined. */
type FieldRow = readonly [name: string, type: string, form: string]

interface GoField {
  readonly isPointer: boolean
  readonly isInline: boolean
}

const [source] = process.argv.slice(2)
if (source === undefined) throw new Error('node proto/generate-kubernetes.ts KUBERNETES_SOURCE')

/** Fields of the Go structs of a package, by struct and by the number on the wire. */
function readGoFields(directory: string): Map<string, Map<number, GoField>> {
  const structs = new Map<string, Map<number, GoField>>()
  let fields = new Map<number, GoField>()
  for (const line of readFileSync(join(directory, 'types.go'), 'utf8').split('\n')) {
    const [, struct] = /^type (\w+) struct/u.exec(line) ?? []
    if (struct !== undefined) {
      fields = new Map()
      structs.set(struct, fields)
    }
    const [, declared = '', tag] = /^\t([\w. *[\]]+?)\s+`.*protobuf:"\w+,(\d+),/u.exec(line) ?? []
    if (tag === undefined) continue
    fields.set(Number(tag), {
      isPointer: / \*/u.test(` ${declared}`),
      isInline: /json:"[^"]*,inline"/u.test(line),
    })
  }
  return structs
}

const messages = new Map<string, Map<number, FieldRow>>()
for (const [name, place] of Object.entries(places)) {
  const directory = join(source, place)
  const go = readGoFields(directory)
  let message = ''
  for (const line of readFileSync(join(directory, 'generated.proto'), 'utf8').split('\n')) {
    const [, declared] = /^message (\w+) \{/u.exec(line) ?? []
    if (declared !== undefined) {
      message = declared
      messages.set(`${name}.${message}`, new Map())
    }
    const [, label = '', map, type = '', field = '', number = ''] =
      /^ {2}(?:(optional|repeated) )?(?:map<string, ([\w.]+)>|([\w.]+)) (\w+) = (\d+);/u.exec(line) ?? []
    if (field === '') continue
    const goField = go.get(message)?.get(Number(number))
    const full = qualify(map ?? type, name)
    const form =
      map !== undefined
        ? '{}'
        : label === 'repeated'
          ? '[]'
          : goField?.isInline === true
            ? '.'
            : goField?.isPointer === true
              ? '*'
              : ''
    messages.get(`${name}.${message}`)?.set(Number(number), [field, full, form])
  }
}

function qualify(type: string, packageName: string): string {
  const absolute = type.startsWith('.') ? type.slice(1) : type
  if (special[absolute] !== undefined) return special[absolute]
  if (/^(?:string|bytes|bool|int32|int64|double)$/u.test(type)) return type
  const own = `${packageName}.${type}`
  return special[own] ?? (type.includes('.') ? absolute : own)
}

/** Short names keep the table small: a message is its place in the list. */
const indexes = new Map<string, number>()
const table: Record<string, FieldRow>[] = []
function add(name: string): number {
  const known = indexes.get(name)
  if (known !== undefined) return known
  const fields = messages.get(name)
  if (fields === undefined) throw new Error(`there is no message ${name}`)
  const index = table.length
  indexes.set(name, index)
  const rows: Record<string, FieldRow> = {}
  table.push(rows)
  for (const [number, [field, type, form]] of fields)
    rows[String(number)] = [field, type.includes('.') ? String(add(type)) : type, form]
  return index
}

const kinds = Object.fromEntries(Object.entries(roots).map(([kind, name]) => [kind, add(name)]))
const rows = table.map((fields) => `    ${JSON.stringify(fields)}`).join(',\n')
writeFileSync(
  new URL('../src/api/kubernetes.wire.json', import.meta.url),
  `{\n  "kinds": ${JSON.stringify(kinds)},\n  "messages": [\n${rows}\n  ]\n}\n`,
)
