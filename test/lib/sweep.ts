/**
 * node test/lib/sweep.ts MARKS: ends and removes by force all on this host that bears a mark of MARKS, as an interrupted run of
 * tests leaves it (test/lib/leftovers.sh lists it), and names it on stderr. Then removes MARKS. What can't be removed is
 * named, and MARKS stays: exit status 1.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { removeNetworkRules } from '../../src/runtime/network/forward-rules.ts'

const marks = process.argv[2] ?? ''
/** What has been killed may take a moment, and may have started more until then. */
const maxRounds = 100

function marksOf(kind: string): readonly string[] {
  const prefix = `${kind} `
  const lines = readFileSync(marks, 'utf8').split('\n')
  return [
    ...new Set(lines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length))),
  ]
}

/** `process 123 …`, `mount /…`, `path /…`: a kind, and what it is about. */
function listLeft(): readonly string[] {
  const { PODD_TEST_MARKS: _, ...env } = process.env
  const script = new URL('leftovers.sh', import.meta.url).pathname
  return execFileSync(script, [marks], { encoding: 'utf8', env }).split('\n').filter(Boolean)
}

/** Fails where it is gone already; what stays is listed again. */
function run(program: string, ...args: readonly string[]): string {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout ?? ''
}

/** A shim that was killed has left its socket outside of the directory. */
function shimSockets(directory: string): readonly string[] {
  const files = run('find', directory, '-xdev', '-name', 'address', '-o', '-name', 'bootstrap.json').split(
    '\n',
  )
  const told = files.filter(Boolean).map((path) => readFileSync(path, 'utf8'))
  return told.flatMap((text) => text.match(/(?<=unix:\/\/)\/run\/containerd\/s\/[0-9a-f]+/gu) ?? [])
}

/** The processes first, then what they held, from the inside out. */
async function removeOnce(left: readonly string[]): Promise<void> {
  const of = (kind: string): readonly string[] =>
    left.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1))
  const pids = of('process').map((line) => Number.parseInt(line, 10))
  for (const pid of pids) run('kill', '-KILL', String(pid))
  if (pids.length > 0) return
  for (const path of of('mount').toReversed()) run('umount', '--lazy', path)
  for (const name of of('link')) run('ip', 'link', 'delete', name)
  if (left.some((line) => line.includes('tables-save rule ')))
    for (const name of marksOf('name')) await removeNetworkRules({ networkName: name, bridgeName: name })
  for (const path of of('cgroup')) run('find', path, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';')
  for (const path of of('path')) {
    for (const socket of shimSockets(path)) rmSync(socket, { force: true })
    run('rm', '-rf', '--one-file-system', path)
  }
}

if (existsSync(marks)) {
  let left = listLeft()
  if (left.length > 0) console.error(`The tests left, and it is being removed:\n${left.join('\n')}`)
  for (let round = 0; left.length > 0 && round < maxRounds; round += 1) {
    await removeOnce(left)
    await sleep(20)
    left = listLeft()
  }
  if (left.length > 0) console.error(`These could not be removed:\n${left.join('\n')}`)
  else {
    for (const path of marksOf('tmp')) run('rm', '-rf', '--one-file-system', path)
    rmSync(marks, { force: true })
  }
  process.exitCode = left.length > 0 ? 1 : 0
}
