import { Refusal } from '../data/api-client.ts'
import type { ApiClient } from '../data/api-client.ts'
import { element } from './dom.ts'

/** Asks for a token until podd knows one. */
export function loginForm(client: ApiClient, message: string, onDone: (user: string) => void): HTMLElement {
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
      error.textContent =
        failure instanceof Refusal && failure.status === 401
          ? 'The token is not valid.'
          : failure instanceof Error
            ? failure.message
            : String(failure)
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
