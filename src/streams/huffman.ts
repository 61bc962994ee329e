/**
 * The length in bits of each byte's code (RFC 7541, appendix B), in base 36. The codes follow from these: they count up by
 * length, and by byte within a length.
 */
const codeLengths =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq'
const longestCode = 30

interface HuffmanTable {
  /** The bytes in the order of their codes. */
  readonly bytes: Uint8Array
  /** By length: how many codes have it. */
  readonly counts: Uint8Array
}

let table: HuffmanTable | undefined

function readTable(): HuffmanTable {
  const lengths = Array.from(codeLengths, (digit) => Number.parseInt(digit, 36))
  const counts = new Uint8Array(longestCode + 1)
  for (const length of lengths) counts[length] = (counts[length] ?? 0) + 1
  const bytes = Array.from(lengths.keys()).toSorted((a, b) => (lengths[a] ?? 0) - (lengths[b] ?? 0) || a - b)
  return { bytes: Uint8Array.from(bytes), counts }
}

/** Decodes the Huffman code of a header (RFC 7541, 5.2); undefined where it is invalid. */
export function decodeHuffman(coded: Uint8Array): string | undefined {
  const { bytes, counts } = (table ??= readTable())
  const decoded: number[] = []
  let [code, length, first, index, isPadding] = [0, 0, 0, 0, true]
  for (const byte of coded) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      const next = (byte >> bit) & 1
      isPadding &&= next === 1
      code = code * 2 + next
      first *= 2
      length += 1
      const count = counts[length] ?? 0
      if (code - first < count) {
        decoded.push(bytes[index + code - first] ?? 0)
        ;[code, length, first, index, isPadding] = [0, 0, 0, 0, true]
      } else if (length >= longestCode) return undefined
      else {
        first += count
        index += count
      }
    }
  }
  // The rest of the last byte is filled with the longest code's beginning.
  return length < 8 && isPadding ? Buffer.from(decoded).toString('latin1') : undefined
}
