import { spawnSync } from 'node:child_process'
import type { ReadStream } from 'node:tty'

/** They end this process. Node itself resets the terminal at SIGINT, SIGTERM and a plain exit. */
const endings = ['SIGHUP', 'SIGQUIT'] as const

/**
 * Puts the user's terminal, which is this process's standard input, into raw mode, output included: what the command's own terminal has made of a line's end
 * stays as it is (`term.MakeRaw`, as kubectl does it). Returns the function that restores it; it is restored also where a
 * signal ends or stops this process meanwhile, and made raw again when it continues.
 */
export function makeRaw(stdin: ReadStream): () => void {
  const set = (): void => {
    stdin.setRawMode(true)
    // Node leaves the translation of output on. Without the program a command's full-screen output may be displaced.
    spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] })
  }
  const restore = (): void => void stdin.setRawMode(false)
  const end = (name: NodeJS.Signals): void => {
    release()
    process.kill(process.pid, name)
  }
  const stop = (): void => {
    restore()
    process.kill(process.pid, 'SIGSTOP')
  }
  const goOn = (): void => {
    // The shell has set modes of its own: Node would take it for raw still.
    restore()
    set()
  }
  const release = (): void => {
    for (const name of endings) process.off(name, end)
    process.off('SIGTSTP', stop)
    process.off('SIGCONT', goOn)
    restore()
  }
  for (const name of endings) process.on(name, end)
  process.on('SIGTSTP', stop)
  process.on('SIGCONT', goOn)
  set()
  return release
}
