import { escapeJson } from '../../base/text.ts'

/** JSON in which invisible characters are escaped. */
export function formatJson(value: unknown): string {
  return `${escapeJson(JSON.stringify(value, undefined, 2))}\n`
}

/** The same as YAML. */
export async function formatYaml(value: unknown): Promise<string> {
  return (await import('./format-yaml.ts')).formatYaml(value)
}
