import { ReadStream, WriteStream } from 'node:tty'
import type { TerminalSize } from '../../../api/remote-command.ts'
import type { ExecStreams } from '../../client/exec-stream.ts'
import type { VerbContext } from '../../arguments/verb.ts'
import { makeRaw } from './raw-terminal.ts'

/** The command gets a terminal only where input and output are one, as with kubectl. */
export function chooseStreams({ args, stdio }: VerbContext, notify: (line: string) => void): ExecStreams {
  const { stdin, stdout, stderr } = stdio
  if (!args.has('stdin')) {
    if (args.has('tty')) notify('A TTY needs input too: without -i there is none')
    return { stdin: undefined, stdout, stderr, terminal: undefined }
  }
  if (!args.has('tty')) return { stdin, stdout, stderr, terminal: undefined }
  if (!(stdin instanceof ReadStream)) {
    notify('Unable to use a TTY - input is not a terminal or the right kind of file')
    return { stdin, stdout, stderr, terminal: undefined }
  }
  const size = (): TerminalSize =>
    stdout instanceof WriteStream && stdout.columns > 0 && stdout.rows > 0
      ? { columns: stdout.columns, rows: stdout.rows }
      : { columns: 80, rows: 24 }
  return {
    stdin,
    stdout,
    stderr,
    terminal: {
      size,
      makeRaw: () => makeRaw(stdin),
      onResize(listener) {
        stdout.on('resize', listener)
        return () => void stdout.off('resize', listener)
      },
    },
  }
}
