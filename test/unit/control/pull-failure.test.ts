import { expect, it } from 'vitest'
import { readPullFailure } from '../../../src/control/images/image-puller.ts'

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
