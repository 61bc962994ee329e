/**
 * For how many milliseconds of this thread's CPU an act holds the event loop at most, in one turn. What else the machine does
 * costs none.
 */
export async function longestTurnMs(act: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let isDone = false
  let before = process.threadCpuUsage()
  const turn = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
    before = process.threadCpuUsage()
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  await act()
  isDone = true
  // The turn in which it ended counts too.
  await new Promise((resolve) => setImmediate(resolve))
  return longest
}
