import { describe, expect, it } from 'vitest'
import { judgeSignature, readKeys, signatureUrl } from '../../../src/sources/verify-manifest.ts'
import { makeSigner } from '../../support/minisign.ts'

const nowMs = 1_800_000_000_000
const signer = makeSigner()
const keys = readKeys([signer.publicKey])

function judge(comment: string, name = 'web.yaml'): string {
  const content = Buffer.from('kind: Pod\n')
  const signature = Buffer.from(signer.sign(content.toString(), { comment }))
  const judged = judgeSignature({ content, name, signature }, keys, nowMs)
  return 'message' in judged ? judged.message : 'good'
}

describe('the end of a signature', () => {
  it('is taken in seconds, between tabs or between spaces', () => {
    expect(judge('timestamp:1 expires:1800000001 release 7')).toBe('good')
    expect(judge('timestamp:1\texpires:1800000001\tfile:web.yaml')).toBe('good')
    expect(judge('timestamp:1 expires:1800000000')).toBe('has expired at 2027-01-15T08:00:00Z')
  })

  it('that cannot be read is refused, in whichever form it was meant', () => {
    const forms = [
      'timestamp:1 expires:2026-12-31',
      'timestamp:1 expires: 1800000001',
      'timestamp:1 expires :1800000001',
      'timestamp:1 expires=1800000001',
      'timestamp:1 Expires:1800000001',
      'timestamp:1 expires:',
      'timestamp:1 expires:1800000001000',
      'timestamp:1 expires:1800000001 expires:1900000000',
      'timestamp:1\texpires:1800000001 file:web.yaml',
      'timestamp:1\trelease 7 expires:1800000001',
    ]
    expect(forms.map((form) => judge(form))).toEqual(
      forms.map(() => 'has an end in its trusted comment that cannot be read'),
    )
  })

  it('is not seen in the name of a file', () => {
    expect(judge('timestamp:1\tfile:expires.yaml', 'expires.yaml')).toBe('good')
  })
})

describe('the timestamp of a signature', () => {
  it('may be ahead of the clock by a day, and by no more', () => {
    expect(judge('timestamp:1800086400')).toBe('good')
    expect(judge('timestamp:1800086401')).toContain("more than a day ahead of this host's clock")
  })

  it('is refused in milliseconds, which would make each later signature an older one', () => {
    expect(judge(`timestamp:${nowMs}`)).toContain("more than a day ahead of this host's clock")
  })
})

describe('the URL of a signature', () => {
  it.each([
    ['https://fleet.example', 'https://fleet.example/.minisig'],
    ['https://fleet.example?node=a', 'https://fleet.example/.minisig?node=a'],
    ['https://fleet.example/web.yaml?node=a#x', 'https://fleet.example/web.yaml.minisig?node=a#x'],
    ['unix:///run/fleet.sock:/web.yaml', 'unix:///run/fleet.sock:/web.yaml.minisig'],
  ])('of %s is %s, on the same host', (url, wanted) => {
    expect(signatureUrl(url)).toBe(wanted)
  })
})
