/**
 * npm run vm: what only a machine can show: podd as install.sh sets it up, with systemd: boot, reboot, the end of pods at
 * a shutdown, the watchdog, and power cuts at random moments. Needs PODD_TEST_MACHINE, a program that drives a virtual
 * machine (see machine.ts). `--cuts=N`, `--seed=N`; `--name=NAME` of the machine; `--keep` leaves it, and `--installed`
 * goes on with one that was left, with this checkout's program in it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { seededRandom } from '../support/walk-pods.ts'
import { InstalledMachine } from './installed-machine.ts'
import type { Look } from './installed-machine.ts'
import { Machine } from './machine.ts'
import { endsIn, plainImage, saidDir, startsIn } from './vm-pods.ts'

const { values } = parseArgs({
  options: {
    cuts: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    name: { type: 'string', default: 'podd-vm' },
    keep: { type: 'boolean', default: false },
    installed: { type: 'boolean', default: false },
    only: { type: 'string', default: 'restart,reboot,watchdog,cuts' },
  },
})

const say = (text: string): void => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`it does not hold: ${what}`)
}

/** How long after the kernel began each pod that was placed had its first start. */
function figuresOf(look: Look): string {
  const uptimes = look.starts.map(({ uptimeSeconds }) => uptimeSeconds)
  return `first pod ${Math.min(...uptimes)} s, all pods ${Math.max(...uptimes)} s after the kernel's start`
}

function startedOnce(look: Look, but: readonly string[] = []): void {
  for (const { name } of [...new Set(look.starts.map(({ pod }) => pod))].map((pod) => ({ name: pod })))
    if (!but.includes(name))
      check(
        look.starts.filter(({ pod }) => pod === name).length === 1,
        `${name} started once in this boot:\n${look.said}`,
      )
}

async function restart(host: InstalledMachine): Promise<void> {
  const before = await host.untilAllRun()
  await host.machine.run('systemctl --no-block restart podd; sleep 10')
  const after = await host.untilAllRun()
  check(
    after.containerIds.join() === before.containerIds.join(),
    'the containers are the same after a restart',
  )
  say('systemctl restart podd: the same containers')
}

async function reboot(host: InstalledMachine): Promise<void> {
  const { bootId } = await host.untilAllRun()
  await host.machine.run(`sed -i /^end/d ${saidDir}/*`)
  const before = await host.look()
  await host.placeWhilePodsEnd({ name: 'late', image: plainImage })
  await host.machine.power('reboot')
  const look = await host.untilAllRun()
  startedOnce(look)
  check(
    startsIn(look.said, bootId).length === startsIn(before.said, bootId).length,
    `no pod was started while pods ended:\n${look.said}`,
  )
  const ends = endsIn(look.said)
  const vital = ends.get('vital') ?? 0
  for (const { name } of host.pods)
    if (name !== 'late') check(ends.has(name), `${name} ended in order before the reboot:\n${look.said}`)
  for (const [name, uptime] of ends)
    if (name !== 'vital') check(uptime < vital, `${name} ended before vital: ${JSON.stringify([...ends])}`)
  say(
    `reboot: pods ended by priority (${[...ends].map(([name, at]) => `${name} ${at}`).join(', ')}); ${figuresOf(look)}`,
  )
}

async function watchdog(host: InstalledMachine): Promise<void> {
  const before = await host.untilAllRun()
  const pid = 'systemctl show -P MainPID podd'
  const stopped = (await host.machine.run(`p=$(${pid}); kill -STOP $p; echo $p`)).trim()
  const next = await host.machine.until(
    'the watchdog',
    async () => {
      const now = (await host.machine.run(pid)).trim()
      return now === stopped || now === '0' ? undefined : now
    },
    1_200_000,
  )
  const after = await host.untilAllRun()
  check(
    after.containerIds.join() === before.containerIds.join(),
    'the containers are the same after the watchdog',
  )
  say(`watchdog: podd ${stopped} was killed, ${next} took its place, the same containers`)
}

type Moment = 'quiet' | 'change' | 'restart' | 'pull' | 'import'

