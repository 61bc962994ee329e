/**
 * node numbered-server.ts PORT: answers each connection with `served`, and prints a numbered line every 20 ms. One process
 * that takes thousands of connections a second, which is more than a shell's can.
 */
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy())
  socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nserved'))
})
server.listen({ port: Number(process.argv[2]), host: '0.0.0.0', backlog: 4096 })
process.on('SIGTERM', () => process.exit(0))
for (let line = 0; ; line += 1) {
  console.log(`${line} line`)
  await sleep(20)
}
