import { spawn } from 'node:child_process'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** How a command ended; `code` is null for one that was killed. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * A virtual machine that can lose its power, driven by a program that is called as
 *
 *     PROGRAM up NAME               boots a fresh machine and returns once it is ready
 *     PROGRAM ssh NAME -- COMMAND   runs a line of shell in it as root, with the standard input that it gets
 *     PROGRAM reboot NAME           shuts it down in order and boots it, and returns once it is ready
 *     PROGRAM powercut NAME         kills it, so that what was not synced is lost, boots the same disk, and returns once it is ready
 *     PROGRAM down NAME             ends it and deletes its disk
 */
export class Machine {
  readonly name: string
  readonly #program: string

  constructor(program: string, name: string) {
    this.#program = program
    this.name = name
  }

  /** Whether it is there, and takes commands. */
  async isUp(): Promise<boolean> {
    return (await this.#call(['ssh', this.name, '--', 'true'], { timeoutMs: 120_000 })).code === 0
  }

  /** Runs a line of shell in the machine; one that fails is an error. */
  async run(command: string, input?: string | Uint8Array, timeoutMs = 600_000): Promise<string> {
    const { code, stdout, stderr } = await this.#call(['ssh', this.name, '--', command], { input, timeoutMs })
    if (code !== 0) throw new Error(`in the machine, exit code ${code}: ${command}\n${stdout}${stderr}`)
    return stdout
  }

  /** Writes a file, and the directories above it. */
  async write(path: string, content: string | Uint8Array): Promise<void> {
    // No reader takes a name that begins with a dot for a file of its own.
    const temporary = join(dirname(path), `.${basename(path)}`)
    await this.run(`mkdir -p ${dirname(path)} && cat >${temporary} && mv ${temporary} ${path}`, content)
  }

  /** Gives what the program says of it. */
  async power(verb: 'up' | 'reboot' | 'powercut' | 'down', timeoutMs = 900_000): Promise<string> {
    const { code, stdout, stderr } = await this.#call([verb, this.name], { timeoutMs })
    if (code !== 0) throw new Error(`${verb} of the machine, exit code ${code}:\n${stdout}${stderr}`)
    return stdout.trim()
  }

  /** What `look` gives once it gives something; a look that throws gives nothing. */
  async until<T>(what: string, look: () => Promise<T | undefined>, timeoutMs: number): Promise<T> {
    const giveUpAtMs = performance.now() + timeoutMs
    for (;;) {
      const beganMs = performance.now()
      const found = await look().catch(() => undefined)
      if (found !== undefined) return found
      const nowMs = performance.now()
      if (nowMs > giveUpAtMs) throw new Error(`waited in vain for ${what}`)
      // To look costs an emulated machine much of what it has. A look may have waited for a host that stood still.
      await sleep(Math.min(30_000, Math.max(3000, 5 * (nowMs - beganMs))))
    }
  }

  #call(
    args: readonly string[],
    options: { readonly input?: string | Uint8Array | undefined; readonly timeoutMs: number },
  ): Promise<Ended> {
    const child = spawn(this.#program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: options.timeoutMs })
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    // A command that reads nothing may be gone before its input is.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input)
    const text = (chunks: readonly Buffer[]) => Buffer.concat(chunks).toString('utf8')
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, stdout: text(stdout), stderr: text(stderr) }))
    })
  }
}
