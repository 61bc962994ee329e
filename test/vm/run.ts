/**
 * npm run vm: what only a machine can show: podd as install.sh sets it up, with systemd: restart, watchdog, the end of pods
 * at a shutdown, boot, and power cuts at random moments. docs/TESTING.md describes it.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { InstalledMachine } from './installed-machine.ts'
import { Machine } from './machine.ts'
import { packages } from './packages.ts'
import { reboot, restart, watchdog } from './phases.ts'
import { cutPower } from './power-cuts.ts'
import { digestOfBuild } from './progress.ts'
import type { Progress } from './progress.ts'
import { cutRollbacks } from './rollback-cuts.ts'
import { say } from './say.ts'
import { stack, stackBoots } from './stack.ts'

const phaseNames = ['restart', 'reboot', 'watchdog', 'stack', 'boots', 'cuts', 'rollback'] as const
const allNames = ['packages', ...phaseNames]
const usage = `npm run vm -- [--only=${allNames.join()}] [--cuts=3] [--seed=N] [--name=podd-vm] [--fresh] [--keep]
test/vm/machine.sh drives the virtual machine, by qemu, and needs root. PODD_TEST_MACHINE names another program that does;
test/vm/machine.ts says how it is called.
A machine that was left is gone on with: phases and cuts that passed with the same program are not repeated.
--fresh begins with a new one; --keep leaves it although all passed, as it is left where something fails.`

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: allNames.join() },
    cuts: { type: 'string', default: '3' },
    seed: { type: 'string' },
    name: { type: 'string', default: 'podd-vm' },
    fresh: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** Has the machine up, with podd of this checkout in it and all pods running; gives how far an earlier run came. */
async function prepare(host: InstalledMachine): Promise<Progress> {
  const { machine } = host
  if (values.fresh) await machine.power('down')
  if (await machine.isUp()) say(`going on with the machine ${machine.name}`)
  else {
    say('booting a machine')
    // The first time its image is made.
    say(await machine.power('up', 3_600_000))
  }
  const build = digestOfBuild(join(import.meta.dirname, '../../dist'))
  const earlier = await host.readProgress()
  if (earlier === undefined) {
    say('installing podd with install.sh')
    await host.install()
    say('installed')
  } else if (earlier.build !== build) {
    say('another podd was installed there: putting this one in its place')
    await host.replaceProgram()
  }
  for (const reason of await host.placePods()) say(`skipped: ${reason}`)
  say(`all pods run: ${[...(await host.untilAllRun()).pods.keys()].join(', ')}`)
  const seed = values.seed === undefined ? undefined : Number(values.seed)
  if (earlier?.build === build && (seed === undefined || seed === earlier.seed)) return earlier
  const fetchMs = await host.measureFetch()
  const progress = { build, seed: seed ?? Date.now() % 1_000_000, fetchMs, passed: [], cuts: [] }
  await host.saveProgress(progress)
  return progress
}

/** The phase of packages, on a machine that has had no podd. */
async function withoutPodd(machine: Machine): Promise<void> {
  if (values.fresh || !(await machine.isUp())) {
    await machine.power('down')
    say('booting a machine without podd')
    say(await machine.power('up', 3_600_000))
  }
  await packages(machine)
  if (!values.keep) await machine.power('down')
}

async function main(): Promise<void> {
  if (values.help) return console.log(usage)
  const program = process.env['PODD_TEST_MACHINE'] ?? join(import.meta.dirname, 'machine.sh')
  const only = values.only.split(',')
  const unknown = only.filter((name) => !allNames.includes(name))
  if (unknown.length > 0) throw new Error(`there is no phase ${unknown.join()}\n${usage}`)
  if (only.includes('packages')) await withoutPodd(new Machine(program, `${values.name}-packages`))
  if (!phaseNames.some((name) => only.includes(name))) return
  const machine = new Machine(program, values.name)
  const host = new InstalledMachine(machine)
  const progress = await prepare(host)
  say(`seed ${progress.seed}; an image is there again after ${Math.round(progress.fetchMs)} ms`)
  const cuts = Number(values.cuts)
  const phases = {
    restart,
    reboot,
    watchdog,
    stack,
    boots: stackBoots,
    cuts: () => cutPower(host, progress, cuts),
    rollback: () => cutRollbacks(host, progress.seed, Math.max(2, cuts)),
  }
  for (const name of phaseNames) {
    if (!only.includes(name)) continue
    // More cuts may be asked for than were made.
    if (name !== 'cuts' && progress.passed.includes(name)) say(`${name} has passed before`)
    else await phases[name](host)
    if (!progress.passed.includes(name)) progress.passed.push(name)
    await host.saveProgress(progress)
  }
  say(`passed: ${progress.passed.join(', ')}`)
  if (values.keep || progress.passed.length < phaseNames.length) say(`the machine ${machine.name} is left`)
  else await machine.power('down')
}

try {
  await main()
} catch (error) {
  console.error(error)
  console.error('The machine is left: the same command goes on with it.')
  process.exitCode = 1
}
