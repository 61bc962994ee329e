import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'

/** Why a request failed. */
export interface Failure {
  readonly message: string
  readonly hint?: string
}

const authorityHint = `make this host trust its authority (update-ca-certificates, or SSL_CERT_FILE in podd's environment), and restart podd`
const untrusted = `no authority that this host trusts has signed the server's certificate`

/** The causes of TLS failures, by the codes of OpenSSL (X509_STORE_CTX_get_error(3)) and Node. */
const tlsFailures: Readonly<Record<string, Failure>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: { message: untrusted, hint: authorityHint },
  SELF_SIGNED_CERT_IN_CHAIN: { message: untrusted, hint: authorityHint },
  UNABLE_TO_GET_ISSUER_CERT: { message: untrusted, hint: authorityHint },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: { message: untrusted, hint: authorityHint },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { message: untrusted, hint: authorityHint },
  CERT_HAS_EXPIRED: {
    message: "the server's certificate has expired",
    hint: 'renew it; or is the clock of this host wrong?',
  },
  CERT_NOT_YET_VALID: {
    message: "the server's certificate is not valid yet",
    hint: 'is the clock of this host wrong?',
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    message: "the server's certificate is for another name",
    hint: 'write the URL with a name that the certificate bears',
  },
  ERR_SSL_WRONG_VERSION_NUMBER: { message: 'the server does not speak TLS', hint: 'is it http:// there?' },
}

const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the server refuses connections',
  ECONNRESET: 'the server broke the connection off',
  UND_ERR_SOCKET: 'the server broke the connection off',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer is shorter or longer than the server said',
  ENOENT: 'there is no such socket',
  Z_DATA_ERROR: 'the answer cannot be unpacked',
  Z_BUF_ERROR: 'the answer cannot be unpacked',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up',
  ENETUNREACH: 'the network is unreachable',
  EHOSTUNREACH: 'the host is unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'the server does not answer',
}

/** The message for a failed request. */
export function describeFailure(error: unknown, signal: AbortSignal): Failure {
  if (signal.aborted) return { message: errorMessage(signal.reason) }
  const code = errorCode(error) ?? ''
  if (error instanceof PoddError) return { message: error.message, ...(error.hint && { hint: error.hint }) }
  const message = failures[code] ?? `the request failed: ${errorMessage(error)}`
  return tlsFailures[code] ?? { message }
}
