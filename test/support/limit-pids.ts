import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const base = '/sys/fs/cgroup'

/**
 * Puts a running process where no thread or process can be begun any more; those it has live on.
 * @returns what puts it back where it was
 */
export function forbidNewThreads(pid: number): () => void {
  const isVersion2 = existsSync(join(base, 'cgroup.controllers'))
  const controller = isVersion2 ? '' : 'pids'
  const root = join(base, controller)
  if (isVersion2) writeFileSync(join(root, 'cgroup.subtree_control'), '+pids')
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n')
  const line = lines.map((text) => text.split(':')).find(([, name]) => name === controller)
  const before = join(root, line?.[2] ?? '/')
  const directory = join(root, `podd-test-pids-${pid}`)
  mkdirSync(directory)
  writeFileSync(join(directory, 'cgroup.procs'), String(pid))
  writeFileSync(join(directory, 'pids.max'), '1')
  return () => {
    if (existsSync(`/proc/${pid}`)) writeFileSync(join(before, 'cgroup.procs'), String(pid))
    rmdirSync(directory)
  }
}
