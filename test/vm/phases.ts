import type { InstalledMachine, Look } from './installed-machine.ts'
import { check, say } from './say.ts'
import { endsIn, longEndSeconds, plainImage, saidDir, startsIn } from './vm-pods.ts'

/** When each pod that was placed had its first start. */
export function figuresOf(look: Look): string {
  const uptimes = look.starts.map(({ uptimeSeconds }) => uptimeSeconds)
  return `first pod ${Math.min(...uptimes)} s, all pods ${Math.max(...uptimes)} s after the kernel's start`
}

/** Each pod was started once in this boot. */
export function startedOnce(look: Look): void {
  for (const name of new Set(look.starts.map(({ pod }) => pod)))
    check(
      look.starts.filter(({ pod }) => pod === name).length === 1,
      `${name} started once in this boot:\n${look.said}`,
    )
}

/** `systemctl restart podd` touches no container. */
export async function restart(host: InstalledMachine): Promise<void> {
  const before = await host.untilAllRun()
  const pid = await host.daemonPid()
  await host.machine.run('systemctl --no-block restart podd')
  await host.untilOtherDaemon(pid)
  const after = await host.untilAllRun()
  check(
    after.containerIds.join() === before.containerIds.join(),
    'the containers are the same after a restart',
  )
  say('systemctl restart podd: the same containers')
}

/** systemd kills a podd that hangs, and the one that takes its place touches no container. */
export async function watchdog(host: InstalledMachine): Promise<void> {
  const before = await host.untilAllRun()
  const pid = await host.daemonPid()
  await host.machine.run(`kill -STOP ${pid}`)
  const beganMs = performance.now()
  const next = await host.untilOtherDaemon(pid)
  const seconds = Math.round((performance.now() - beganMs) / 1000)
  const after = await host.untilAllRun()
  check(
    after.containerIds.join() === before.containerIds.join(),
    'the containers are the same after the watchdog',
  )
  say(
    `watchdog: podd ${pid} was stopped; after ${seconds} s systemd had replaced it by ${next}: the same containers`,
  )
}

const drainDropIn = '/etc/systemd/system/podd-drain.service.d/short.conf'
/** How long systemd waits for the drain unless it is told to wait longer. */
const shortTimeoutSeconds = longEndSeconds - 15

/**
 * systemd has podd end the pods by priority, and waits for it past its timeout, none is started meanwhile, and all run after
 * the boot.
 */
export async function reboot(host: InstalledMachine): Promise<void> {
  const { bootId } = await host.untilAllRun()
  const placed = host.pods.map(({ name }) => name)
  await host.machine.run(`sed -i /^end/d ${saidDir}/*`)
  await host.machine.write(drainDropIn, `[Service]\nTimeoutStopSec=${shortTimeoutSeconds}\n`)
  await host.machine.run('systemctl daemon-reload && mkdir -p /var/log/journal && journalctl --flush')
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
  for (const name of placed) check(ends.has(name), `${name} ended in order before the reboot:\n${look.said}`)
  for (const [name, uptime] of ends)
    if (name !== 'vital') check(uptime < vital, `${name} ended before vital: ${JSON.stringify([...ends])}`)
  const drained = await host.machine.run('journalctl -b -1 -u podd-drain -o cat --no-pager')
  check(drained.includes('drained: '), `systemd waited for the drain:\n${drained}`)
  const order = [...ends].map(([name, at]) => `${name} ${at}`).join(', ')
  say(`reboot: pods ended by priority (${order}), none started meanwhile; ${figuresOf(look)}`)
}
