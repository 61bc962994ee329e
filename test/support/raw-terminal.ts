import { readlinkSync } from 'node:fs'
import { makeRaw } from '../../src/cli/verbs/exec.ts'

/** A program: holds its terminal in raw mode until a key is pressed. It names the terminal and its process. */
const end = makeRaw(process.stdin)
process.stdout.write(`${readlinkSync('/proc/self/fd/0')} ${process.pid} ready\r\n`)
process.stdin.once('data', () => {
  end()
  process.stdin.destroy()
})
