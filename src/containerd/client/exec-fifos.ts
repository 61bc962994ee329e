import { constants, existsSync, open } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { removeTree } from '../../base/atomic-file.ts'
import { type Clock, sleepUnlessAborted } from '../../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { commandOutput } from '../../host/run-command.ts'

/** Which streams a command has. A terminal's output is one stream. */
export interface FifoChoices {
  readonly stdin: boolean
  readonly stderr: boolean
}

/** The streams of one command; a path that is empty is none. */
export interface ExecFifos {
  readonly paths: { readonly stdin: string; readonly stdout: string; readonly stderr: string }
  readonly stdout: Socket
  readonly stderr: Socket | undefined
  /** Opens the writing end once the shim has opened the reading end. Resolves with undefined where it never does. */
  openStdin(signal: AbortSignal): Promise<Socket | undefined>
  /** Closes podd's ends. */
  close(): void
  /** Closes and removes the pipes. */
  remove(): Promise<void>
}

const openFile = promisify(open)

const openPollMs = 5
/** The shim opens its end while it starts the process; it gives up itself after 30 s. */
const openPatienceMs = 30_000

/**
 * Makes the named pipes of one command in a directory of its own, where they aren't there, and opens the reading ends,
 * so that the shim finds a reader. Named pipes and not sockets, because the shim takes no other; non-blocking, so that
 * none of Node's few threads ever waits for one. Throws PoddError EXEC_FAILED, and then leaves nothing behind.
 */
export async function makeExecFifos(
  directory: string,
  choices: FifoChoices,
  clock: Clock,
): Promise<ExecFifos> {
  const opened: Socket[] = []
  const close = (): void => {
    for (const socket of opened) socket.destroy()
  }
  const remove = async (): Promise<void> => {
    close()
    await removeTree(directory)
  }
  const paths = {
    stdin: choices.stdin ? join(directory, 'stdin') : '',
    stdout: join(directory, 'stdout'),
    stderr: choices.stderr ? join(directory, 'stderr') : '',
  }
  const openEnd = async (path: string, end: 'read' | 'write'): Promise<Socket> => {
    const flag = end === 'read' ? constants.O_RDONLY : constants.O_WRONLY
    const fd = await openFile(path, flag | constants.O_NONBLOCK)
    const socket = new Socket({ fd, readable: end === 'read', writable: end === 'write' })
    // A process may not read its input, and a broken pipe has ended.
    socket.on('error', () => {})
    opened.push(socket)
    return socket
  }
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const missing = Object.values(paths).filter((path) => path !== '' && !existsSync(path))
    // Node can't make named pipes; coreutils and busybox can.
    if (missing.length > 0) await commandOutput('mkfifo', ['-m', '600', ...missing])
    return {
      paths,
      stdout: await openEnd(paths.stdout, 'read'),
      stderr: choices.stderr ? await openEnd(paths.stderr, 'read') : undefined,
      openStdin: (signal) => untilRead(() => openEnd(paths.stdin, 'write'), clock, signal),
      close,
      remove,
    }
  } catch (error) {
    await remove()
    throw new PoddError('EXEC_FAILED', `cannot make the pipes of a command: ${errorMessage(error)}`, {
      cause: error,
    })
  }
}

/** Opening to write fails with ENXIO while nothing reads. */
async function untilRead(
  openEnd: () => Promise<Socket>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const giveUpAtMs = clock.monotonicMs() + openPatienceMs
  while (!signal.aborted && clock.monotonicMs() < giveUpAtMs) {
    try {
      return await openEnd()
    } catch (error) {
      if (errorCode(error) !== 'ENXIO') return undefined
      await sleepUnlessAborted(clock, openPollMs, signal)
    }
  }
  return undefined
}
