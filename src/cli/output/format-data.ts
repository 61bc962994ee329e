import { escapeJson, escapeYaml, hasUnseen } from '../../base/escape-controls.ts'

/** JSON for programs and people: what has no look of its own stands in it as an escape. */
export function formatJson(value: unknown): string {
  return `${escapeJson(JSON.stringify(value, undefined, 2))}\n`
}

/** The same as YAML. */
export async function formatYaml(value: unknown): Promise<string> {
  const { Document, visit } = await import('yaml')
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && hasUnseen(node.value)) node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeYaml(document.toString({ lineWidth: 0 }))
}
