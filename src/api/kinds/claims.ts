import type { ClaimObject } from '../local-objects.ts'
import { writeVerbs } from './api-resource.ts'
import { servedKind } from './served-kind.ts'

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

export const claimKind = servedKind<ClaimObject>({
  resource: 'persistentvolumeclaims',
  verbs: writeVerbs,
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  kind: 'PersistentVolumeClaim',
  columns: [
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    { title: 'STATUS', cell: ({ status }) => status.phase },
    { title: 'CAPACITY', cell: ({ status }) => status.capacity?.storage ?? '' },
    {
      title: 'USED',
      cell: ({ status }) => (status.usedBytes === undefined ? '<unknown>' : formatBytes(status.usedBytes)),
    },
    {
      title: 'ACCESS MODES',
      cell: ({ spec }) => (spec?.accessModes ?? []).map((mode) => shortModes[mode] ?? mode).join(','),
    },
    { title: 'STORAGECLASS', cell: ({ spec }) => spec?.storageClassName ?? '' },
    { title: 'DIRECTORY', wide: true, cell: ({ status }) => status.path },
  ],
})

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
