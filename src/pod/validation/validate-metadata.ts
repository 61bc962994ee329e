import type { FieldPath } from '../schema/field-path.ts'
import type { ObjectMeta } from '../schema/pod-schema.ts'
import type { Issues } from './issues.ts'
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './name-rules.ts'

const maxAnnotationBytes = 256 * 1024

/** Source: k8s.io/apimachinery/pkg/api/validation/objectmeta.go, 1.36. */
export function validateMetadata(metadata: ObjectMeta, path: FieldPath, issues: Issues): void {
  const { name, namespace, labels, annotations } = metadata
  if (name === '') issues.required([...path, 'name'])
  else issues.name([...path, 'name'], name, dnsSubdomain)
  issues.name([...path, 'namespace'], namespace, dnsLabel)
  for (const [key, value] of Object.entries(labels)) {
    issues.name([...path, 'labels', key], key, qualifiedName)
    issues.name([...path, 'labels', key], value, labelValue)
  }
  let annotationBytes = 0
  for (const [key, value] of Object.entries(annotations)) {
    issues.name([...path, 'annotations', key], key, (name) => qualifiedName(name.toLowerCase()))
    annotationBytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (annotationBytes > maxAnnotationBytes) issues.tooLong([...path, 'annotations'], maxAnnotationBytes)
}
