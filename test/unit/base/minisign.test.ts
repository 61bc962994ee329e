import { describe, expect, it } from 'vitest'
import { parseSigningKey, verifySignature } from '../../../src/base/minisign.ts'
import type { SigningKey } from '../../../src/base/minisign.ts'
import { makeSigner } from '../../support/minisign.ts'

/** Made by minisign 0.11: `minisign -G -W`, `minisign -S [-l] -t COMMENT -m web.yaml`. */
const publicKeys = {
  one: 'untrusted comment: minisign public key 12375F3C074F63E5\nRWTlY08HPF83Ei1YAb8ejz/TuYnz072+Y3X1rZFiqNiDEZaCwkfUk9gP\n',
  two: 'untrusted comment: minisign public key 236683BD3771671C\nRWQcZ3E3vYNmIyQcf86DvW8otHHMltoB4HLD1k5YlV+pDZi/th1DwK5t\n',
}
const content =
  'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: main\n    image: busybox:1.36\n'
const made = {
  old: [
    'untrusted comment: signature from minisign secret key',
    'RUTlY08HPF83EoimvnMwqaKdq0vy27CVtqQbOerpiSDXklMgCtJeLsS2ZmvVsrVGkXkALOWfUpYKQamJA4g0lV9nKErpq/N7xQw=',
    'trusted comment: timestamp:1767225600\tfile:web.yaml\thashed',
    'Cpgt9oOeZ7TbUIuaicXx3Ibe6zGXtWcIrilXTmydtQD5ZUoPGEVn4yVotQYDpBV6loXpUa5j2eW/BeVr6Uj7Bg==',
  ].join('\n'),
  legacy: [
    'untrusted comment: signature from minisign secret key',
    'RWTlY08HPF83EiHp/M+KN+EtgoQ3eFpMqG4WECD3LTo1QwXH6dCrhge+lTy195uz2LnqF0Y2maYJOw3DRbEBWLdBY26mTiaoxQc=',
    'trusted comment: timestamp:1767398400\tfile:web.yaml',
    'fYRKhB8/t21b7U0t7udYI2A5g2JEaEJkorcHyP3T80gVekhbHGSxbRpibDvOKWZ580hjTAvY4Nh77t729UMyBQ==',
  ].join('\n'),
  two: [
    'untrusted comment: signature from minisign secret key',
    'RUQcZ3E3vYNmI78HGkEsTVBomq350T1CwTV2llIv4WWXP9BeZVOi3kx44hkiUDAkGwhKtC7ltIuY2y9XHY9OGc6eriNYGwBsxwo=',
    'trusted comment: timestamp:1769904000\tfile:web.yaml\thashed',
    'WARiFGS91DslUusx+THuwNTac+FcqYRQL0NK+nCPQhBSdKhniuIdZhOMfa2wh4fB0VQVG68tOuwqufSdXU0iBw==',
  ].join('\n'),
  plain: [
    'untrusted comment: signature from minisign secret key',
    'RUTlY08HPF83EoimvnMwqaKdq0vy27CVtqQbOerpiSDXklMgCtJeLsS2ZmvVsrVGkXkALOWfUpYKQamJA4g0lV9nKErpq/N7xQw=',
    'trusted comment: timestamp:1767312000 expires:1772409600 release 7',
    '5YAe+0eNrbUupK2ezlk3AQCi9lap6gdDSs2PRc77boT4o/mLrcR1jKs0CLa1Ihg/phOZRVV1rCedf66U88z3AQ==',
  ].join('\n'),
  untimed: [
    'untrusted comment: signature from minisign secret key',
    'RUTlY08HPF83EoimvnMwqaKdq0vy27CVtqQbOerpiSDXklMgCtJeLsS2ZmvVsrVGkXkALOWfUpYKQamJA4g0lV9nKErpq/N7xQw=',
    'trusted comment: release 8',
    'jAIQhv7G0FUVfWnW2p2hqMhUj0k8sAkIicGUWKQd4IHIl1+er1n7iHjyVdW0llQdBVoeszMYpHDV36qh66GnAA==',
  ].join('\n'),
  other: [
    'untrusted comment: signature from minisign secret key',
    'RUTlY08HPF83EgSxahyL0N5+0jVWuQjF/RKYXv61aaoa7pUxV7SoUnNVfO6ZmR64PFhkxgKuyyZVy4bbtUYrCX+O6lpVD/oC9gI=',
    'trusted comment: timestamp:1767484800\tfile:other.yaml\thashed',
    'Ic8xdKFjexKc4p+IDYpapociT+Ajvrc8G0mddomH6q3Ia9FKLpYo9gdoTgf800Vp8D8UHocaVrA01FsrvCYJCQ==',
  ].join('\n'),
}

