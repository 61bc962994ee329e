import { errorMessage } from '../base/errors.ts'
import { escapeControls, withoutEscapeSequences } from '../base/text.ts'
import type { ApiClient } from './api-client.ts'
import { element, section, update } from './dom.ts'
import { logPath, readLines } from './page-state.ts'

const maxLines = 1000

export interface LogTarget {
  readonly namespace: string
  readonly name: string
  /** The instance changes with each restart. */
  readonly containers: readonly { readonly name: string; readonly instance: string }[]
}

/** The newest lines of a container's log, followed. */
export class LogView {
  readonly node: HTMLElement
  readonly #client: ApiClient
  readonly #choice = element('select', { id: 'container', change: () => this.#restart() })
  readonly #previous = element('input', { type: 'checkbox', id: 'previous', change: () => this.#restart() })
  readonly #text = element('pre', { tabindex: '0', role: 'log', 'aria-label': 'Log', 'aria-live': 'off' })
  readonly #state = element('p', { class: 'faint', role: 'status' })
  #target: LogTarget | undefined
  #running: AbortController | undefined
  /** Of the log that is shown to its end; undefined while it is followed. */
  #endedInstance: string | undefined

  constructor(client: ApiClient) {
    this.#client = client
    this.node = section(
      'Log',
      element(
        'div',
        { class: 'tools' },
        element('label', { for: 'container' }, 'Container'),
        this.#choice,
        element('label', { for: 'previous' }, this.#previous, ' of the run before'),
      ),
      this.#text,
      this.#state,
    )
  }

  /** Follows the log of another pod; that of the same pod continues. */
  show(target: LogTarget): void {
    const before = this.#target
    this.#target = target
    const chosen = this.#choice.value
    update(
      this.#choice,
      target.containers.map(({ name }) => element('option', { value: name }, name)),
    )
    const isSame = before?.namespace === target.namespace && before.name === target.name
    if (isSame && target.containers.some(({ name }) => name === chosen)) this.#choice.value = chosen
    const isRestarted = this.#endedInstance !== undefined && this.#endedInstance !== this.#instance()
    const goesOn = this.#running !== undefined && this.#choice.value === chosen && !isRestarted
    if (isSame && goesOn) return
    if (!isSame) this.#previous.checked = false
    this.#restart()
  }

  #instance(): string | undefined {
    return this.#target?.containers.find(({ name }) => name === this.#choice.value)?.instance
  }

  stop(): void {
    this.#running?.abort()
    this.#running = undefined
  }

  #restart(): void {
    this.stop()
    const running = new AbortController()
    this.#running = running
    this.#endedInstance = undefined
    this.#text.replaceChildren()
    void this.#follow(running.signal)
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const target = this.#target
    if (target === undefined || this.#choice.value === '') return
    const query = new URLSearchParams({
      container: this.#choice.value,
      tailLines: String(maxLines),
      ...(this.#previous.checked ? { previous: 'true' } : { follow: 'true' }),
    })
    const { namespace, name } = target
    const instance = this.#instance()
    this.#state.textContent = this.#previous.checked ? '' : 'Following.'
    const end = (said: string): void => {
      if (signal.aborted) return
      this.#state.textContent = said
      if (!this.#previous.checked) this.#endedInstance = instance
    }
    try {
      for await (const lines of readLines(
        await this.#client.open(`${logPath(namespace, name)}?${query}`, signal),
      ))
        this.#append(lines)
      end('This is the end of the log.')
    } catch (error) {
      end(errorMessage(error))
    }
  }

  #append(lines: readonly string[]): void {
    const text = this.#text
    const isAtEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 40
    const shown = lines.slice(-maxLines).map((line) => `${escapeControls(withoutEscapeSequences(line))}\n`)
    text.append(...shown)
    while (text.childNodes.length > maxLines) text.firstChild?.remove()
    if (isAtEnd) text.scrollTop = text.scrollHeight
  }
}
