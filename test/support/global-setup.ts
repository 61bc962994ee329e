import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const sweepProgram = new URL('../lib/sweep.ts', import.meta.url).pathname
const marksDir = '/tmp'

/**
 * Before all tests: has what they make on the host bear marks (test-marks.ts), and a process wait for the end of vitest, which
 * ends its workers without their hooks when it is interrupted. That process removes by force whatever bears a mark then.
 * test/run.sh, which names the file of the marks itself, looks for what was left and removes it on its own.
 */
export function setup(): (() => void) | undefined {
  sweepDeadRuns()
  if (process.env['PODD_TEST_MARKS'] !== undefined) return undefined
  const marks = join(marksDir, `podd-test-marks-${process.pid}-${startOf(process.pid)}`)
  // What interrupted tests leave of temporary files is in there.
  const scratch = mkdtempSync(join(marksDir, 'podd-run-'))
  writeFileSync(marks, `tmp ${scratch}\n`, { flag: 'wx' })
  const args = ['-c', waitAndSweep, 'sh', marks, scratch, ...sweepOf(marks)]
  const sweeper = spawn('sh', args, { detached: true, stdio: ['pipe', 'ignore', 'inherit'] })
  sweeper.unref()
  process.env['PODD_TEST_MARKS'] = marks
  process.env['TMPDIR'] = scratch
  return () => sweeper.stdin.write('done\n')
}

/** Its standard input ends with vitest, however that does. Where all went well and nothing bears a mark there is little to do. */
const waitAndSweep = `
trap "" HUP INT TERM
read -r end
cat >/dev/null
marks=$1 scratch=$2
shift 2
if [ "$end" = done ] && ! grep -qv "^tmp " "$marks"; then exec rm -rf --one-file-system "$marks" "$scratch"; fi
exec "$@"
`

/** What runs whose end nobody saw have left. */
function sweepDeadRuns(): void {
  for (const name of readdirSync(marksDir)) {
    const [, pid, start] = /^podd-test-marks-(\d+)-(\d+)$/u.exec(name) ?? []
    const path = join(marksDir, name)
    if (pid === undefined || startOf(Number(pid)) === start || !isOurs(path)) continue
    spawn(process.execPath, sweepOf(path).slice(1), { stdio: ['ignore', 'ignore', 'inherit'] }).unref()
  }
}

/** Anybody may put a file there, and what it names is removed. */
function isOurs(path: string): boolean {
  return existsSync(path) && statSync(path).uid === process.getuid?.()
}

function sweepOf(marks: string): readonly string[] {
  return [process.execPath, sweepProgram, marks]
}

/** When a process started, in ticks since the boot; empty for one that has ended. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    // It has ended.
    return ''
  }
}
