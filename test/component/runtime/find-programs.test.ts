import { describe, expect, it } from 'vitest'
import { findPrograms } from '../../../src/runtime/embedded-setup.ts'

describe('findPrograms', () => {
  it.each(['no-such-runtime', '/no/such/runtime'])(
    'names the OCI runtime %s that is missing',
    async (name) => {
      const found = findPrograms({
        containerdPath: '/bin/true',
        ctrPath: '/bin/true',
        ociRuntimes: ['sh', name],
      })
      await expect(found).rejects.toMatchObject({
        message: `${name} is not installed`,
        hint: `Install ${name}, or name another OCI runtime in ociRuntimes.`,
      })
    },
  )
})
