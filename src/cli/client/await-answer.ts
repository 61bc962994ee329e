import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { nodeHttp } from '../../base/node-http.ts'

/** How long an answer may take until podd is asked whether it works at all, and from one such question to the next. */
const askAfterMs = 5_000
/** How long that question may take: a host that is busy makes podd slow. */
const aliveMs = 10_000

/**
 * Gives what `ask` gives, however long that takes, as long as the daemon answers anybody: one that is stopped or hangs
 * still takes connections. Throws PoddError DAEMON_SILENT where it answers no call, and what `ask` throws.
 */
export async function awaitAnswer<T>(
  {
    socketPath,
    clock,
    signal,
  }: {
    readonly socketPath: string
    readonly clock: Clock
    readonly signal: AbortSignal
  },
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const silent = new AbortController()
  const answered = new AbortController()
  const checking = (async () => {
    while (!answered.signal.aborted) {
      await clock.sleep(askAfterMs, answered.signal)
      if (!(await isAlive(socketPath, clock, answered.signal))) silent.abort()
    }
  })().catch(() => {})
  try {
    return await ask(AbortSignal.any([signal, silent.signal]))
  } catch (error) {
    throw silent.signal.aborted && !signal.aborted ? daemonSilent(socketPath, error) : error
  } finally {
    answered.abort()
    await checking
  }
}

/** What is said of a daemon that takes connections, and no more. */
export function daemonSilent(socketPath: string, cause: unknown): PoddError {
  return new PoddError('DAEMON_SILENT', `podd at ${socketPath} does not answer`, {
    cause,
    hint: `It is stopped, hangs, or the host is overloaded. \`fuser ${socketPath}\` names the process; \`systemctl restart podd\` restarts it, and the pods keep running.`,
  })
}

/** Whether the daemon answers in time. A connection that fails is an answer too: whoever waits for one of their own is told why. */
function isAlive(socketPath: string, clock: Clock, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const request = nodeHttp.request({ socketPath, path: '/healthz', agent: false, signal }, (response) => {
      response.resume()
      done(true)
    })
    const timer = clock.startTimer(aliveMs, () => done(false))
    const done = (alive: boolean): void => {
      timer.cancel()
      request.destroy()
      resolve(alive)
    }
    request.on('error', () => done(true))
    request.end()
  })
}
