import { Document, visit } from 'yaml'
import { escapeYaml, hasUnseen } from '../../base/escape-controls.ts'

/** YAML for programs and people: what has no look of its own stands in it as an escape. */
export function formatYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && hasUnseen(node.value)) node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeYaml(document.toString({ lineWidth: 0 }))
}
