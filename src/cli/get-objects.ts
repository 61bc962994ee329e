import type { ClaimObject, ConfigObject, LocalObjectList } from '../api/local-objects.ts'
import { listPath, readNamespace } from './namespace.ts'
import { readOutputFormat } from './output-format.ts'
import type { Column, Listing, VerbContext, VerbResult } from './verb.ts'

/** What `--show-values` is for; without it, only keys and lengths leave the daemon. */
export const showValuesFlag = {
  name: 'show-values',
  doc: 'With -o yaml or json: show what ConfigMaps and Secrets hold, and not only how long it is.',
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
  const withNamespace = args.has('all-namespaces')
  const namespace = withNamespace ? undefined : readNamespace(args)
  const path = `${listPath(resource, namespace)}${args.has('show-values') ? '?values=true' : ''}`
  const { items, kind } = await client.get<LocalObjectList<Object>>(path, signal)
  const wanted = names.length === 0 ? items : items.filter(({ metadata }) => names.includes(metadata.name))
  const listing: Listing = {
    columns: withNamespace ? [{ title: 'NAMESPACE' }, ...columns] : columns,
    rows: wanted.map((object) => [...(withNamespace ? [object.metadata.namespace] : []), ...cells(object)]),
    objects: wanted,
    listKind: names.length === 1 && wanted.length === 1 ? undefined : kind,
  }
  const missing = names.filter((name) => !wanted.some(({ metadata }) => metadata.name === name))
  const nothing = names.length === 0 && wanted.length === 0 ? [`No ${resource} found`] : []
  const notes = [...nothing, ...missing.map((name) => `${resource} ${JSON.stringify(name)} not found`)]
  return { kind: 'listing', listing, format, notes }
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