async function cuts(host: InstalledMachine, count: number, random: () => number): Promise<void> {
  const hasPulls = host.pods.some(({ name }) => name === 'pulled')
  const moments: readonly Moment[] = [
    'import',
    hasPulls ? 'pull' : 'import',
    'change',
    hasPulls ? 'pull' : 'import',
    'quiet',
    'restart',
  ]
  const survived = new Map<Moment, number>()
  const boots: number[] = []
  for (let cut = 0; cut < count; cut += 1) {
    const moment = moments[cut % moments.length] ?? 'quiet'
    await host.untilAllRun()
    const waitMs = await begin(host, moment, cut, random)
    await sleep(waitMs)
    const ready = await host.machine.power('powercut')
    const look = await host.untilAllRun()
    startedOnce(look)
    check(
      look.starts.every(({ isWhole }) => isWhole),
      `no container saw a damaged image:\n${look.said}`,
    )
    const complaints = await host.complaints()
    boots.push(Math.max(...look.starts.map(({ uptimeSeconds }) => uptimeSeconds)))
    survived.set(moment, (survived.get(moment) ?? 0) + 1)
    say(`cut ${cut + 1}, ${moment}, after ${Math.round(waitMs)} ms: ${figuresOf(look)}; ${ready}`)
    for (const line of complaints) say(`  ${line}`)
  }
  const sorted = boots.toSorted((a, b) => a - b)
  const counts = [...survived].map(([moment, times]) => `${moment} ${times}`).join(', ')
  say(
    `${count} power cuts survived (${counts}); boot to all pods: median ${sorted[sorted.length >> 1]} s, longest ${sorted.at(-1)} s`,
  )
}

/** Begins what the cut shall fall into; gives how long to wait for it. */
async function begin(
  host: InstalledMachine,
  moment: Moment,
  cut: number,
  random: () => number,
): Promise<number> {
  const pod = host.pods.find(({ name }) => name === (moment === 'pull' ? 'pulled' : 'imported'))
  switch (moment) {
    case 'pull':
    case 'import':
      if (pod !== undefined) await host.fetchAgain(pod)
      return random() * fetchMs
    case 'change':
      await host.place({ name: 'low', image: plainImage }, cut)
      return random() * 15_000
    case 'restart':
      await host.machine.run('systemctl kill -s KILL podd')
      return random() * 20_000
    case 'quiet':
      return random() * 5000
  }
}

/** In which a pull or an import and the start after it fall, on an emulated machine. */
let fetchMs = 30_000

async function main(): Promise<void> {
  const program = process.env['PODD_TEST_MACHINE'] ?? ''
  if (program === '') {
    console.log(
      'vm: skipped: PODD_TEST_MACHINE names no program that drives a virtual machine (docs/TESTING.md)',
    )
    return
  }
  const machine = new Machine(program, values.name)
  const host = new InstalledMachine(machine)
  say(`seed ${values.seed}`)
  try {
    if (values.installed) await host.replaceProgram()
    else {
      say(await machine.power('up'))
      await host.install()
      say('installed')
    }
    for (const reason of await host.placePods()) say(`skipped: ${reason}`)
    say(`all pods run: ${[...(await host.untilAllRun()).pods.keys()].join(', ')}`)
    fetchMs = await measureFetch(host)
    say(`an image is there again after ${Math.round(fetchMs)} ms`)
    const phases = values.only.split(',')
    if (phases.includes('restart')) await restart(host)
    if (phases.includes('watchdog')) await watchdog(host)
    if (phases.includes('reboot')) await reboot(host)
    if (phases.includes('cuts')) await cuts(host, Number(values.cuts), seededRandom(Number(values.seed)))
  } finally {
    if (!values.keep) await machine.power('down')
  }
}

/** How long after `fetchAgain` the image's pod runs again. */
async function measureFetch(host: InstalledMachine): Promise<number> {
  const pod =
    host.pods.find(({ name }) => name === 'pulled') ?? host.pods.find(({ name }) => name === 'imported')
  if (pod === undefined) return fetchMs
  await host.fetchAgain(pod)
  const beganMs = performance.now()
  await host.machine.until(
    'its pod',
    async () => ((await host.look()).pods.get(pod.name) === true ? true : undefined),
    1_200_000,
  )
  return performance.now() - beganMs
}

await main()
