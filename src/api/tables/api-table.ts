import type { ResourceObject } from '../resource.ts'

/** meta/v1 TableColumnDefinition. */
export interface TableColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly format: '' | 'name'
  readonly description: string
  /** 1: only with `-o wide`. */
  readonly priority: 0 | 1
}

export type TableCell = string | number | boolean

/** meta/v1 TableRowCondition. */
export interface RowCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** How the API server prints objects of one kind (`pkg/printers/internalversion/printers.go`, 1.36). */
export interface ApiTable {
  readonly columns: readonly TableColumn[]
  /** A cell for each column. */
  cells(object: ResourceObject, nowMs: number): readonly TableCell[]
  conditions(object: ResourceObject): readonly RowCondition[]
}

/** A column with what stands in it. */
export interface ColumnEntry<T> {
  readonly name: string
  readonly description: string
  /** `string` unless said. */
  readonly type?: TableColumn['type']
  readonly wide?: boolean
  cell(object: T, nowMs: number): TableCell
}

export function apiTable<T extends ResourceObject>(
  kind: string,
  entries: readonly ColumnEntry<T>[],
  conditions: (object: T) => readonly RowCondition[] = () => [],
): ApiTable {
  const isOfKind = (object: ResourceObject): object is T => object.kind === kind
  return {
    columns: entries.map(({ name, type = 'string', description, wide }) => ({
      name,
      type,
      format: name === 'Name' ? 'name' : '',
      description,
      priority: wide === true ? 1 : 0,
    })),
    cells: (object, nowMs) => (isOfKind(object) ? entries.map((entry) => entry.cell(object, nowMs)) : []),
    conditions: (object) => (isOfKind(object) ? conditions(object) : []),
  }
}
