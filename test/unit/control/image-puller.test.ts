import { describe, expect, it } from 'vitest'
import { ImagePuller, ImagePulls, readPullFailure } from '../../../src/control/images/image-puller.ts'
import { ImageError } from '../../../src/control/images/image-request.ts'
import type { PullRequest } from '../../../src/control/images/image-request.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import type { PullCredential } from '../../../src/decide/images/keyring.ts'
import type { PodEvent } from '../../../src/pod/state/pod-event.ts'
import type { ImageService } from '../../../src/runtime/cri-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { noCredentials } from '../../support/plain-pod-host.ts'

/** Nobody watches pulls, and there is room for all. */
const plainPulls = {
  pullQps: 0,
  pullBurst: 0,
  watch: undefined,
  checkRoom: async () => {},
  onPulling: () => {},
  wentBack: () => undefined,
}

/** A puller whose registry never answers well. */
function failingPuller(calls: Partial<ImageService> = {}) {
  const clock = new ManualClock()
  const events: PodEvent[] = []
  let pulls = 0
  const puller = new ImagePuller({
    images: {
      imageStatus: async () => ({ image: null, info: {} }),
      pullImage: async () => {
        pulls += 1
        throw new Error('connection refused')
      },
      ...calls,
    },
    events: { record: (event) => events.push(event) },
    clock,
    credentials: noCredentials,
    ...plainPulls,
    maxParallel: 1,
  })
  const ensure = async (image: string): Promise<ImageError> => {
    const request = {
      pod: { namespace: 'default', name: 'web', uid: 'u1' },
      container: { name: 'main', image, imagePullPolicy: 'IfNotPresent' as const },
      sandboxConfig: undefined,
      signal: new AbortController().signal,
    }
    const error = await puller.ensure(request).catch((thrown: unknown) => thrown)
    if (!(error instanceof ImageError)) throw new Error('the pull should have failed')
    return error
  }
  const waitMs = (error: ImageError) => error.retryAtMs - clock.wallMs()
  return { clock, events, ensure, waitMs, pulls: () => pulls }
}

describe('an image that cannot be pulled', () => {
  // id: backs-off-pulling
  it('is ErrImagePull for a moment, then ImagePullBackOff until it is tried again', async () => {
    const { clock, events, ensure, waitMs, pulls } = failingPuller()
    const first = await ensure('localhost/none:1')
    expect(first.reason).toBe('ErrImagePull')
    expect(waitMs(first)).toBe(2000)
    await clock.advance(2000)
    const second = await ensure('localhost/none:1')
    expect(second.reason).toBe('ImagePullBackOff')
    expect(second.message).toBe('Back-off pulling image "localhost/none:1": ErrImagePull: connection refused')
    expect(waitMs(second)).toBe(8000)
    expect(pulls()).toBe(1)
    await clock.advance(8000)
    expect((await ensure('localhost/none:1')).reason).toBe('ErrImagePull')
    await clock.advance(2000)
    expect(waitMs(await ensure('localhost/none:1'))).toBe(18_000)
    expect(pulls()).toBe(2)
    expect(events.slice(0, 5).map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      'Pulling: Pulling image "localhost/none:1"',
      'Failed: Failed to pull image "localhost/none:1": connection refused',
      'Failed: Error: ErrImagePull',
      'BackOff: Back-off pulling image "localhost/none:1"',
      'Failed: Error: ImagePullBackOff',
    ])
  })

  // id: invalid-image-name
  it.each(['localhost/Upper/Case:1', 'has space', 'name:-tag', ''])(
    'is InvalidImageName: %j',
    async (image) => {
      const { ensure, events, pulls } = failingPuller()
      expect((await ensure(image)).reason).toBe('InvalidImageName')
      expect(pulls()).toBe(0)
      expect(events.map(({ reason }) => reason)).toEqual(['InspectFailed', 'Failed'])
    },
  )

  it.each([
    [
      'RegistryUnavailable: no route',
      'image pull failed for app:1 because the registry is unavailable: no route',
    ],
    [
      // id: runtime-names-reason
      'SignatureValidationFailed: no key',
      'image pull failed for app:1 because the signature validation failed: no key',
    ],
  ])('is what the runtime says first: %s', async (text, message) => {
    const reason = text.slice(0, text.indexOf(':'))
    const { clock, events, ensure } = failingPuller({ pullImage: () => Promise.reject(new Error(text)) })
    expect(await ensure('app:1')).toMatchObject({ reason, message })
    expect(events.map(({ message }) => message)).toEqual([
      'Pulling image "app:1"',
      `Failed to pull image "app:1": ${text}`,
      `Error: ${reason}`,
    ])
    await clock.advance(2000)
    expect(await ensure('app:1')).toMatchObject({
      reason: 'ImagePullBackOff',
      message: `Back-off pulling image "app:1": ${reason}: ${message}`,
    })
  })

  // id: image-inspect-error
  it('is ImageInspectError where the runtime cannot say whether it is there', async () => {
    const imageStatus = () => Promise.reject(new Error('no answer'))
    const { events, ensure, pulls } = failingPuller({ imageStatus })
    expect(await ensure('app:1')).toMatchObject({
      reason: 'ImageInspectError',
      message: 'Failed to inspect image "app:1": no answer',
    })
    expect(pulls()).toBe(0)
    expect(events.map(({ reason }) => reason)).toEqual(['InspectFailed'])
  })
})

