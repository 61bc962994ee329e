import type { ClaimObject, ConfigObject, LocalObjectList } from '../../api/local-objects.ts'
import { nearestName } from '../../pod/values/nearest-name.ts'
import { ServerError } from '../client/client.ts'
import { listPath, readNamespace } from '../arguments/namespace.ts'
import { readOutputFormat } from '../arguments/output-format.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Column, Listing, VerbContext, VerbResult } from '../arguments/verb.ts'

/** What `--show-values` is for; without it, only keys and lengths leave the daemon. */
export const showValuesFlag = {
  name: 'show-values',
  doc: 'With -o yaml or json: show the values of ConfigMaps and Secrets instead of their lengths.',
} as const

interface Item {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string }
}

export function getConfigMaps(context: VerbContext, names: readonly string[]): Promise<VerbResult> {
  const columns = [{ title: 'NAME' }, { title: 'DATA' }, { title: 'KEYS' }]
  return getObjects<ConfigObject>(context, names, {
    resource: 'configmaps',
    columns,
    cells: (object) => [object.metadata.name, String(keysOf(object).length), keysOf(object).join(',')],
  })
}

export function getSecrets(context: VerbContext, names: readonly string[]): Promise<VerbResult> {
  const columns = [{ title: 'NAME' }, { title: 'TYPE' }, { title: 'DATA' }, { title: 'KEYS' }]
  return getObjects<ConfigObject>(context, names, {
    resource: 'secrets',
    columns,
    cells: (object) => [
      object.metadata.name,
      object.type ?? '',
      String(keysOf(object).length),
      keysOf(object).join(','),
    ],
  })
}

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

export function getClaims(context: VerbContext, names: readonly string[]): Promise<VerbResult> {
  const columns = [
    { title: 'NAME' },
    { title: 'STATUS' },
    { title: 'CAPACITY' },
    { title: 'USED' },
    { title: 'ACCESS MODES' },
    { title: 'STORAGECLASS' },
    { title: 'DIRECTORY', wide: true },
  ]
  return getObjects<ClaimObject>(context, names, {
    resource: 'persistentvolumeclaims',
    columns,
    cells: ({ metadata, spec, status }) => [
      metadata.name,
      status.phase,
      status.capacity?.storage ?? '',
      formatBytes(status.usedBytes),
      (spec?.accessModes ?? []).map((mode) => shortModes[mode] ?? mode).join(','),
      spec?.storageClassName ?? '',
      status.path,
    ],
  })
}

function keysOf({ data, binaryData = {} }: ConfigObject): readonly string[] {
  return [...Object.keys(data), ...Object.keys(binaryData)].sort()
}

interface Resource<Object extends Item> {
  readonly resource: 'configmaps' | 'secrets' | 'persistentvolumeclaims'
  readonly columns: readonly Column[]
  readonly cells: (object: Object) => readonly string[]
}

async function getObjects<Object extends Item>(
  { args, client, signal }: VerbContext,
  names: readonly string[],
  { resource, columns, cells }: Resource<Object>,
): Promise<VerbResult> {
  const format = readOutputFormat(args)
  if (args.has('watch')) throw new UsageError(`${resource} cannot be watched`, 'Pods and events can.')
  const withNamespace = args.has('all-namespaces')
  const namespace = withNamespace ? undefined : readNamespace(args)
  const path = `${listPath(resource, namespace)}${args.has('show-values') ? '?values=true' : ''}`
  const { items, kind } = await client.get<LocalObjectList<Object>>(path, signal)
  const missing = names.filter((name) => !items.some(({ metadata }) => metadata.name === name))
  const [first] = missing
  if (first !== undefined && names.length === 1) {
    const known = items.map(({ metadata }) => metadata.name)
    const near = nearestName(first, known)
    throw notFound(resource, first, near === undefined ? undefined : `Did you mean ${near}?`)
  }
  const wanted = names.length === 0 ? items : items.filter(({ metadata }) => names.includes(metadata.name))
  const listing: Listing = {
    columns: withNamespace ? [{ title: 'NAMESPACE' }, ...columns] : columns,
    rows: wanted.map((object) => [...(withNamespace ? [object.metadata.namespace] : []), ...cells(object)]),
    objects: wanted,
    listKind: names.length === 1 && wanted.length === 1 ? undefined : kind,
  }
  const nothing = names.length === 0 && wanted.length === 0 ? [`No ${resource} found`] : []
  const notes = [...nothing, ...missing.map((name) => `podd: ${notFound(resource, name).message}`)]
  return { kind: 'listing', listing, format, notes, exitCode: missing.length === 0 ? 0 : 1 }
}

/** As the API says it of a single object; these come as lists only. */
function notFound(resource: string, name: string, hint?: string): ServerError {
  return new ServerError('NotFound', `${resource} ${JSON.stringify(name)} not found`, hint)
}

/** As quantities are written: `1.5Mi`. */
function formatBytes(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti']
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit += 1
  }
  return `${Number(size.toPrecision(3))}${units[unit] ?? ''}`
}
