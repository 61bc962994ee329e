import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { WebSocket } from 'ws'

/** Debian's; undefined where there is none. */
export const chromiumPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) =>
  existsSync(path),
)

const blank = 'about:blank'

type Json = Readonly<Record<string, unknown>>

/** One tab of a Chromium without a window, over its DevTools protocol. */
export class Chromium {
  /** What the console said as an error, what scripts threw, what could not be loaded. */
  readonly errors: string[] = []
  readonly #socket: WebSocket
  readonly #end: () => Promise<void>
  readonly #waiting = new Map<number, (answer: Json) => void>()
  #session: string | undefined
  #next = 1

  private constructor(socket: WebSocket, end: () => Promise<void>) {
    this.#socket = socket
    this.#end = end
    socket.on('message', (data: Buffer) => this.#take(JSON.parse(data.toString()) as Json))
  }

  static async start(path: string, more: readonly string[] = []): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), 'podd-chromium-'))
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-dev-shm-usage']
    const quiet = [
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ]
    const program = spawn(
      path,
      [...flags, ...quiet, ...more, `--user-data-dir=${profile}`, '--remote-debugging-port=0', blank],
      { stdio: ['ignore', 'ignore', 'pipe'], detached: true, env: { ...process.env, HOME: profile } },
    )
    const exited = once(program, 'exit')
    const end = async (): Promise<void> => {
      // It has children of its own.
      if (program.exitCode === null && program.pid !== undefined) process.kill(-program.pid, 'SIGKILL')
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
    let said = ''
    for await (const chunk of program.stderr) {
      said += String(chunk)
      const [, url] = /DevTools listening on (?<url>ws:\S+)/u.exec(said) ?? []
      if (url === undefined) continue
      const socket = new WebSocket(url)
      await once(socket, 'open')
      const chromium = new Chromium(socket, end)
      await chromium.#openTab()
      return chromium
    }
    await end()
    throw new Error(`chromium does not start: ${said}`)
  }

  async #openTab(): Promise<void> {
    const { targetId } = await this.send('Target.createTarget', { url: blank })
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true })
    this.#session = String(sessionId)
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`)
    // podd's authority is not known to the browser.
    await this.send('Security.setIgnoreCertificateErrors', { ignore: true })
  }

  /**
   * Leaves what is shown, and opens a page: scripts that are evaluated from now on run in it. Chromium drops its requests when
   * a network device of the host comes or goes, as those of pods do: then it is asked for again.
   */
  async open(url: string): Promise<void> {
    const shown = () => this.evaluate('location.href').catch(() => undefined)
    await this.send('Page.navigate', { url: blank })
    await expect.poll(shown).toBe(blank)
    if (url === blank) return
    const load = async () => (await this.send('Page.navigate', { url }))['errorText']
    await expect.poll(load).not.toBe('net::ERR_NETWORK_CHANGED')
    await expect.poll(shown).not.toBe(blank)
  }

  send(method: string, params: Json = {}): Promise<Json> {
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result as Json)
        else reject(new Error(`${method}: ${JSON.stringify(error)}`))
      })
      this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.#session }))
    })
  }

  /** The value of an expression, once its promise is fulfilled. Rejects with what it throws. */
  async evaluate(expression: string): Promise<unknown> {
    const options = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', options)
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return (result as Json)['value']
  }

  /** The text that is seen. */
  async text(selector = 'body'): Promise<string> {
    return String(await this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`))
  }

  /** As wide and bright as a device. */
  async setDevice(width: number, height: number, scheme: 'light' | 'dark'): Promise<void> {
    const mobile = width < 600
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile })
    await this.send('Emulation.setEmulatedMedia', {
      features: [{ name: 'prefers-color-scheme', value: scheme }],
    })
  }

  async press(key: string, code: number, text?: string): Promise<void> {
    const event = { key, code: key, windowsVirtualKeyCode: code, ...(text !== undefined && { text }) }
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
  }

  /** The whole page as PNG. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { captureBeyondViewport: true })
    return Buffer.from(String(data), 'base64')
  }

  async close(): Promise<void> {
    this.#socket.terminate()
    await this.#end()
  }

  #take({ id, method, params, ...answer }: Json): void {
    if (typeof id === 'number') {
      this.#waiting.get(id)?.(answer)
      this.#waiting.delete(id)
      return
    }
    const told = params as Json
    if (method === 'Runtime.exceptionThrown') this.errors.push(JSON.stringify(told['exceptionDetails']))
    if (method === 'Runtime.consoleAPICalled' && told['type'] === 'error')
      this.errors.push(JSON.stringify(told['args']))
    if (method === 'Log.entryAdded') {
      const entry = told['entry'] as Json
      const isHosts = String(entry['text']).includes('ERR_NETWORK_CHANGED')
      const isBad = entry['level'] === 'error' || entry['level'] === 'warning'
      // A network device of the host that comes or goes is no fault of the page.
      if (isBad && !isHosts) this.errors.push(JSON.stringify(entry))
    }
  }
}
