import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PoddRig } from './podd-rig.ts'

/** Has the daemon evaluate an expression, through Node's inspector. */
export async function evaluate(podd: PoddRig, expression: string): Promise<void> {
  const log = (): string => readFileSync(join(podd.directory, 'podd.log'), 'utf8')
  const before = log().length
  process.kill(podd.daemonPid, 'SIGUSR1')
  const url = await podd.until(
    'the inspector',
    () => /Debugger listening on (?<url>ws:\S+)/u.exec(log().slice(before))?.groups?.['url'],
  )
  const socket = new WebSocket(url)
  try {
    await new Promise((resolve, reject) => {
      socket.addEventListener('error', reject)
      socket.addEventListener('open', resolve)
    })
    socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } }))
    await new Promise((resolve) => {
      socket.addEventListener('message', resolve)
      socket.addEventListener('close', resolve)
    })
  } finally {
    socket.close()
  }
}
