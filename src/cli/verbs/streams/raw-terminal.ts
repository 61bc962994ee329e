import { spawnSync } from 'node:child_process'
import type { ReadStream } from 'node:tty'

/** They end this process. Node itself resets the terminal at SIGINT, SIGTERM and a plain exit. */
const endings = ['SIGHUP', 'SIGQUIT'] as const

/**
 * Puts the user's terminal, which is this process's standard input, into raw mode, as kubectl does (`term.MakeRaw`). That
 * covers its output too: the command's own terminal in the container has turned each line feed into a carriage return and
 * a line feed already, and the user's must not do so again. Returns the function that restores it. A signal that ends or
 * stops this process restores it as well; when the process continues, it is made raw again.
 */
export function makeRaw(stdin: ReadStream): () => void {
  const set = (): void => {
    stdin.setRawMode(true)
    // Node leaves the translation of output on. Without the program a command's full-screen output may be displaced.
    spawnSync('stty', ['-opost'], {
      stdio: ['inherit', 'ignore', 'ignore'],
      timeout: 5000,
      killSignal: 'SIGKILL',
    })
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
