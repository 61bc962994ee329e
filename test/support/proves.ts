import type { TestOptions } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** The id under which docs/SUPPORT.md refers to the test. */
    proves?: string
  }
}

/**
 * States which fields of the Pod API an e2e test proves. `id` is unique in its file, and `volumes#projected` is how
 * docs/SUPPORT.md refers to it; the title may change freely. Each of `fields` is a type with its fields:
 * `'Volume: name hostPath'`. tools/support-tests.ts reads the call from the file's text, so its arguments are literals;
 * test/unit/pod/support-tests.test.ts holds that every supported field is proven, by a test that sets it.
 */
export function proves(id: string, ..._fields: readonly [string, ...string[]]): TestOptions {
  return { meta: { proves: id } }
}
