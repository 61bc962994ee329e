import type { Field } from './types.ts'

/** What podd does with the field, in a sentence. */
export function describeSupport(support: Field['support']): string {
  switch (support.kind) {
    case 'supported':
      return `Works as in Kubernetes${support.note === undefined ? '' : `: ${support.note}`}.`
    case 'ignored':
      return `Accepted by podd with no effect: ${support.reason}.`
    case 'refused':
      return `Refused by podd: ${support.reason}.`
  }
}

/** The field as it is below another one: a parent that isn't supported answers for all that is below it. */
export function fieldBelow(parent: Field['support'] | undefined, field: Field): Field {
  return parent === undefined || parent.kind === 'supported' ? field : { ...field, support: parent }
}
