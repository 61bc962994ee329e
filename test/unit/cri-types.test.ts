import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { generateTypes, generateWire, wireNames } from '../../proto/generate-types.ts'

it('src/cri-types/cri-v1.ts is what proto/generate-types.ts makes of proto/cri-v1.proto', () => {
  const path = new URL('../../src/cri-types/cri-v1.ts', import.meta.url)
  expect(readFileSync(path, 'utf8'), 'run `npm run generate`').toBe(generateTypes())
})

it.each(wireNames)(
  'src/cri-types/%s.wire.json is what proto/generate-types.ts makes of its proto file',
  (name) => {
    const path = new URL(`../../src/cri-types/${name}.wire.json`, import.meta.url)
    expect(readFileSync(path, 'utf8'), 'run `npm run generate`').toBe(generateWire(name))
  },
)
