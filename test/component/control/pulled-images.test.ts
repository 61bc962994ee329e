import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { PulledImages } from '../../../src/control/images/pulled-images.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import type { PullCredential } from '../../../src/decide/images/keyring.ts'
import type { VerificationPolicy } from '../../../src/decide/images/pulled-record.ts'
import { PullRecordStore } from '../../../src/store/pull-records.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let rootDir = ''

beforeEach(() => {
  rootDir = mkdtempSync(join(tmpdir(), 'podd-pulls-'))
})

afterEach(() => rmSync(rootDir, { recursive: true, force: true }))

const image = 'registry.io/team/app:1'
const id = 'sha256:app'
const secret = { source: 'file', namespace: 'default', name: 'reg' }

function credential(hash: string, name = 'reg'): PullCredential {
  return {
    credential: { username: 'user', password: 'hunter2', email: '', identityToken: '', registryToken: '' },
    hash,
    secret: { ...secret, name },
  }
}

/** A podd on the same disk as the one before, with a runtime that has one image. */
function start(
  settings: {
    readonly policy?: VerificationPolicy
    readonly has?: () => boolean
    readonly ref?: () => string
  } = {},
): PulledImages {
  const { policy = 'NeverVerifyPreloadedImages', has = () => true, ref = () => id } = settings
  const find = (): cri.Image => ({
    id: ref(),
    repoTags: [image],
    repoDigests: [],
    size: 1,
    uid: null,
    username: '',
    spec: null,
    pinned: false,
  })
  return new PulledImages({
    store: new PullRecordStore(rootDir),
    calls: {
      imageStatus: async () => ({ image: has() ? find() : null, info: {} }),
      listImages: async () => ({ images: has() ? [find()] : [] }),
    },
    rules: { policy, allowlist: [] },
    clock: new ManualClock(),
    logger: silentLogger,
  })
}

const listed = { id, repoTags: [image], repoDigests: [] }
const used = { ...secret, hash: 'h1' }

async function pullWith(pulled: PulledImages, with_: typeof used | 'none' = used): Promise<void> {
  await pulled.begin(image)
  await pulled.end(image, { kind: 'pulled', used: with_ })
}

function files(kind: 'pulled' | 'pulling'): string[] {
  return readdirSync(join(rootDir, 'image-pulls', kind))
}

describe('an image that was pulled', () => {
  it('with a Secret may be used with it alone, by the next podd too', async () => {
    await pullWith(start())
    for (const pulled of [start(), start()]) {
      expect(await pulled.mayUse(image, id, [])).toBe(false)
      expect(await pulled.mayUse(image, id, [credential('h2', 'other')])).toBe(false)
      expect(await pulled.mayUse(image, id, [credential('h1')])).toBe(true)
    }
    expect(files('pulling')).toEqual([])
  })

  it('without credentials may be used by all', async () => {
    await pullWith(start(), 'none')
    expect(await start().mayUse(image, id, [])).toBe(true)
  })

  it('is recorded in files of root alone, without a credential', async () => {
    await pullWith(start())
    const [name = ''] = files('pulled')
    const path = join(rootDir, 'image-pulls/pulled', name)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(join(rootDir, 'image-pulls/pulled')).mode & 0o777).toBe(0o700)
    const text = readFileSync(path, 'utf8')
    expect(text).not.toContain('hunter2')
    expect(JSON.parse(text)).toMatchObject({
      version: 1,
      imageRef: id,
      access: { 'registry.io/team/app': { allPods: false, secrets: [{ ...secret, hash: 'h1' }] } },
    })
  })

  it('remembers the same credentials in another Secret', async () => {
    const pulled = start()
    await pullWith(pulled)
    expect(await pulled.mayUse(image, id, [credential('h1', 'copy')])).toBe(true)
    // That Secret may be given other credentials later.
    expect(await start().mayUse(image, id, [credential('h3', 'copy')])).toBe(true)
  })

  it('may be used by no pod without a check while the record of it cannot be read', async () => {
    await pullWith(start(), 'none')
    const [name = ''] = files('pulled')
    const path = join(rootDir, 'image-pulls/pulled', name)
    writeFileSync(path, '{"version":99}')
    const pulled = start()
    expect(await pulled.mayUse(image, id, [])).toBe(false)
    await pullWith(pulled, 'none')
    expect(await start().mayUse(image, id, [])).toBe(true)
    expect(readFileSync(`${path}.unreadable`, 'utf8')).toBe('{"version":99}')
  })
})

describe('an image that was not pulled', () => {
  it.each<[VerificationPolicy, boolean]>([
    ['NeverVerify', true],
    ['NeverVerifyPreloadedImages', true],
    ['NeverVerifyAllowlistedImages', false],
    ['AlwaysVerify', false],
  ])('may be used under %s: %s', async (policy, expected) => {
    expect(await start({ policy }).mayUse(image, id, [credential('h1')])).toBe(expected)
  })

  it('stays preloaded where a pull of it failed', async () => {
    const pulled = start()
    await pulled.begin(image)
    expect(files('pulling')).toHaveLength(1)
    await pulled.end(image, { kind: 'failed' })
    expect(files('pulling')).toEqual([])
    expect(await pulled.mayUse(image, id, [])).toBe(true)
  })
})

