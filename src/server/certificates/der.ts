/** DER (ITU-T X.690), as far as certificates need it. Each function returns one complete element. */

export function sequence(...items: readonly Buffer[]): Buffer {
  return element(0x30, Buffer.concat(items))
}

export function set(...items: readonly Buffer[]): Buffer {
  return element(0x31, Buffer.concat(items))
}

/** An explicit tag: `[number]` around the element. */
export function explicit(number: number, content: Buffer): Buffer {
  return element(0xa0 + number, content)
}

/** An implicit tag: `[number]` in place of a primitive type's tag. */
export function implicit(number: number, content: Buffer): Buffer {
  return element(0x80 + number, content)
}

/** A whole number of 0 or more, from its bytes, the most significant one first. */
export function unsignedInteger(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? Buffer.from([0]) : bytes.subarray(first)
  const isNegative = ((digits[0] ?? 0) & 0x80) !== 0
  return element(0x02, isNegative ? Buffer.concat([Buffer.from([0]), digits]) : digits)
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]))
}

export function octetString(content: Buffer): Buffer {
  return element(0x04, content)
}

/** @param unusedBits the number of unused bits in the last byte */
export function bitString(content: Buffer, unusedBits = 0): Buffer {
  return element(0x03, Buffer.concat([Buffer.from([unusedBits]), content]))
}

export function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text))
}

/** `1.2.840.10045.4.3.2` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap((part) => base128(part))]))
}

/** Whole seconds; UTCTime up to 2049 and GeneralizedTime from then on, as RFC 5280 (4.1.2.5) requires. */
export function time(wallMs: number): Buffer {
  const digits = new Date(wallMs).toISOString().slice(0, 19).replaceAll(/[-:T]/gu, '')
  const isShort = Number(digits.slice(0, 4)) < 2050
  return isShort
    ? element(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : element(0x18, Buffer.from(`${digits}Z`))
}

function element(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(content.length)]), content])
}

function lengthBytes(length: number): readonly number[] {
  if (length < 0x80) return [length]
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return [0x80 + bytes.length, ...bytes]
}

function base128(value: number): readonly number[] {
  const bytes = [value % 128]
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128))
    bytes.unshift((rest % 128) + 128)
  return bytes
}
