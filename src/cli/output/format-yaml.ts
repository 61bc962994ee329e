import { Document, visit } from 'yaml'
import { escapeYaml, hasUnseen } from '../../base/text.ts'

/** Words that some readers of YAML 1.1 take for something else than a string, and tabs, which some don't read without quotes. */
const needsQuotes = /^(?:=|<<|[-+]?0o[0-7_]+)$|\t/u

const mergeTag = 'tag:yaml.org,2002:merge'

/**
 * YAML for programs and people: what has no look of its own stands in it as an escape. Strings are quoted by the rules of YAML
 * 1.1 (`yes`, `on`, `1_000`, times), which podd, kubectl and most others read.
 */
export function formatYaml(value: unknown): string {
  const document = new Document(value, {
    aliasDuplicateObjects: false,
    version: '1.1',
    // The string `<<` is a string.
    customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || tag.tag !== mergeTag),
  })
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && (hasUnseen(node.value) || needsQuotes.test(node.value)))
        node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeYaml(document.toString({ lineWidth: 0 }))
}
