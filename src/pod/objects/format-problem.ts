import { escapeLine } from '../../base/text.ts'
import type { Problem } from './document.ts'

/** One line for people: `pods/web.yaml:7:5: spec.containers[0].image: Required value (hint)`. */
export function formatProblem({ place, field, message, hint }: Problem): string {
  const at = [place.path, place.line, place.column].filter((part) => part !== undefined).join(':')
  const what = field === undefined ? message : `${field}: ${message}`
  return escapeLine(hint === undefined ? `${at}: ${what}` : `${at}: ${what} (${hint})`)
}
