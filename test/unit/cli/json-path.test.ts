import { describe, expect, it } from 'vitest'
import { readJsonPath, selectJsonPath } from '../../../src/cli/output/json-path.ts'

const pod = {
  metadata: { name: 'web', annotations: { 'example.com/role': 'front' } },
  status: {
    phase: 'Running',
    conditions: [
      { type: 'Initialized', status: 'True' },
      { type: 'Ready', status: 'False' },
    ],
    containerStatuses: [{ restartCount: 0 }, { restartCount: 3 }],
  },
}

describe('JSONPath', () => {
  it.each([
    ['{.status.phase}', ['Running']],
    ['.status.phase', ['Running']],
    ['status.phase', ['Running']],
    ['{$.status.phase}', ['Running']],
    ['{.status.conditions[?(@.type=="Ready")].status}', ['False']],
    ["{.status.conditions[?(@.type == 'Ready')].status}", ['False']],
    ['{.status.containerStatuses[*].restartCount}', [0, 3]],
    ['{.status.containerStatuses[1].restartCount}', [3]],
    ['{.status.containerStatuses[-1].restartCount}', [3]],
    ["{.metadata.annotations['example.com/role']}", ['front']],
    [String.raw`{.metadata.annotations.example\.com/role}`, ['front']],
    ['{.status.conditions[?(@.status!="True")].type}', ['Ready']],
    ["{.status.conditions[?(@.reason != 'x')].type}", []],
    ['{.status.containerStatuses[?(@.restartCount>0)].restartCount}', [3]],
    ['{.status.containerStatuses[?(@.restartCount < 10)].restartCount}', [0, 3]],
    ['{.status.containerStatuses[?(@.restartCount>=3)].restartCount}', [3]],
    ['{.status.containerStatuses[?(@.restartCount<=0)].restartCount}', [0]],
    ['{.status.conditions[?(@.type>"J")].type}', ['Ready']],
    ['{.status.conditions[?(@.type)].type}', ['Initialized', 'Ready']],
    ['{.status.conditions[?(@.reason)].type}', []],
    ["{.status.conditions[?(@['type']=='Ready')].status}", ['False']],
    ['{.status.podIP}', []],
    ['{.status.phase.more}', []],
    ['{.status.conditions[9].status}', []],
  ])('%s', (path, found) => {
    expect(selectJsonPath(pod, readJsonPath(path))).toEqual(found)
  })

  it.each(['{.status[}', '{..phase}', '{.items[?(@.a=1)]}', '{.items[?(@.a>1 && @.b)]}', '{.a[1:2]}'])(
    'refuses %s',
    (path) => {
      expect(() => readJsonPath(path)).toThrow('is no JSONPath that podd knows')
    },
  )
})
