import type { SecureContext } from 'node:tls'

/**
 * What the certificate of an https server is held against: the authorities that this host trusts, as
 * update-ca-certificates keeps them or `SSL_CERT_FILE` names them, with those of `NODE_EXTRA_CA_CERTS`.
 * Where the host has none at all, those that come with Node.
 */
export async function loadTrustedAuthorities(): Promise<SecureContext> {
  const { createSecureContext, getCACertificates } = await import('node:tls')
  const system = getCACertificates('system')
  const ca = system.length === 0 ? getCACertificates('default') : [...system, ...getCACertificates('extra')]
  return createSecureContext({ ca })
}
