import { appendFileSync } from 'node:fs'

/** What tells a rig's things on the host from all others, as test/lib/leftovers.sh looks for them. */
export interface TestMarks {
  /** Its directory: an absolute path. */
  readonly directory?: string
  /** The cgroup above its pods: `/podd-e2e-0123`. */
  readonly cgroup?: string
  /** Of its bridge, and of its CNI network. */
  readonly names?: readonly string[]
}

/** Writes a rig's marks down, before it makes anything, where `PODD_TEST_MARKS` names a file for that. */
export function writeTestMarks({ directory, cgroup, names = [] }: TestMarks): void {
  const file = process.env['PODD_TEST_MARKS']
  if (file === undefined || file === '') return
  const lines = [
    ...(directory === undefined ? [] : [`directory ${directory}`]),
    ...(cgroup === undefined ? [] : [`cgroup ${cgroup}`]),
    ...names.map((name) => `name ${name}`),
  ]
  appendFileSync(file, lines.map((line) => `${line}\n`).join(''))
}
