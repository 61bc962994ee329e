import { describe, expect, it, vi } from 'vitest'
import { writeOutPulled } from '../../../src/control/runtime/write-out-pulled.ts'
import type { ImageService } from '../../../src/cri/cri-runtime.ts'

const refuse = (): Promise<never> => Promise.reject(new Error('not asked for'))
const service = (pullImage: ImageService['pullImage']): ImageService => ({
  listImages: refuse,
  imageStatus: refuse,
  removeImage: refuse,
  imageFsInfo: refuse,
  pullImage,
})
const request = { image: { image: 'r/app:1' } }

describe('an image that is pulled', () => {
  it('is written out when it is there', async () => {
    const writeOut = vi.fn()
    const reply = Promise.withResolvers<{ imageRef: string }>()
    const pulling = writeOutPulled(
      service(() => reply.promise),
      writeOut,
    ).pullImage(request)
    expect(writeOut).not.toHaveBeenCalled()
    reply.resolve({ imageRef: 'sha256:1' })
    expect(await pulling).toEqual({ imageRef: 'sha256:1' })
    expect(writeOut).toHaveBeenCalledOnce()
  })

  it('is written out once, however often it is pulled, and anew once images were removed', async () => {
    const writeOut = vi.fn()
    const removeImage = vi.fn(() => Promise.resolve({}))
    const pullImage = () => Promise.resolve({ imageRef: 'sha256:1' })
    const images = writeOutPulled({ ...service(pullImage), removeImage }, writeOut)
    await images.pullImage(request)
    await images.pullImage(request)
    expect(writeOut).toHaveBeenCalledOnce()
    await images.removeImage(request)
    await images.pullImage(request)
    expect(writeOut).toHaveBeenCalledTimes(2)
  })

  it('is not where it could not be had', async () => {
    const writeOut = vi.fn()
    await expect(writeOutPulled(service(refuse), writeOut).pullImage(request)).rejects.toThrow('not asked')
    expect(writeOut).not.toHaveBeenCalled()
  })
})
