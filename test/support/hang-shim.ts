import { existsSync, readFileSync } from 'node:fs'
import type { PodObject } from '../../src/api/resource.ts'
import type { PoddRig } from './podd-rig.ts'
import { containerOf } from './podd-rig.ts'

/** Stops the shim of a pod by a signal: it answers nothing until this is disposed of. */
export function hangShim(podd: PoddRig, pod: PodObject): Disposable {
  const [, containerId = ''] = containerOf(pod, 'main').containerID?.split('://') ?? []
  const pid = parentOf(podd.pidOf(containerId))
  const program = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? ''
  if (!program.includes('containerd-shim')) throw new Error(`process ${pid} is no shim: ${program}`)
  process.kill(pid, 'SIGSTOP')
  return {
    [Symbol.dispose]: () => {
      // podd may have killed it meanwhile.
      if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGCONT')
    },
  }
}

function parentOf(pid: number): number {
  const parent = /^PPid:\s+(?<pid>\d+)$/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.groups?.['pid']
  return Number(parent)
}
