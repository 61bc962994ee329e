/**
 * node packaging/strip-elf.ts PROGRAM FILE: the program without its symbols and debugging information, which are a quarter of
 * Node's and are never loaded. As `strip` does, but for every processor of 64 bits alike, wherever it runs.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const sectionHeaderSize = 64
/** SHF_ALLOC: takes room in the memory of the process. */
const inMemory = 2n
/** SHT_NOBITS: takes none in the file. */
const withoutBytes = 8

/** The bytes of an ELF file up to its last section that is loaded, with the headers of these. Throws where it is none. */
export function stripElf(program: Buffer): Buffer {
  if (program.readUInt32BE(0) !== 0x7f454c46 || program[4] !== 2 || program[5] !== 1)
    throw new Error('no ELF file of 64 bits, little-endian')
  const headersAt = Number(program.readBigUInt64LE(40))
  const namesIndex = program.readUInt16LE(62)
  const headers = Array.from({ length: program.readUInt16LE(60) }, (_, index) =>
    program.subarray(headersAt + index * sectionHeaderSize, headersAt + (index + 1) * sectionHeaderSize),
  )
  const isLoaded = (header: Buffer): boolean => (header.readBigUInt64LE(8) & inMemory) !== 0n
  // Sections name each other by number: those before the last one that is loaded keep theirs.
  const kept = headers.slice(0, headers.findLastIndex(isLoaded) + 1)
  const names = headers[namesIndex]
  if (names === undefined || kept.length < 2 || !kept.slice(1).every(isLoaded))
    throw new Error('sections that are not loaded stand between those that are')
  const end = Math.max(
    ...kept.map((header) => {
      const size = header.readUInt32LE(4) === withoutBytes ? 0 : Number(header.readBigUInt64LE(32))
      return Number(header.readBigUInt64LE(24)) + size
    }),
  )
  const namesFrom = Number(names.readBigUInt64LE(24))
  const nameBytes = program.subarray(namesFrom, namesFrom + Number(names.readBigUInt64LE(32)))
  const namesHeader = Buffer.from(names)
  namesHeader.writeBigUInt64LE(BigInt(end), 24)
  const padding = Buffer.alloc(-(end + nameBytes.length) & 7)
  const stripped = Buffer.concat([program.subarray(0, end), nameBytes, padding, ...kept, namesHeader])
  stripped.writeBigUInt64LE(BigInt(end + nameBytes.length + padding.length), 40)
  stripped.writeUInt16LE(kept.length + 1, 60)
  stripped.writeUInt16LE(kept.length, 62)
  return stripped
}

if (import.meta.main) {
  const [program, target] = process.argv.slice(2)
  if (program === undefined || target === undefined) {
    console.error('usage: node packaging/strip-elf.ts PROGRAM FILE')
    process.exit(2)
  }
  writeFileSync(target, stripElf(readFileSync(program)), { mode: 0o755 })
}