describe('a pull that podd does not see the end of', () => {
  // id: settles-intents
  it('leaves an image that is verified, if it is there', async () => {
    await start({ has: () => false }).begin(image)
    const next = start()
    expect(await next.mayUse(image, id, [credential('h1')])).toBe(false)
    expect(files('pulling')).toEqual([])
    expect(files('pulled')).toHaveLength(1)
    await pullWith(next)
    expect(await start().mayUse(image, id, [credential('h1')])).toBe(true)
  })

  it('keeps its intent where the image is not there yet', async () => {
    await start({ has: () => false }).begin(image)
    expect(await start({ has: () => false }).mayUse('registry.io/other', 'sha256:other', [])).toBe(true)
    expect(files('pulling')).toHaveLength(1)
  })

  it('leaves an image that is verified where the runtime did not answer', async () => {
    let isThere = false
    const pulled = start({ has: () => isThere })
    await pulled.begin(image)
    isThere = true
    await pulled.end(image, { kind: 'unknown' })
    expect(await pulled.mayUse(image, id, [])).toBe(false)
  })

  // id: counts-intents
  it('is over with the last of those of the same image', async () => {
    let isThere = false
    const pulled = start({ has: () => isThere })
    await pulled.begin(image)
    isThere = true
    await pulled.begin(image)
    await pulled.end(image, { kind: 'failed' })
    expect(await pulled.mayUse(image, id, [])).toBe(false)
    await pulled.end(image, { kind: 'failed' })
    expect(await pulled.mayUse(image, id, [])).toBe(true)
  })
})

describe('an image that was there before a pull', () => {
  it('may be used by all while the pull is in flight, and after a podd that died meanwhile', async () => {
    const pulled = start()
    await pulled.begin(image)
    expect(await pulled.mayUse(image, id, [])).toBe(true)
    const next = start()
    expect(await next.mayUse(image, id, [])).toBe(true)
    expect(files('pulling')).toEqual([])
    expect(await start({ policy: 'AlwaysVerify' }).mayUse(image, id, [])).toBe(false)
  })

  it('is verified where the pull may have replaced it', async () => {
    await start().begin(image)
    const next = start({ ref: () => 'sha256:new' })
    expect(await next.mayUse(image, 'sha256:new', [])).toBe(false)
    expect(files('pulled')).toHaveLength(1)
  })
})

describe('an image that was imported', () => {
  it('may be used by all, whatever came of a pull of it before', async () => {
    let isThere = false
    const pulled = start({ has: () => isThere })
    await pulled.begin(image)
    isThere = true
    await pulled.end(image, { kind: 'unknown' })
    await pulled.noteImported([image])
    expect(files('pulling')).toEqual([])
    expect(await pulled.mayUse(image, id, [])).toBe(true)
    expect(await start().mayUse(image, id, [])).toBe(true)
  })

  it('may be used by all during a pull of it, and where podd died during that', async () => {
    let isThere = false
    const pulled = start({ has: () => isThere })
    await pulled.begin(image)
    isThere = true
    await pulled.noteImported([image])
    expect(await pulled.mayUse(image, id, [])).toBe(true)
    expect(await start().mayUse(image, id, [])).toBe(true)
    expect(await start({ policy: 'AlwaysVerify' }).mayUse(image, id, [])).toBe(false)
  })
})

describe('the records', () => {
  it('of an image end with its import, and those of its like under another name stay', async () => {
    const pulled = start()
    await pullWith(pulled)
    await pulled.noteImported(['registry.io/team/other:1'])
    expect(await pulled.mayUse(image, id, [])).toBe(false)
    await pulled.noteImported([image])
    expect(await start().mayUse(image, id, [])).toBe(true)
  })

  // id: prunes-records
  it('are forgotten with their images', async () => {
    const pulled = start()
    await pullWith(pulled)
    await pulled.prune([listed], pulled.mark)
    expect(files('pulled')).toHaveLength(1)
    await pulled.prune([], pulled.mark)
    expect(files('pulled')).toEqual([])
    expect(await pulled.mayUse(image, id, [])).toBe(true)
  })

  it('of what was pulled after the images were listed stay', async () => {
    const pulled = start()
    const { mark } = pulled
    await pullWith(pulled)
    await pulled.prune([], mark)
    expect(await pulled.mayUse(image, id, [])).toBe(false)
  })

  it('of pulls of unknown end are forgotten where there is no image', async () => {
    await start({ has: () => false }).begin(image)
    const pulled = start({ has: () => false })
    const { mark } = pulled
    await pulled.begin('registry.io/team/late:1')
    await pulled.end('registry.io/team/late:1', { kind: 'unknown' })
    await pulled.begin('registry.io/team/flying:1')
    await pulled.prune([], mark)
    expect(files('pulling')).toHaveLength(2)
    await pulled.prune([], pulled.mark)
    expect(files('pulling')).toHaveLength(1)
    expect(await pulled.mayUse(image, id, [])).toBe(true)
  })

  it('of pulls of unknown end are settled where there is an image', async () => {
    let isThere = false
    const pulled = start({ has: () => isThere })
    await pulled.begin(image)
    await pulled.end(image, { kind: 'unknown' })
    isThere = true
    await pulled.prune([listed], pulled.mark)
    expect(files('pulling')).toEqual([])
    expect(await start().mayUse(image, id, [])).toBe(false)
  })

  it('that cannot be written keep a pull from beginning', async () => {
    writeFileSync(join(rootDir, 'image-pulls'), '')
    await expect(start().begin(image)).rejects.toMatchObject({ code: 'RECORD_WRITE' })
    expect(await start().mayUse(image, id, [])).toBe(false)
  })
})
