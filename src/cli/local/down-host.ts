import { realpath } from 'node:fs/promises'
import { systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { silentLogger } from '../../base/logger.ts'
import { removeEmbeddedContainerd } from '../../runtime/remove-embedded.ts'
import { assemblePods } from '../../control/assemble.ts'
import { mountsBelow, readMounts, unmount } from '../../host/mounts.ts'
import type { DownRequest, DownResult } from '../arguments/deps.ts'
import { endDaemon } from './end-daemon.ts'

/**
 * Ends everything of one podd: the daemon, if it runs, then all pods with their grace, then the embedded containerd and
 * what it left on the host. Failures are reported, not thrown; where nothing may be done at all, it throws PoddError
 * ROOT_NEEDED, DAEMON_STUCK or DAEMON_UNKNOWN.
 */
export async function downHost(request: DownRequest, isRoot = process.getuid?.() === 0): Promise<DownResult> {
  if (!isRoot) {
    throw new PoddError(
      'ROOT_NEEDED',
      '`podd down` kills processes and unmounts file systems, which only root may',
      {
        hint: 'Try again with sudo.',
      },
    )
  }
  const { config, signal, report } = request
  const leftovers: string[] = []
  await endDaemon(request, systemClock)
  let podsStopped = 0
  try {
    const ended = await endPods(request, systemClock)
    podsStopped = ended.podsStopped
    leftovers.push(...ended.leftovers)
  } catch (error) {
    signal.throwIfAborted()
    leftovers.push(`pods: ${errorMessage(error)}`)
  }
  /** Containers keep their mounts. */
  let mayRun = leftovers.length > 0
  if (config.containerRuntimeEndpoint === 'embedded') {
    report('ending containerd')
    try {
      await removeEmbeddedContainerd({ rootDir: config.rootDir, runDir: config.runDir, clock: systemClock })
      mayRun = false
    } catch (error) {
      leftovers.push(errorMessage(error))
    }
  }
  if (!mayRun) leftovers.push(...(await unmountVolumes(config.rootDir)))
  return { podsStopped, leftovers }
}

/**
 * Unmounts volumes that pods killed now or in an earlier call have left in their directories: removing podd's root
 * directory would otherwise delete the host's own files through them. Returns the remaining ones.
 */
async function unmountVolumes(rootDir: string): Promise<readonly string[]> {
  try {
    // Mount tables know real paths only.
    const directory = await realpath(`${rootDir}/pods`)
    const left = (): readonly string[] =>
      mountsBelow(directory, readMounts()).filter((path) => path !== directory)
    // What is still mounted afterwards is reported.
    for (const path of left()) await unmount(path).catch(() => undefined)
    return left().map((path) => `${path} is still mounted`)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    return [`volumes of pods: ${errorMessage(error)}`]
  }
}

async function endPods(
  { config, graceSeconds, removesEnded, signal, report }: DownRequest,
  clock: Clock,
): Promise<DownResult> {
  const { runtime, pods, removeCgroups } = assemblePods({ config, sources: [], clock, logger: silentLogger })
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  try {
    if (!(await runtime.isThere(until))) return { podsStopped: 0, leftovers: await removeCgroups() }
    report('ending pods')
    const watching = runtime.watch((problem) => pods.reportRuntime(problem), until)
    const running = Promise.all([pods.run(until), watching])
    const ending = pods.endAll({ graceSeconds, removesEnded, signal: until })
    // An error that stops the loops also keeps the pods from terminating.
    const { ended, stuck } = await Promise.race([ending, running.then(() => ending)])
    stop.abort(new PoddError('STOPPED', 'all pods have ended'))
    await running
    const left = stuck.map((key) => `pod ${key} would not end in time`)
    return { podsStopped: ended, leftovers: [...left, ...(await removeCgroups())] }
  } finally {
    stop.abort(new PoddError('STOPPED', 'podd down is done'))
    runtime.close()
  }
}
