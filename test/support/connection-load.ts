/**
 * node connection-load.ts HOST PORT RATE: opens RATE new connections a second, each with one HTTP request, and says once a
 * second how that went, as JSON; ends when its standard input does, after the last answer. A process of its own, so that
 * nothing else takes its time.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadCounts } from './host-port-load.ts'

const [host = '', port = '', rate = ''] = process.argv.slice(2)
const answerWithinMs = 30_000

let opened = 0
let answered = 0
let slowestMs = 0
const inFlight = new Set<Socket>()
const failures: Record<string, number> = {}
const ending = new AbortController()

function count(reason: string): void {
  failures[reason] = (failures[reason] ?? 0) + 1
}

function openOne(): void {
  opened += 1
  const beganMs = performance.now()
  let text = ''
  let failure: string | undefined
  const socket = connect({ host, port: Number(port), timeout: answerWithinMs })
  inFlight.add(socket)
  socket.setEncoding('latin1')
  socket.on('connect', () => socket.write('GET / HTTP/1.0\r\n\r\n'))
  socket.on('data', (chunk: string) => (text += chunk))
  socket.on('timeout', () => {
    failure = 'no answer'
    socket.destroy()
  })
  socket.on('error', (error: NodeJS.ErrnoException) => (failure ??= error.code ?? 'unknown'))
  socket.on('close', () => {
    inFlight.delete(socket)
    slowestMs = Math.max(slowestMs, performance.now() - beganMs)
    if (failure !== undefined) count(failure)
    else if (text.includes('served')) answered += 1
    else count('cut short')
  })
}

function tell(): void {
  const counts: LoadCounts = { opened, answered, slowestMs, failures }
  console.log(JSON.stringify(counts))
}

process.stdin.on('end', () => ending.abort()).resume()
const perMs = Number(rate) / 1000
const startedMs = performance.now()
let toldMs = startedMs
// What was late is made up for: the rate holds on average.
while (!ending.signal.aborted) {
  const due = Math.floor((performance.now() - startedMs) * perMs)
  for (let burst = 0; opened < due && burst < 10; burst += 1) openOne()
  if (performance.now() - toldMs > 1000) {
    toldMs = performance.now()
    tell()
  }
  await sleep(opened < due ? 1 : 4)
}
while (inFlight.size > 0) await sleep(10)
tell()
