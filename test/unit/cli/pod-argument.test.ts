import { describe, expect, it } from 'vitest'
import { readPodName } from '../../../src/cli/arguments/pod-argument.ts'
import { UsageError } from '../../../src/cli/arguments/parse-arguments.ts'

describe('a POD argument', () => {
  it.each([
    ['web', 'web'],
    ['pod/web', 'web'],
    ['pods/web', 'web'],
    ['po/web', 'web'],
    ['Pod/web', 'web'],
  ])('%s is the pod %s', (word, name) => {
    expect(readPodName(word, 'logs')).toBe(name)
  })

  it.each([
    ['deploy/web', 'podd logs takes pods only, not "deploy/web"'],
    ['node/web', 'podd logs takes pods only, not "node/web"'],
    ['/web', 'podd logs takes pods only, not "/web"'],
    ['pod/', '"pod/" names no pod'],
    ['pod/web/main', '"pod/web/main" names no pod'],
  ])('%s is wrong usage', (word, message) => {
    expect(() => readPodName(word, 'logs')).toThrow(new UsageError(message, 'Write POD or pod/POD.'))
  })
})
