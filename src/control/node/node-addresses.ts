import type { Clock } from '../../base/clock.ts'
import { readNodeAddress } from '../../host/network/node-address.ts'

/** The host's address may change; it is read again after this. */
const maxAgeMs = 5_000

/** The host's addresses, as they are read from it now and then. */
export function nodeAddresses(clock: Clock): () => readonly string[] {
  let addresses: readonly string[] = []
  let readAtMs = -Infinity
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - readAtMs > maxAgeMs) {
      addresses = [readNodeAddress()]
      readAtMs = nowMs
    }
    return addresses
  }
}
