import type { PodObject } from '../api/resource.ts'
import { errorMessage } from '../base/errors.ts'
import { ApiClient, Refusal } from './api-client.ts'
import { element, update } from './dom.ts'
import { LiveData } from './live-data.ts'
import { LogView } from './log-view.ts'
import type { LogTarget } from './log-view.ts'
import { overview } from './overview.ts'
import { readPodLink } from './page-state.ts'
import { containersOf, podView } from './pod-view.ts'

/** How often ages are redrawn where nothing else changes. */
const redrawMs = 5000

const client = new ApiClient()
const logs = new LogView(client)
const body = element('div')
const main = find('main')
const connection = find('connection')
const signOutButton = find('sign-out')
let isLoggedIn = false
let isDue = false
const live = new LiveData(client, {
  onChange: redraw,
  onTrouble: showTrouble,
  onUnauthorized: () => askForToken(client.token === undefined ? '' : 'The token is no longer valid.'),
})
let place = ''
let openLines: ReadonlySet<string> = new Set()

function find(id: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(`#${id}`)
  if (found === null) throw new Error(`there is no #${id}`)
  return found
}

/** Draws once for several changes in a row. */
function redraw(): void {
  if (isDue || !isLoggedIn) return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    if (isLoggedIn) draw()
  })
}

function draw(): void {
  const { state } = live
  const nowMs = Date.now()
  find('host').textContent = state.node?.metadata.name ?? ''
  const link = readPodLink(location.hash)
  const pod = state.pods.findLast(
    ({ metadata }) => metadata.namespace === link?.namespace && metadata.name === link.name,
  )
  document.title = link === undefined ? 'podd' : `${link.name} - podd`
  if (link === undefined) {
    openLines = readOpenLines()
    update(body, overview(state, openLines, nowMs))
  } else if (pod === undefined)
    update(body, [
      element('p', {}, element('a', { href: '#' }, 'All pods')),
      element('p', {}, `There is no pod ${link.name} in namespace ${link.namespace}.`),
    ])
  else update(body, podView(pod, state, nowMs))
  showLogs(pod === undefined || link === undefined ? undefined : { ...link, containers: logsOf(pod) })
}

/** Those that the user has opened; as it was while they are not shown. */
function readOpenLines(): ReadonlySet<string> {
  if (body.querySelector('.lines') === null) return openLines
  const open = body.querySelectorAll<HTMLElement>('details[open]')
  return new Set([...open].map(({ dataset }) => dataset['uid'] ?? ''))
}

function logsOf(pod: PodObject): LogTarget['containers'] {
  return containersOf(pod).map(([, { name, containerID, restartCount }]) => ({
    name,
    instance: `${containerID} ${restartCount}`,
  }))
}

function showLogs(target: LogTarget | undefined): void {
  main.classList.toggle('pod', target !== undefined)
  if (target === undefined) {
    logs.stop()
    logs.node.remove()
    return
  }
  if (!logs.node.isConnected) main.append(logs.node)
  logs.show(target)
}

function showTrouble(message: string | undefined): void {
  connection.className = message === undefined ? '' : 'lost'
  const text = message ?? 'live'
  if (connection.textContent !== text) connection.textContent = text
}

function signIn(): void {
  isLoggedIn = true
  signOutButton.hidden = client.token === undefined
  showTrouble('connecting')
  main.replaceChildren(body)
  if (!document.hidden) live.start()
  redraw()
}

function askForToken(message: string): void {
  isLoggedIn = false
  live.stop()
  logs.stop()
  client.token = undefined
  signOutButton.hidden = true
  connection.textContent = ''
  find('host').textContent = ''
  main.replaceChildren(loginForm(client, message, signIn))
  main.querySelector('input')?.focus()
}

document.addEventListener('visibilitychange', () => {
  if (!isLoggedIn) return
  if (document.hidden) {
    live.stop()
    logs.stop()
  } else {
    live.start()
    redraw()
  }
})
addEventListener('hashchange', () => {
  redraw()
  // A screen reader begins at the part that was opened.
  if (location.hash !== place) main.focus()
  place = location.hash
})
signOutButton.addEventListener('click', () => askForToken(''))
setInterval(redraw, redrawMs)

const user = document.querySelector<HTMLMetaElement>('meta[name="podd-user"]')?.content ?? ''
if (user !== '' || client.token !== undefined) signIn()
else askForToken('')

/** Asks for a token until podd knows one. */
function loginForm(client: ApiClient, message: string, onDone: (user: string) => void): HTMLElement {
  const error = element('p', { class: 'bad', role: 'alert' }, message)
  const input = element('input', {
    id: 'token',
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    'aria-describedby': 'token-help',
  })
  const submit = async (): Promise<void> => {
    client.token = input.value.trim()
    try {
      onDone(await client.whoAmI())
    } catch (failure) {
      client.token = undefined
      const isRefused = failure instanceof Refusal && failure.status === 401
      error.textContent = isRefused ? 'The token is not valid.' : errorMessage(failure)
      input.focus()
    }
  }
  return element(
    'form',
    {
      submit: (event) => {
        event.preventDefault()
        void submit()
      },
    },
    element('h2', {}, 'Log in'),
    error,
    element('label', { for: 'token' }, 'Bearer token'),
    input,
    element(
      'p',
      { id: 'token-help', class: 'faint' },
      'A token of api.tokenFile on the host. It is kept until this tab is closed.',
    ),
    element('button', { type: 'submit' }, 'Log in'),
  )
}
