/** One line, with the time of day. */
export const say = (text: string): void => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)

/** Throws where a promise does not hold. */
export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`it does not hold: ${what}`)
}
