import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../support/seeded-random.ts'
import type { InstalledMachine } from './installed-machine.ts'
import { figuresOf, startedOnce } from './phases.ts'
import type { Moment, Progress } from './progress.ts'
import { check, say } from './say.ts'
import { plainImage } from './vm-pods.ts'

/** In this order, again and again. */
const moments: readonly Moment[] = ['import', 'pull', 'change', 'pull', 'quiet', 'restart']

/** Cuts the power until it was cut `count` times, those of earlier runs included. After each cut all pods run again. */
export async function cutPower(host: InstalledMachine, progress: Progress, count: number): Promise<void> {
  const random = seededRandom(progress.seed)
  const hasPulls = host.pods.some(({ name }) => name === 'pulled')
  for (let cut = 0; cut < count; cut += 1) {
    // Those of earlier runs have had their share.
    const share = random()
    if (cut < progress.cuts.length) continue
    const wanted = moments[cut % moments.length] ?? 'quiet'
    const moment = wanted === 'pull' && !hasPulls ? 'import' : wanted
    await host.untilAllRun()
    const waitMs = share * (await begin(host, moment, cut, progress.fetchMs))
    await sleep(waitMs)
    const ready = await host.machine.power('powercut')
    const look = await host.untilAllRun()
    startedOnce(look)
    check(
      look.starts.every(({ isWhole }) => isWhole),
      `no container saw a damaged image:\n${look.said}`,
    )
    say(`cut ${cut + 1}, ${moment}, after ${Math.round(waitMs)} ms: ${figuresOf(look)}; ${ready}`)
    for (const line of await host.complaints()) say(`  ${line}`)
    const allPodsSeconds = Math.max(...look.starts.map(({ uptimeSeconds }) => uptimeSeconds))
    progress.cuts.push({ moment, waitMs, allPodsSeconds })
    await host.saveProgress(progress)
  }
  const seconds = progress.cuts.map(({ allPodsSeconds }) => allPodsSeconds).toSorted((a, b) => a - b)
  const counts = [...Map.groupBy(progress.cuts, ({ moment }) => moment)]
    .map(([moment, cuts]) => `${moment} ${cuts.length}`)
    .join(', ')
  say(
    `${progress.cuts.length} power cuts survived (${counts}; seed ${progress.seed}); boot to all pods: median ${seconds[seconds.length >> 1]} s, longest ${seconds.at(-1)} s`,
  )
}

/** Begins what the cut shall fall into; gives within how many milliseconds it falls, by how slow the machine is. */
async function begin(host: InstalledMachine, moment: Moment, cut: number, fetchMs: number): Promise<number> {
  const pod = host.pods.find(({ name }) => name === (moment === 'pull' ? 'pulled' : 'imported'))
  switch (moment) {
    case 'pull':
    case 'import':
      if (pod !== undefined) await host.fetchAgain(pod)
      return fetchMs
    case 'change':
      await host.place({ name: 'low', image: plainImage }, cut + 1)
      return fetchMs / 2
    case 'restart':
      await host.machine.run('systemctl kill -s KILL podd')
      return fetchMs
    case 'quiet':
      return fetchMs / 4
  }
}
