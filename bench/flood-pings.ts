/** A thread of its own asks a podd for its health again and again: `flood.ts` is its main thread. */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { socketPath, pid }: { readonly socketPath: string; readonly pid: number } = workerData

/** What podd's main thread has used since it was started. */
function cpuMs(): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}

function ask(): void {
  const began = { cpuMs: cpuMs(), wallMs: performance.now() }
  const done = (): void => {
    const took = { wallMs: performance.now() - began.wallMs, cpuMs: cpuMs() - began.cpuMs }
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
