import { describe, expect, it } from 'vitest'
import { noCredentials } from '../../../src/control/images/image-access.ts'
import { ImagePulls } from '../../../src/control/images/image-puller.ts'
import type { PullRequest } from '../../../src/control/images/image-request.ts'
import type { PullCredential } from '../../../src/decide/images/keyring.ts'
import { ManualClock } from '../../support/manual-clock.ts'

interface Settings {
  readonly maxParallel?: number
  readonly candidates?: (request: PullRequest) => readonly string[]
}

interface SentPull {
  readonly image: string
  readonly user: string | undefined
  readonly signal: AbortSignal | undefined
  readonly succeed: () => void
  readonly fail: (message: string) => void
}

function credentialOf(username: string): PullCredential {
  const credential = { username, password: '', email: '', identityToken: '', registryToken: '' }
  return { credential, hash: `hash of ${username}`, secret: undefined }
}

/** Pulls from a registry that answers when it is told to. */
function pullsOf({ maxParallel, candidates = () => [] }: Settings) {
  const clock = new ManualClock()
  const sent: SentPull[] = []
  const pulls = new ImagePulls({
    images: {
      pullImage: ({ image, auth }, { signal } = {}) =>
        new Promise((resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason))
          sent.push({
            image: image?.image ?? '',
            user: auth?.username,
            signal,
            succeed: () => resolve({ imageRef: 'ref' }),
            fail: (message) => reject(new Error(message)),
          })
        }),
    },
    credentials: {
      ...noCredentials,
      candidates: async (request) => candidates(request).map((user) => credentialOf(user)),
    },
    clock,
    maxParallel,
    pullQps: 0,
    pullBurst: 0,
  })
  const pull = (name: string, image: string, signal = new AbortController().signal) => {
    const outcome = pulls
      .pull({
        pod: { namespace: 'default', name, uid: name },
        image,
        signal,
      })
      .then(
        () => 'pulled',
        (error: Error) => error.message,
      )
    return outcome
  }
  const settle = () => clock.advance(0)
  const inFlight = () => sent.map(({ image }) => image)
  return { clock, sent, pull, settle, inFlight }
}

describe('pulls of images', () => {
  // id: pulls-one-by-one
  it('go one after the other, in the order of the requests', async () => {
    const { sent, pull, settle, inFlight } = pullsOf({ maxParallel: 1 })
    const all = [pull('a', 'one'), pull('b', 'two'), pull('c', 'three')]
    await settle()
    expect(inFlight()).toEqual(['one'])
    sent[0]?.fail('refused')
    await settle()
    expect(inFlight()).toEqual(['one', 'two'])
    sent[1]?.succeed()
    await settle()
    sent[2]?.succeed()
    expect(await Promise.all(all)).toEqual(['refused', 'pulled', 'pulled'])
  })

  // id: pulls-as-many-as-may
  it('go as many at a time as may', async () => {
    const { sent, pull, settle, inFlight } = pullsOf({ maxParallel: 2 })
    void ['one', 'two', 'three', 'four'].map((image) => pull(image, image))
    await settle()
    expect(inFlight()).toEqual(['one', 'two'])
    sent[1]?.succeed()
    await settle()
    expect(inFlight()).toEqual(['one', 'two', 'three'])
  })

  // id: pulls-without-limit
  it('go all at once where there is no limit', async () => {
    const { pull, settle, inFlight } = pullsOf({})
    const images = Array.from({ length: 20 }, (_, index) => `image-${index}`)
    void images.map((image) => pull(image, image))
    await settle()
    expect(inFlight()).toEqual(images)
  })

  it('are shared by pods with the same credentials alone', async () => {
    const { sent, pull, settle } = pullsOf({ candidates: ({ pod }) => [pod?.name.slice(0, 1) ?? ''] })
    const all = [pull('a1', 'one'), pull('a2', 'one'), pull('b1', 'one')]
    await settle()
    expect(sent.map(({ user }) => user)).toEqual(['a', 'b'])
    sent[0]?.succeed()
    sent[1]?.fail('denied')
    expect(await Promise.all(all)).toEqual(['pulled', 'pulled', 'denied'])
  })

  it('try each of the credentials until one fits', async () => {
    const { sent, pull, settle } = pullsOf({ candidates: () => ['a', 'b'] })
    const outcome = pull('web', 'one')
    await settle()
    sent[0]?.fail('denied')
    await settle()
    expect(sent.map(({ user }) => user)).toEqual(['a', 'b'])
    sent[1]?.succeed()
    expect(await outcome).toBe('pulled')
  })

  it('give the errors of all credentials, each message once', async () => {
    const { sent, pull, settle } = pullsOf({ candidates: () => ['a', 'b', 'c'] })
    const outcome = pull('web', 'one')
    for (const [index, message] of ['denied', 'not found', 'denied'].entries()) {
      await settle()
      sent[index]?.fail(message)
    }
    expect(await outcome).toBe('[denied, not found]')
  })

  it('are cancelled a while after the last pod has stopped waiting', async () => {
    const { clock, sent, pull, settle } = pullsOf({ maxParallel: 1 })
    const first = new AbortController()
    const second = new AbortController()
    const outcomes = [pull('a', 'one', first.signal), pull('b', 'one', second.signal)]
    await settle()
    first.abort(new Error('gone'))
    await clock.advance(20_000)
    expect(sent[0]?.signal?.aborted).toBe(false)
    second.abort(new Error('gone'))
    await clock.advance(9000)
    expect(sent[0]?.signal?.aborted).toBe(false)
    await clock.advance(1000)
    expect(sent[0]?.signal?.aborted).toBe(true)
    expect(await Promise.all(outcomes)).toEqual(['gone', 'gone'])
  })
})
