import { dnsLabel } from '../../pod/validation/name-rules.ts'
import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'
import { UsageError } from './usage-error.ts'

export const namespaceFlag: FlagSpec = {
  name: 'namespace',
  short: 'n',
  label: 'NAMESPACE',
  doc: 'In this namespace; by default `default`.',
}

export const allNamespacesFlag: FlagSpec = {
  name: 'all-namespaces',
  short: 'A',
  doc: 'In all namespaces.',
}

/** Throws UsageError for an invalid name of a namespace. */
export function readNamespace(args: ParsedArguments): string {
  const namespace = args.value('namespace') || 'default'
  const [wrong] = dnsLabel(namespace)
  if (wrong !== undefined) throw new UsageError(`no namespace is called ${JSON.stringify(namespace)}`, wrong)
  return namespace
}

/** A name may exist in several namespaces. */
export function namedInAll(singular = 'pod'): UsageError {
  return new UsageError(
    `a ${singular} cannot be asked for by its name in all namespaces`,
    'Name its namespace: -n NAMESPACE',
  )
}

/** `<root>/namespaces/NS/RESOURCE`, or the path over all namespaces. */
export function listPath(resource: string, namespace: string | undefined, root = '/api/v1'): string {
  return namespace === undefined
    ? `${root}/${resource}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}`
}

export function podPath(namespace: string, name: string): string {
  return `${listPath('pods', namespace)}/${encodeURIComponent(name)}`
}

/** The root of podd's own paths of a pod. */
export function poddPodPath(namespace: string, name: string): string {
  return `${listPath('pods', namespace, '/podd/v1')}/${encodeURIComponent(name)}`
}
