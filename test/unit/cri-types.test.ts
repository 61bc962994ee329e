import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { generateTypes } from '../../proto/generate-types.ts'

it('src/cri-types/cri-v1.ts is what proto/generate-types.ts makes of proto/cri-v1.proto', () => {
  const path = new URL('../../src/cri-types/cri-v1.ts', import.meta.url)
  expect(readFileSync(path, 'utf8'), 'run `npm run generate`').toBe(generateTypes())
})
