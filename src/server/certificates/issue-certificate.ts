import { createHash, createPrivateKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { isIP, isIPv4 } from 'node:net'
import { newUuid } from '../../base/random.ts'
import {
  bitString,
  boolean,
  explicit,
  implicit,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  unsignedInteger,
  utf8String,
} from './der.ts'

/** A certificate with its private key, both in PEM. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

export interface CertificateRequest {
  readonly subject: { readonly commonName: string; readonly organizations?: readonly string[] }
  /** The use of a certificate: an authority's, a server's for these host names and addresses, or a client's. */
  readonly use:
    | { readonly kind: 'authority' }
    | { readonly kind: 'server'; readonly names: readonly string[] }
    | { readonly kind: 'client' }
  readonly fromMs: number
  readonly untilMs: number
}

const oids = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const

/** Bits of keyUsage, from the highest one down (RFC 5280, 4.2.1.3). */
const keyUsages = {
  /** keyCertSign and cRLSign. */
  authority: bitString(Buffer.from([0b0000_0110]), 1),
  /** digitalSignature. */
  leaf: bitString(Buffer.from([0b1000_0000]), 7),
} as const

/**
 * Makes an ECDSA P-256 key and a certificate for it (X.509 v3, RFC 5280), signed by an authority or, without one, by
 * itself.
 */
export function issueCertificate(request: CertificateRequest, issuer?: KeyPair): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const signer = issuer === undefined ? privateKey : createPrivateKey(issuer.key)
  const authority = issuer === undefined ? undefined : new X509Certificate(issuer.certificate)
  const subject = nameOf(request.subject)
  const body = sequence(
    explicit(0, unsignedInteger(Buffer.from([2]))),
    unsignedInteger(newSerial()),
    signatureAlgorithm(),
    authority === undefined ? subject : nameOf(subjectOf(authority)),
    sequence(time(request.fromMs), time(request.untilMs)),
    subject,
    spki,
    explicit(3, extensions(request, spki, keyIdentifier(authority?.publicKey ?? publicKey))),
  )
  const signature = sign('sha256', body, signer)
  return {
    certificate: toPem('CERTIFICATE', sequence(body, signatureAlgorithm(), bitString(signature))),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
}

/** The subject of a certificate. */
export function subjectOf(certificate: X509Certificate): {
  readonly commonName: string
  readonly organizations: readonly string[]
} {
  const parts = certificate.subject.split('\n').map((line) => {
    const at = line.indexOf('=')
    return [line.slice(0, at), line.slice(at + 1)] as const
  })
  const all = (wanted: string): readonly string[] =>
    parts.flatMap(([type, value]) => (type === wanted ? [value] : []))
  return { commonName: all('CN')[0] ?? '', organizations: all('O') }
}

function signatureAlgorithm(): Buffer {
  return sequence(objectIdentifier(oids.ecdsaWithSha256))
}

function nameOf({ commonName, organizations = [] }: CertificateRequest['subject']): Buffer {
  const part = (oid: string, value: string): Buffer => set(sequence(objectIdentifier(oid), utf8String(value)))
  return sequence(
    ...organizations.map((organization) => part(oids.organization, organization)),
    part(oids.commonName, commonName),
  )
}

function extensions({ use }: CertificateRequest, spki: Buffer, authorityKeyId: Buffer): Buffer {
  const isAuthority = use.kind === 'authority'
  return sequence(
    extension(oids.basicConstraints, isAuthority ? sequence(boolean(true)) : sequence(), true),
    extension(oids.keyUsage, isAuthority ? keyUsages.authority : keyUsages.leaf, true),
    extension(oids.subjectKeyIdentifier, octetString(keyIdOf(spki))),
    extension(oids.authorityKeyIdentifier, sequence(implicit(0, authorityKeyId))),
    ...(isAuthority
      ? []
      : [
          extension(
            oids.extendedKeyUsage,
            sequence(objectIdentifier(use.kind === 'server' ? oids.serverAuth : oids.clientAuth)),
          ),
        ]),
    ...(use.kind === 'server' ? [extension(oids.subjectAltName, sequence(...use.names.map(altName)))] : []),
  )
}

function extension(oid: string, value: Buffer, isCritical = false): Buffer {
  return sequence(objectIdentifier(oid), ...(isCritical ? [boolean(true)] : []), octetString(value))
}

/** A host name, or an IP address. */
function altName(name: string): Buffer {
  return isIP(name) === 0 ? implicit(2, Buffer.from(name)) : implicit(7, addressBytes(name))
}

function keyIdentifier(key: KeyObject): Buffer {
  return keyIdOf(key.export({ type: 'spki', format: 'der' }))
}

/** RFC 7093, 2 (1), over the whole key information. */
function keyIdOf(spki: Buffer): Buffer {
  return createHash('sha256').update(spki).digest().subarray(0, 20)
}

/** 122 random bits, as a positive number of 16 bytes. */
function newSerial(): Buffer {
  const bytes = Buffer.from(newUuid().replaceAll('-', ''), 'hex')
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0)
  return bytes
}

function toPem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/gu) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}

/** The 4 or 16 bytes of an IP address. */
function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  // A URL writes every IPv6 address in groups of hexadecimal digits.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = text.split('::')
  const before = groupsOf(head)
  const after = tail === undefined ? [] : groupsOf(tail)
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0)
  const bytes = Buffer.alloc(16)
  for (const [index, group] of [...before, ...zeros, ...after].entries())
    bytes.writeUInt16BE(group, index * 2)
  return bytes
}

function groupsOf(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}
