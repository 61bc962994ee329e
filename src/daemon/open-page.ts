import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { errorCode } from '../base/errors.ts'
import type { PodAssembly } from '../control/assemble.ts'
import type { UsageSource } from '../control/serving/usage-history.ts'
import type { PageReader } from '../server/requests/readers.ts'

/** Begins to measure the usage that the status page shows. Its code is loaded only where there is a page. */
export async function openPage(
  { pods }: Pick<PodAssembly, 'pods'>,
  source: UsageSource,
): Promise<PageReader> {
  const { UsageHistory } = await import('../control/serving/usage-history.ts')
  const history = new UsageHistory({
    // The unavailable runtime is reported elsewhere; the charts have a gap.
    usage: (signal) =>
      source.usage(signal).catch((error: unknown) => {
        if (errorCode(error) === 'RUNTIME_UNAVAILABLE') return []
        throw error
      }),
    nodeUsage: (signal) => source.nodeUsage(signal),
  })
  pods.node.jobs.add(history.job())
  return { directory: pageDirectory(), usage: () => history.reply() }
}

/** The page's directory: beside the bundled main.js, or in the build of a checkout. */
function pageDirectory(): string {
  const bundled = fileURLToPath(new URL('page', import.meta.url))
  return existsSync(bundled) ? bundled : fileURLToPath(new URL('../../dist/page', import.meta.url))
}
