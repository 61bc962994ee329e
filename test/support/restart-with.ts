import type { PoddRig } from './podd-rig.ts'

/** Starts podd again with another value of a flag. */
export async function restartWith(podd: PoddRig, flag: string, value: string): Promise<void> {
  await podd.stopDaemon()
  const flags = podd.flags().filter((_, index, all) => all[index] !== flag && all[index - 1] !== flag)
  Object.assign(podd, { flags: () => [...flags, flag, value] })
  await podd.startDaemon()
}
