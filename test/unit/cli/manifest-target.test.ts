import { expect, it } from 'vitest'
import { findManifestDirectory } from '../../../src/cli/local/manifest-target.ts'

const reply = { pods: [], objects: [], podNameSuffix: '-host' }

it.each([
  ['/nowhere/pods', 'the manifest directory /nowhere/pods does not exist'],
  ['/etc/hostname', 'the manifest directory /etc/hostname is a single file'],
  ['/etc/hostname/pods', "the manifest directory /etc/hostname/pods can't be read: ENOTDIR"],
])('says what is wrong with a directory of manifests: %s', async (manifestDirectory, message) => {
  await expect(findManifestDirectory({ ...reply, manifestDirectory })).rejects.toMatchObject({
    code: 'NO_MANIFEST_DIRECTORY',
    message: expect.stringContaining(message),
  })
})
