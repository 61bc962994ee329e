import { createHash, createPrivateKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
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
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
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
} from '@peculiar/asn1-x509'
import { unreadableSuffix, writeFileAtomicSync } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { newUuid } from '../../base/random.ts'
import type { StateReport } from '../../store/state-report.ts'

const certificateHead = '-----BEGIN CERTIFICATE-----'
const certificateTail = '-----END CERTIFICATE-----'
const dayMs = 24 * 60 * 60 * 1000
const authorityDays = 3650
/** The remaining lifetime at which the next authority takes over signing; the old one is trusted until it expires. */
const authorityRenewDays = 2 * 365
const serverDays = 365
const serverRenewDays = 60
/** A server's certificate is valid from this long before now, because clocks differ. */
const slackMs = 5 * 60 * 1000
/**
 * The beginning of what isn't issued again when the clock is set: a board without a battery boots with a wrong time, and
 * an authority that begins in its future would be trusted by no client until then.
 */
const alwaysMs = Date.UTC(1970, 0, 1)

/**
 * The certificate authority of one host: made at first use, in files that only their owner reads, and succeeded by
 * another long before it expires. The oldest one signs servers' certificates, as all clients know it; the newest one
 * signs clients'. All calls throw the system's errors as they are.
 */
export class OwnAuthority {
  readonly #directory: string
  readonly #names: readonly string[]
  readonly #report: StateReport
  readonly #clock: Clock
  #authorities: readonly KeyPair[] | undefined
  #server: KeyPair | undefined
  #renewAtMs = 0
  #validFromMs = 0

  /**
   * @param rootDir podd's root directory; podd's own certificates are in `tls` below it
   * @param names host names and addresses under which the listener is reached
   * @param report called for a file that can't be read: it is put aside and replaced
   */
  constructor(rootDir: string, names: readonly string[], report: StateReport, clock: Clock) {
    this.#directory = join(rootDir, 'tls')
    this.#names = names
    this.#report = report
    this.#clock = clock
  }

  /** The certificates that clients and servers are trusted by, in PEM. */
  trusted(): string {
    return this.#load()
      .map(({ certificate }) => certificate)
      .join('')
  }

  /** The server's current certificate; call it again once `mustRenew` returns true. */
  server(): KeyPair {
    const now = this.#clock.wallMs()
    const known = this.#server ?? this.#read('server')
    if (known !== undefined && this.#fits(known)) return this.#take(known)
    const issuer = oldestFor(this.#load(), now + serverRenewDays * dayMs)
    const untilMs = Math.min(now + serverDays * dayMs, endOf(issuer))
    const made = issueCertificate(
      {
        subject: { commonName: 'podd' },
        use: { kind: 'server', names: this.#names },
        fromMs: now - slackMs,
        untilMs,
      },
      issuer,
    )
    try {
      this.#write('server', made)
    } catch {
      // The disk is full: clients trust the certificate by its authority, and the next start makes another one.
    }
    return this.#take(made)
  }

  /** Whether the server needs another certificate than the one that `server` returned. */
  get mustRenew(): boolean {
    const now = this.#clock.wallMs()
    return now >= this.#renewAtMs || now < this.#validFromMs
  }

  /** A certificate for a client; it can't be revoked before it expires. */
  issueClient(
    subject: { readonly commonName: string; readonly organizations: readonly string[] },
    days: number,
  ): KeyPair {
    const now = this.#clock.wallMs()
    const issuer = this.#load().at(-1)
    const untilMs = now + days * dayMs
    return issueCertificate({ subject, use: { kind: 'client' }, fromMs: alwaysMs, untilMs }, issuer)
  }

  #take(server: KeyPair): KeyPair {
    this.#server = server
    this.#renewAtMs = endOf(server) - serverRenewDays * dayMs
    this.#validFromMs = new X509Certificate(server.certificate).validFromDate.getTime()
    return server
  }

  /** Whether it is signed by an authority that is still trusted, has all names and remains valid for long enough. */
  #fits({ certificate }: KeyPair): boolean {
    const parsed = new X509Certificate(certificate)
    const isOurs = this.#load().some((authority) =>
      parsed.verify(new X509Certificate(authority.certificate).publicKey),
    )
    const now = this.#clock.wallMs()
    const lasts = now + serverRenewDays * dayMs < parsed.validToDate.getTime()
    const hasBegun = parsed.validFromDate.getTime() <= now
    const names = this.#names.every(
      (name) => (isIP(name) === 0 ? parsed.checkHost(name) : parsed.checkIP(name)) !== undefined,
    )
    return isOurs && lasts && hasBegun && names
  }

  /** The authorities, oldest first, without expired ones. */
  #load(): readonly KeyPair[] {
    const now = this.#clock.wallMs()
    const all = this.#authorities ?? [this.#read('ca-old'), this.#read('ca')].flatMap((pair) => pair ?? [])
    const valid = all.filter((pair) => endOf(pair) > now)
    const newest = valid.at(-1)
    if (newest !== undefined && endOf(newest) - authorityRenewDays * dayMs > now) {
      this.#authorities = valid
      return valid
    }
    const next = issueCertificate({
      subject: { commonName: `podd-ca-${now}` },
      use: { kind: 'authority' },
      fromMs: alwaysMs,
      untilMs: now + authorityDays * dayMs,
    })
    if (newest !== undefined) this.#write('ca-old', newest)
    this.#write('ca', next)
    this.#authorities = [...(newest === undefined ? [] : [newest]), next]
    return this.#authorities
  }

  #read(name: string): KeyPair | undefined {
    const path = join(this.#directory, `${name}.pem`)
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined
      throw error
    }
    const pair = parsePair(text)
    if (typeof pair !== 'string') return pair
    const aside = `${path}${unreadableSuffix}`
    renameSync(path, aside)
    const message = name === 'server' ? pair : `${pair}; clients need a new kubeconfig`
    this.#report({ path: aside, message })
    return undefined
  }

  #write(name: string, { key, certificate }: KeyPair): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    writeFileAtomicSync(join(this.#directory, `${name}.pem`), `${key}${certificate}`)
  }
}

/** Key and certificate are one file, so that no crash leaves two that don't match. Returns why a file isn't a pair. */
function parsePair(text: string): KeyPair | string {
  const at = text.indexOf(certificateHead)
  const end = text.lastIndexOf(certificateTail) + certificateTail.length
  const pair = { key: text.slice(0, at), certificate: `${text.slice(at, end)}\n` }
  try {
    const isPair = new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key))
    return isPair ? pair : 'its key is not that of its certificate'
  } catch (error) {
    return errorMessage(error)
  }
}

function oldestFor(authorities: readonly KeyPair[], untilMs: number): KeyPair | undefined {
  return authorities.find((pair) => endOf(pair) > untilMs) ?? authorities.at(-1)
}

function endOf(pair: KeyPair | undefined): number {
  return pair === undefined ? 0 : new X509Certificate(pair.certificate).validToDate.getTime()
}

interface KeyPair {
  readonly certificate: string
  readonly key: string
}

interface CertificateRequest {
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
