import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/**
 * The OCI runtime that `PODD_TEST_OCI_RUNTIME` names (`crun`), as a path; undefined where runc is to be used. crun
 * refuses a host where controllers are in version 2 of cgroups and others in version 1: there it gets a wrapper in
 * `directory`, which hides that tree from it. A Bidirectional mount doesn't reach the host through the wrapper.
 *
 * @throws Error where the program is not installed
 */
export function testOciRuntime(directory: string): string | undefined {
  const name = process.env['PODD_TEST_OCI_RUNTIME'] ?? ''
  return name === '' || name === 'runc' ? undefined : placeOciRuntime(name, directory)
}

/** The path of an installed OCI runtime, or of its wrapper. */
export function placeOciRuntime(name: string, directory: string): string {
  const program = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
  if (basename(program) !== 'crun' || !isHybrid()) return program
  const place = join(directory, 'oci-runtime')
  mkdirSync(place, { recursive: true })
  const wrapper = join(place, 'crun')
  const hidden = `umount ${hybridTree} && exec ${program} "$@"`
  const script = `#!/bin/sh\nexec unshare --mount --propagation slave sh -c '${hidden}' crun "$@"\n`
  writeFileSync(wrapper, script, { mode: 0o755 })
  return wrapper
}

const hybridTree = '/sys/fs/cgroup/unified'

function isHybrid(): boolean {
  const controllers = join(hybridTree, 'cgroup.controllers')
  return existsSync(controllers) && readFileSync(controllers, 'utf8').trim() !== ''
}
