import { describe, expect, it, vi } from 'vitest'
import type { ImageUnpacking } from '../../../src/runtime/containerd/unpacked-images.ts'
import { writeOutPulled } from '../../../src/control/runtime/embedded-runtime.ts'
import type { ImageService } from '../../../src/runtime/cri-runtime.ts'

const refuse = (): Promise<never> => Promise.reject(new Error('not asked for'))
const unexpected = (error: unknown): never => {
  throw error
}
const service = (calls: Partial<ImageService>): ImageService => ({
  listImages: refuse,
  imageStatus: refuse,
  removeImage: refuse,
  imageFsInfo: refuse,
  pullImage: refuse,
  ...calls,
})
const request = { image: { image: 'r/app:1' } }
const pullImage = () => Promise.resolve({ imageRef: 'sha256:1' })
const image = {
  id: 'sha256:1',
  repoTags: [],
  repoDigests: [],
  size: 1,
  uid: null,
  username: '',
  spec: null,
  pinned: false,
}

/** Notes what is asked of it. `change` replaces calls. */
function unpackingOf(asked: string[], change: Partial<ImageUnpacking> = {}): ImageUnpacking {
  return {
    begin: async () => void asked.push('begin'),
    end: async (ids) => void asked.push(`end ${ids.join()}`),
    isUnwritten: () => true,
    writeOut: async () => void asked.push('write out'),
    ...change,
  }
}

describe('an image that is pulled', () => {
  it('counts as pulled once it is on the disk', async () => {
    const asked: string[] = []
    const written = Promise.withResolvers<void>()
    const unpacking = unpackingOf(asked, { writeOut: () => written.promise })
    const images = writeOutPulled(service({ pullImage }), () => unpacking, unexpected)
    const pulling = images.pullImage(request).then(({ imageRef }) => asked.push(`pulled ${imageRef}`))
    await expect.poll(() => asked).toEqual(['begin'])
    written.resolve()
    await pulling
    expect(asked).toEqual(['begin', 'end sha256:1', 'pulled sha256:1'])
  })

  it('is written out once, however often it is pulled, and again once images were removed', async () => {
    const asked: string[] = []
    // Its id was listed before.
    const unpacking = unpackingOf(asked, { isUnwritten: () => false })
    const removeImage = () => Promise.resolve({})
    const calls = service({ pullImage, removeImage })
    const images = writeOutPulled(calls, () => unpacking, unexpected)
    const once = ['begin', 'write out', 'end sha256:1']
    await images.pullImage(request)
    await images.pullImage(request)
    expect(asked).toEqual([...once, 'begin', 'end sha256:1'])
    await images.removeImage(request)
    await images.pullImage(request)
    expect(asked.slice(5)).toEqual(once)
  })

  it('stays on record where the disk does not take it', async () => {
    const asked: string[] = []
    const onFailure = vi.fn()
    const unpacking = unpackingOf(asked, { writeOut: refuse })
    const images = writeOutPulled(service({ pullImage }), () => unpacking, onFailure)
    expect(await images.pullImage(request)).toEqual({ imageRef: 'sha256:1' })
    expect(asked).toEqual(['begin'])
    expect(onFailure).toHaveBeenCalledOnce()
  })

  it('is not written out where it could not be had', async () => {
    const asked: string[] = []
    const unpacking = unpackingOf(asked)
    const images = writeOutPulled(service({}), () => unpacking, unexpected)
    await expect(images.pullImage(request)).rejects.toThrow('not asked')
    expect(asked).toEqual(['begin', 'end '])
  })

  it('is left to a runtime that writes it out by itself', async () => {
    const images = writeOutPulled(service({ pullImage }), () => undefined, unexpected)
    expect(await images.pullImage(request)).toEqual({ imageRef: 'sha256:1' })
  })
})

describe('an image that is found', () => {
  it.each([
    [true, ['write out']],
    [false, []],
  ])('is on the disk before it is used: unwritten %s', async (isUnwritten, expected) => {
    const asked: string[] = []
    const unpacking = unpackingOf(asked, { isUnwritten: () => isUnwritten })
    const imageStatus = () => Promise.resolve({ image, info: {} })
    const images = writeOutPulled(service({ imageStatus }), () => unpacking, unexpected)
    expect((await images.imageStatus(request)).image?.id).toBe('sha256:1')
    expect(asked).toEqual(expected)
  })
})
