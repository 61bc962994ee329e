import { bool, object, optional, string } from './types.ts'

/** `windowsOptions` of a pod and of its containers. */
export const windowsOptionsSchema = object('WindowsSecurityContextOptions', {
  gmsaCredentialSpecName: optional(string),
  gmsaCredentialSpec: optional(string),
  runAsUserName: optional(string),
  hostProcess: optional(bool),
})

export const windowsNote = 'podd runs Linux pods only, on which it has no effect'
