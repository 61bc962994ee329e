/** Program header type of the dynamic loader's path. */
const typeInterp = 3

/**
 * Whether a program is an ELF that needs no dynamic loader, so that it runs in an image by itself.
 * Source: elf(5); 32 and 64 bits, both byte orders.
 */
export function isStaticElf(data: Uint8Array): boolean {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (data.length < 64 || view.getUint32(0) !== 0x7f454c46) return false
  const is64 = view.getUint8(4) === 2
  const little = view.getUint8(5) === 1
  const tableOffset = is64 ? Number(view.getBigUint64(32, little)) : view.getUint32(28, little)
  const entryBytes = view.getUint16(is64 ? 54 : 42, little)
  const count = view.getUint16(is64 ? 56 : 44, little)
  if (count === 0 || tableOffset + count * entryBytes > data.length) return false
  return !Array.from({ length: count }, (_, index) =>
    view.getUint32(tableOffset + index * entryBytes, little),
  ).includes(typeInterp)
}
