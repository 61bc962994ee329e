import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/cli/arguments/usage-error.ts'
import { customListing } from '../../../src/cli/output/custom-columns.ts'
import { printJsonPath } from '../../../src/cli/output/json-path-template.ts'
import { sortObjects } from '../../../src/cli/output/sort-objects.ts'

const pod = (name: string, ip: string | undefined, restarts: number, cpu = '1') => ({
  kind: 'Pod',
  metadata: { name, labels: { app: 'a.b', 'x.io/y': 'z' } },
  spec: { cpu },
  status: { podIP: ip, restarts, list: [1, 2] },
})
const list = { items: [pod('web', '10.0.0.2', 10, '100m'), pod('db', undefined, 9, '2')] }

describe('a JSONPath template', () => {
  it.each([
    ['{.items[*].metadata.name}', 'web db'],
    ['{range .items[*]}{.metadata.name}{"\\t"}{.status.podIP}{"\\n"}{end}', 'web\t10.0.0.2\ndb\t\n'],
    ['first: {.items[0].metadata.name}!', 'first: web!'],
    [`{.items[?(@.metadata.name=="db")].status.restarts}`, '9'],
    [String.raw`{.items[0].metadata.labels.x\.io/y}`, 'z'],
    ['{.items[0].status.list}', '[1,2]'],
    ['{\'}\'}{"{"}', '}{'],
    ['{range .items[*]}{range .status.list[*]}{@}{end};{end}', '12;12;'],
    ['{.items[0].nothing}', ''],
    ['no braces', 'no braces'],
  ])('%s', (template, printed) => {
    expect(printJsonPath(template, list)).toBe(printed)
  })

  it.each(['{range .items[*]}', '{end}', 'open {', '{.items[}'])('that is none: %s', (template) => {
    expect(() => printJsonPath(template, list)).toThrow(UsageError)
  })
})

describe('columns of one’s own', () => {
  it('are named and filled as kubectl does', () => {
    const { columns, rows } = customListing(
      'NAME:.metadata.name,IP:.status.podIP,L:.status.list[*]',
      list.items,
    )
    expect(columns.map(({ title }) => title)).toEqual(['NAME', 'IP', 'L'])
    expect(rows).toEqual([
      ['web', '10.0.0.2', '1,2'],
      ['db', '<none>', '1,2'],
    ])
  })

  it.each(['NAME', ':.metadata.name', 'NAME:'])('need a title and a path: %s', (spec) => {
    expect(() => customListing(spec, list.items)).toThrow(UsageError)
  })
})

describe('sorting', () => {
  it.each([
    ['.metadata.name', 'db web'],
    ['.status.restarts', 'db web'],
    ['{.spec.cpu}', 'web db'],
    ['.status.podIP', 'db web'],
  ])('by %s', (path, names) => {
    expect(
      sortObjects(list.items, path)
        .map(({ metadata }) => metadata.name)
        .join(' '),
    ).toBe(names)
  })
})
