import { createHash, createPrivateKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
} from '@peculiar/asn1-x509'
import { newUuid } from '../../base/random.ts'

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

const commonNameType = '2.5.4.3'
const organizationType = '2.5.4.10'
const ecdsaWithSha256 = new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' })

/**
 * Makes an ECDSA P-256 key and a certificate for it (X.509 v3, RFC 5280), signed by an authority or, without one, by
 * itself.
 */
export function issueCertificate(request: CertificateRequest, issuer?: KeyPair): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subjectPublicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })
  const subject = nameOf(request.subject)
  const authority = issuer === undefined ? undefined : new X509Certificate(issuer.certificate)
  const issuerKey = authority?.publicKey.export({ type: 'spki', format: 'der' }) ?? subjectPublicKeyInfo
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: newSerial(),
    signature: ecdsaWithSha256,
    issuer:
      authority === undefined ? subject : AsnConvert.parse(authority.raw, Certificate).tbsCertificate.subject,
    validity: new Validity({ notBefore: new Date(request.fromMs), notAfter: new Date(request.untilMs) }),
    subject,
    subjectPublicKeyInfo: AsnConvert.parse(subjectPublicKeyInfo, SubjectPublicKeyInfo),
    extensions: new Extensions([
      ...extensionsFor(request.use),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdOf(subjectPublicKeyInfo))),
      extension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyIdOf(issuerKey)) }),
      ),
    ]),
  })
  const signer = issuer === undefined ? privateKey : createPrivateKey(issuer.key)
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), signer)
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: ecdsaWithSha256,
    signatureValue: Uint8Array.from(signature).buffer,
  })
  return {
    certificate: new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
}

function extensionsFor(use: CertificateRequest['use']): readonly Extension[] {
  const isAuthority = use.kind === 'authority'
  const usage = isAuthority
    ? KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign
    : KeyUsageFlags.digitalSignature
  const basics = [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: isAuthority }), true),
    extension(id_ce_keyUsage, new KeyUsage(usage), true),
  ]
  if (isAuthority) return basics
  const purpose = use.kind === 'server' ? id_kp_serverAuth : id_kp_clientAuth
  const leaf = [...basics, extension(id_ce_extKeyUsage, new ExtendedKeyUsage([purpose]))]
  if (use.kind === 'client') return leaf
  const names = use.names.map(
    (name) => new GeneralName(isIP(name) === 0 ? { dNSName: name } : { iPAddress: name }),
  )
  return [...leaf, extension(id_ce_subjectAltName, new SubjectAlternativeName(names))]
}

function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })
}

function nameOf({ commonName, organizations = [] }: CertificateRequest['subject']): Name {
  const part = (type: string, utf8String: string) =>
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String }) }),
    ])
  return new Name([
    ...organizations.map((organization) => part(organizationType, organization)),
    part(commonNameType, commonName),
  ])
}

/** RFC 7093, 2 (1), over the whole key information. */
function keyIdOf(publicKeyInfo: Buffer): Uint8Array {
  return createHash('sha256').update(publicKeyInfo).digest().subarray(0, 20)
}

/** 122 random bits, as a positive number of 16 bytes. */
function newSerial(): ArrayBuffer {
  const bytes = Buffer.from(newUuid().replaceAll('-', ''), 'hex')
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0)
  return Uint8Array.from(bytes).buffer
}