describe('an image that is on the machine', () => {
  const found: cri.Image = {
    id: 'sha256:1',
    repoTags: ['localhost/app:1'],
    repoDigests: [],
    size: 1,
    uid: null,
    username: '',
    spec: null,
    pinned: false,
  }
  const request = (imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never', fresh: boolean) => ({
    pod: { namespace: 'default', name: 'web', uid: 'u1' },
    container: { name: 'main', image: 'localhost/app:1', imagePullPolicy },
    fresh,
    sandboxConfig: undefined,
    signal: new AbortController().signal,
  })

  // pkg/kubelet/images/image_manager_test.go, 1.36.
  it.each([
    ['IfNotPresent', true, false, ['Pulled']],
    ['IfNotPresent', false, false, ['Pulling', 'Pulled']],
    ['Never', true, false, ['Pulled']],
    ['Never', false, false, ['ErrImageNeverPull']],
    ['Always', true, false, ['Pulling', 'Pulled']],
    ['IfNotPresent', false, true, ['Pulled']],
  ] as const)(
    'under %s, accessible: %s, just pulled: %s, gives %s',
    async (policy, mayUse, fresh, reasons) => {
      const events: PodEvent[] = []
      const recorded: string[] = []
      const puller = new ImagePuller({
        images: {
          imageStatus: async () => ({ image: found, info: {} }),
          pullImage: async () => ({ imageRef: found.id }),
        },
        credentials: {
          candidates: async () => [],
          mayUse: async () => mayUse,
          begin: async (image) => void recorded.push(`begin ${image}`),
          end: async (image, { kind }) => void recorded.push(`${kind} ${image}`),
        },
        events: { record: (event) => events.push(event) },
        clock: new ManualClock(),
        ...plainPulls,
        maxParallel: 1,
      })
      const outcome = await puller.ensure(request(policy, fresh)).then(
        ({ ref }) => ref,
        (error: ImageError) => error.reason,
      )
      expect(outcome).toBe(policy === 'Never' && !mayUse ? 'ErrImageNeverPull' : 'sha256:1')
      expect(events.map(({ reason }) => reason)).toEqual(reasons)
      const isPulled = events.some(({ reason }) => reason === 'Pulling')
      expect(recorded).toEqual(isPulled ? ['begin localhost/app:1', 'pulled localhost/app:1'] : [])
    },
  )
})

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
    ...plainPulls,
    maxParallel,
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

// The kubelet's own: pkg/kubelet/images/image_manager_test.go, TestEvalCRIPullErr.
it.each([
  // id: reads-pull-failures
  ['registry.example/app:1: not found', 'ErrImagePull', 'registry.example/app:1: not found'],
  [
    'RegistryUnavailable',
    'RegistryUnavailable',
    'image pull failed for app:1 because the registry is unavailable',
  ],
  [
    'RegistryUnavailable: 503',
    'RegistryUnavailable',
    'image pull failed for app:1 because the registry is unavailable: 503',
  ],
  [
    'SignatureValidationFailed: no key',
    'SignatureValidationFailed',
    'image pull failed for app:1 because the signature validation failed: no key',
  ],
  ['it was RegistryUnavailable', 'ErrImagePull', 'it was RegistryUnavailable'],
])('%s is %s', (text, reason, message) => {
  expect(readPullFailure('app:1', new Error(text))).toEqual({ reason, message })
})
