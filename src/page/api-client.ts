/** An answer with an error status. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const storageKey = 'podd-token'
const patienceMs = 15_000

/** A client of podd's API, with a bearer token, or with the browser's client certificate. */
export class ApiClient {
  /** Kept until the tab is closed. */
  get token(): string | undefined {
    return sessionStorage.getItem(storageKey) ?? undefined
  }

  set token(token: string | undefined) {
    if (token === undefined) sessionStorage.removeItem(storageKey)
    else sessionStorage.setItem(storageKey, token)
  }

  /** Rejects with Refusal, or the browser's error where podd can't be reached. */
  async get<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await this.#ask(path, { ...init, signal: AbortSignal.timeout(patienceMs) })
    const value: T = await response.json()
    return value
  }

  /** The user that podd identifies this client as. Rejects as `get`. */
  async whoAmI(): Promise<string> {
    const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const init = {
      method: 'POST',
      body: JSON.stringify(kind),
      headers: { 'content-type': 'application/json' },
    }
    type Review = { readonly status: { readonly userInfo: { readonly username: string } } }
    const { status } = await this.get<Review>('/apis/authentication.k8s.io/v1/selfsubjectreviews', init)
    return status.userInfo.username
  }

  /** What comes for as long as the signal isn't aborted. Rejects as `get`. */
  async open(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#ask(path, { signal })
    if (body === null) throw new Refusal(500, 'the answer has no body')
    return body
  }

  async #ask(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers)
    if (this.token !== undefined) headers.set('authorization', `Bearer ${this.token}`)
    const response = await fetch(path, { ...init, headers, cache: 'no-store' })
    if (response.ok) return response
    // A proxy in between answers without a Status: the code alone is shown.
    const status: unknown = await response.json().catch(() => undefined)
    const told =
      typeof status === 'object' && status !== null && 'message' in status ? String(status.message) : ''
    throw new Refusal(response.status, told === '' ? `podd answers ${response.status}` : told)
  }
}