const keyOf = (text: string): SigningKey => {
  const key = parseSigningKey(text)
  if (key === undefined) throw new Error('no key')
  return key
}
const one = keyOf(publicKeys.one)
const two = keyOf(publicKeys.two)
const verify = (signature: string, keys: readonly SigningKey[] = [one], text = content) =>
  verifySignature(Buffer.from(text), Buffer.from(`${signature}\n`), keys)
const message = (result: ReturnType<typeof verify>): string | undefined =>
  'message' in result ? result.message : undefined
/** With one letter of a line changed to another one that base64 has. */
function forge(signature: string, line: number, at = 40): string {
  const lines = signature.split('\n')
  const before = lines[line] ?? ''
  const letter = before[at] === 'A' ? 'B' : 'A'
  lines[line] = `${before.slice(0, at)}${letter}${before.slice(at + 1)}`
  return lines.join('\n')
}

describe('public keys of minisign', () => {
  it('have the ids that minisign shows, from the whole file or its second line', () => {
    expect(one.id).toBe('12375F3C074F63E5')
    expect(two.id).toBe('236683BD3771671C')
    expect(keyOf(publicKeys.one.split('\n')[1] ?? '')).toEqual(one)
  })

  it.each([
    '',
    'RWQ',
    'untrusted comment: x',
    `${publicKeys.one.split('\n')[1]}AAAA`,
    made.old,
    'x'.repeat(56),
  ])('are not read from %j', (text) => {
    expect(parseSigningKey(text)).toBeUndefined()
  })
})

describe('signatures made by minisign', () => {
  it('are verified, prehashed and legacy ones, with their timestamps and files', () => {
    expect(verify(made.old)).toEqual({
      keyId: one.id,
      trustedComment: { timestamp: 1_767_225_600, expires: undefined, file: 'web.yaml' },
    })
    expect(verify(made.legacy)).toMatchObject({
      trustedComment: { timestamp: 1_767_398_400, file: 'web.yaml' },
    })
    expect(verify(made.plain)).toMatchObject({
      trustedComment: { timestamp: 1_767_312_000, expires: 1_772_409_600, file: undefined },
    })
    expect(verify(made.untimed)).toMatchObject({ trustedComment: { timestamp: undefined } })
  })

  it('are verified by each of several keys, so that keys can be rotated', () => {
    expect(verify(made.old, [two, one])).toMatchObject({ keyId: one.id })
    expect(verify(made.two, [two, one])).toMatchObject({ keyId: two.id })
    expect(message(verify(made.two, [one]))).toBe(
      'is of the key 236683BD3771671C, which is not trusted here (12375F3C074F63E5)',
    )
  })

  it('are refused for other content, also for one that the same key signed', () => {
    expect(message(verify(made.old, [one], `${content}\n`))).toMatch(/does not belong to this content/u)
    expect(message(verify(made.legacy, [one], content.replace('1.36', '1.37')))).toMatch(/does not belong/u)
    expect(message(verify(made.other))).toMatch(/does not belong to this content/u)
    expect(message(verify(made.other, [one], content.replace('1.36', '1.37')))).toBeUndefined()
  })

  it('are refused with any letter forged that was signed', () => {
    expect(message(verify(forge(made.old, 1)))).toMatch(/does not belong/u)
    expect(message(verify(forge(made.old, 1, 4)))).toMatch(/is of the key/u)
    expect(message(verify(forge(made.old, 3)))).toMatch(/trusted comment that was changed/u)
    expect(message(verify(made.old.replace('1767225600', '1867225600')))).toMatch(/trusted comment that was/u)
    const swapped = [...made.old.split('\n').slice(0, 2), ...made.two.split('\n').slice(2)].join('\n')
    expect(message(verify(swapped))).toMatch(/trusted comment that was changed/u)
  })

  it('are refused when another key pretends to be this one', () => {
    const other = makeSigner()
    const pretended = keyOf(other.publicKey)
    expect(message(verify(other.sign(content).trimEnd(), [{ ...one, id: pretended.id }]))).toMatch(
      /does not belong/u,
    )
  })

  it.each([
    ['nothing', ''],
    ['a manifest', content],
    ['three lines', made.old.split('\n').slice(0, 3).join('\n')],
    ['a fifth line', `${made.old}\nmore`],
    ['no base64', made.old.replace('RUTl', 'RU*l')],
    ['another algorithm', made.old.replace('RUTl', 'RVTl')],
    ['a signature that is cut off', made.old.replace('xQw=', '')],
    ['100 KiB', 'x'.repeat(100 * 1024)],
  ])('are not read from %s', (_what, text) => {
    expect(message(verify(text))).toBe('is no signature of minisign')
  })

  it('may have line ends of Windows', () => {
    expect(message(verify(made.old.replaceAll('\n', '\r\n').concat('\r')))).toBeUndefined()
  })
})
