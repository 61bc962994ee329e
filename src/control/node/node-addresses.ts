import type { Clock } from '../../base/clock.ts'
import { readNodeAddress, untilAddressesChange } from '../../host/addresses.ts'

/** The interval of checks for a changed address. */
const maxAgeMs = 5_000
/** An interface without carrier counts as one without addresses, and doesn't lose them. */
const freshMs = 60_000

/** The host's addresses, cached for a short time. */
export function nodeAddresses(clock: Clock): () => readonly string[] {
  const readAddress = untilAddressesChange(() => readNodeAddress())
  let addresses: readonly string[] = []
  let readAtMs = -Infinity
  let freshAtMs = -Infinity
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - readAtMs > maxAgeMs) {
      const isFresh = nowMs - freshAtMs >= freshMs
      addresses = [readAddress({ isFresh })]
      readAtMs = nowMs
      if (isFresh) freshAtMs = nowMs
    }
    return addresses
  }
}
