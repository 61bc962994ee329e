import { createHash } from 'node:crypto'
import type { AuthConfigInput } from '../../cri-types/cri-v1.ts'

/** A registry credential; never logged, nor part of an error or an event. */
export interface RegistryCredential {
  readonly username: string
  readonly password: string
  readonly email: string
  /** Exchanged for an access token by the runtime. */
  readonly identityToken: string
  /** A bearer token for the registry itself. */
  readonly registryToken: string
}

/**
 * Identifies credentials without revealing them: hexadecimal SHA-256 of their JSON form, in which empty fields are left
 * out (`pkg/credentialprovider/keyring.go`, hashAuthConfig, 1.36). It is kept on disk: the form never changes.
 */
export function credentialHash(credential: RegistryCredential): string {
  const { username, password, email, identityToken, registryToken } = credential
  const fields = [
    ['username', username],
    ['password', password],
    ['email', email],
    ['identitytoken', identityToken],
    ['registrytoken', registryToken],
  ].filter(([, value]) => value !== '')
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(fields)))
    .digest('hex')
}

/** The CRI form. With an identity token the user name is only a placeholder. */
export function toAuthConfig(credential: RegistryCredential): AuthConfigInput {
  const { username, password, identityToken, registryToken } = credential
  if (identityToken !== '' && password === '') return { identityToken }
  return {
    ...(username !== '' && { username }),
    ...(password !== '' && { password }),
    ...(identityToken !== '' && { identityToken }),
    ...(registryToken !== '' && { registryToken }),
  }
}
