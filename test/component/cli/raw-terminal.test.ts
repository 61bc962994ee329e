import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const program = join(import.meta.dirname, '../../support/raw-terminal.ts')

/** A terminal (`script` of util-linux makes it) with a process that has made it raw. */
async function openTerminal() {
  const command = `${process.execPath} ${program}; echo "code $?"; stty -a; read -r word`
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'])
  let shown = ''
  child.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
  await expect.poll(() => shown).toContain('ready')
  const [, terminal = '', pid = ''] = /^(\S+) (\d+) ready/u.exec(shown) ?? []
  return {
    pid: Number(pid),
    shown: () => shown,
    type: (keys: string) => child.stdin.write(keys),
    /** Of the terminal's modes those that raw mode changes. */
    modes() {
      const words = execFileSync('stty', ['-F', terminal, '-a'], { encoding: 'utf8' }).split(/[\s;]+/u)
      const changed = ['opost', 'icanon', 'echo', 'isig', 'iexten', 'icrnl', 'ixon', 'brkint']
      return changed.filter((mode) => words.includes(mode))
    },
    setSane: () => execFileSync('stty', ['-F', terminal, 'sane']),
    async [Symbol.asyncDispose]() {
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
    },
  }
}

const cooked = ['opost', 'icanon', 'echo', 'isig', 'iexten', 'icrnl', 'ixon']
/** Empty once it is gone. */
const stateOf = (pid: number) =>
  spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout

describe('a terminal in raw mode', () => {
  it('changes nothing of input and output, and is as before when it ends', async () => {
    await using terminal = await openTerminal()
    expect(terminal.modes()).toEqual([])
    terminal.type('x')
    await expect.poll(() => terminal.shown()).toContain('code 0')
    expect(terminal.modes()).toEqual(expect.arrayContaining(cooked))
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)('is as before after %s', async (signal) => {
    await using terminal = await openTerminal()
    process.kill(terminal.pid, signal)
    await expect.poll(() => terminal.shown()).toMatch(/code 1\d\d/u)
    expect(terminal.modes()).toEqual(expect.arrayContaining(cooked))
  })

  it('takes its process along when it is closed', async () => {
    const terminal = await openTerminal()
    await terminal[Symbol.asyncDispose]()
    await expect.poll(() => stateOf(terminal.pid)).toBe('')
  })

  it('is as before while its process is stopped, and raw again when that continues', async () => {
    await using terminal = await openTerminal()
    process.kill(terminal.pid, 'SIGTSTP')
    await expect.poll(() => stateOf(terminal.pid)).toMatch(/^T/u)
    expect(terminal.modes()).toEqual(expect.arrayContaining(cooked))
    process.kill(terminal.pid, 'SIGCONT')
    await expect.poll(() => terminal.modes()).toEqual([])
    process.kill(terminal.pid, 'SIGSTOP')
    await expect.poll(() => stateOf(terminal.pid)).toMatch(/^T/u)
    terminal.setSane()
    process.kill(terminal.pid, 'SIGCONT')
    await expect.poll(() => terminal.modes()).toEqual([])
    terminal.type('x')
    await expect.poll(() => terminal.shown()).toContain('code 0')
    expect(terminal.modes()).toEqual(expect.arrayContaining(cooked))
  })
})
