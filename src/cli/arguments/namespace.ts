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

/** Throws UsageError for what can be no namespace's name. */
export function readNamespace(args: ParsedArguments): string {
  const namespace = args.value('namespace') || 'default'
  const [wrong] = dnsLabel(namespace)
  if (wrong !== undefined) throw new UsageError(`no namespace is called ${JSON.stringify(namespace)}`, wrong)
  return namespace
}

/** One name may stand in several namespaces. */
export function namedInAll(): UsageError {
  return new UsageError(
    'a pod cannot be asked for by its name in all namespaces',
    'Name its namespace: -n NAMESPACE',
  )
}

/** `/api/v1/namespaces/NS/RESOURCE`, or the path over all namespaces. */
export function listPath(
  resource: 'pods' | 'events' | 'configmaps' | 'secrets' | 'persistentvolumeclaims',
  namespace: string | undefined,
): string {
  return namespace === undefined
    ? `/api/v1/${resource}`
    : `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}`
}

export function podPath(namespace: string, name: string): string {
  return `${listPath('pods', namespace)}/${encodeURIComponent(name)}`
}

export function probesPath(namespace: string, name: string): string {
  return `/podd/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/probes`
}
