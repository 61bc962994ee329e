/** A thread of its own asks a podd for its health again and again: `flood.ts` is its main thread. */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import type { Held } from './flood.ts'

const { socketPath, pid }: { readonly socketPath: string; readonly pid: number } = workerData

/** For how long podd's main thread was at work since it was started, and for how long it waited for a CPU that others had. */
function look(): Held {
  const schedstat = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  const [cpuMs = 0, queuedMs = 0] = schedstat.map((nanoseconds) => Number(nanoseconds) / 1e6)
  return { wallMs: performance.now(), cpuMs, queuedMs }
}

function ask(): void {
  const began = look()
  const done = (): void => {
    const ended = look()
    const took: Held = {
      wallMs: ended.wallMs - began.wallMs,
      cpuMs: ended.cpuMs - began.cpuMs,
      queuedMs: ended.queuedMs - began.queuedMs,
    }
    // No window's.
    // eslint-disable-next-line unicorn/require-post-message-target-origin
    parentPort?.postMessage(took)
    setTimeout(ask, 5)
  }
  const call = request({ socketPath, path: '/healthz' }, (response) => response.resume().on('end', done))
  call.on('error', () => setTimeout(ask, 50))
  call.end()
}

ask()
