import { expect, it } from 'vitest'
import { isImageInUse } from '../../../src/control/images/image-uses.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'

const image: cri.Image = {
  id: 'sha256:1',
  repoTags: ['docker.io/library/a:1'],
  repoDigests: [],
  size: 1,
  uid: null,
  username: '',
  spec: null,
  pinned: false,
}
const container = (imageRef: string, name: string): cri.Container => ({
  id: 'c',
  podSandboxId: 's',
  metadata: null,
  image: { image: name, annotations: {}, userSpecifiedImage: '', runtimeHandler: '', imageRef: '' },
  imageRef,
  state: 'CONTAINER_EXITED',
  createdAt: 0,
  labels: {},
  annotations: {},
  imageId: '',
})

it.each([
  ['the id', image, [container('sha256:1', 'other')], true],
  ['a short name', image, [container('', 'a:1')], true],
  ['another image', image, [container('sha256:2', 'b:1')], false],
  ['the name of an image that is not there', null, [container('', 'a:1')], false],
])('finds whether a container has an image: %s', async (_, found, containers, expected) => {
  const { signal } = new AbortController()
  const calls = {
    imageStatus: async () => ({ image: found, info: {} }),
    listContainers: async () => ({ containers }),
  }
  expect(await isImageInUse(calls, calls, 'docker.io/library/a:1', signal)).toBe(expected)
})
