import { setTimeout as sleep } from 'node:timers/promises'
import type { UnitObject } from '../../src/api/sources.ts'
import { seededRandom } from '../support/seeded-random.ts'
import type { InstalledMachine } from './installed-machine.ts'
import { check, say } from './say.ts'
import { plainImage } from './vm-pods.ts'

const manifest = '/etc/pods/gated.json'
const saidDir = '/var/lib/podd-vm-gate'
const hostPort = 8090
/** `updates.crashes`, by default. */
const crashes = 3

/** A web server, or with a number a revision of it that crashes; both say so when they start. */
function revisionOf(bad?: number): string {
  const word = bad === undefined ? 'good' : `bad-${bad}`
  const script = `echo $(cat /proc/sys/kernel/random/boot_id) ${word} >>/said/gated; sync
${bad === undefined ? 'mkdir /www; echo good >/www/index.html; exec httpd -f -p 8080 -h /www' : 'sleep 1; exit 1'}`
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    // The other phases wait for all pods of theirs.
    metadata: { name: 'gated', namespace: 'gate' },
    spec: {
      terminationGracePeriodSeconds: 1,
      volumes: [{ name: 'said', hostPath: { path: saidDir, type: 'DirectoryOrCreate' } }],
      containers: [
        {
          name: 'main',
          image: plainImage,
          imagePullPolicy: 'Never',
          command: ['sh', '-c', script],
          ports: [{ containerPort: 8080, hostPort }],
          readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 2 },
          volumeMounts: [{ name: 'said', mountPath: '/said' }],
        },
      ],
    },
  })
}

interface GateLook {
  readonly bootId: string
  readonly unit: UnitObject | undefined
  readonly answer: string
  /** `BOOT WORD` of each start. */
  readonly said: readonly string[]
}

async function look(host: InstalledMachine): Promise<GateLook> {
  const text = await host.machine.run(
    `cat /proc/sys/kernel/random/boot_id; curl -s --unix-socket /run/podd/podd.sock http://podd/podd/v1/units; curl -s -m 5 http://127.0.0.1:${hostPort}/ || echo; tr -d '\\0' <${saidDir}/gated 2>/dev/null; true`,
  )
  const [bootId = '', json = '', answer = '', ...said] = text.split('\n')
  const units: readonly UnitObject[] = JSON.parse(json)
  return { bootId, unit: units.find(({ metadata }) => metadata.name === manifest), answer, said }
}

/** Until the web server answers and its unit is in this state. */
async function until(host: InstalledMachine, state: UnitObject['status']['state']): Promise<GateLook> {
  let last: GateLook | undefined
  try {
    return await host.machine.until(
      `${manifest} to be ${state}`,
      async () => {
        last = await look(host)
        return last.unit?.status.state === state && last.answer === 'good' ? last : undefined
      },
      1_200_000,
    )
  } catch (error) {
    const events = await host.machine.run('podd get events -n gate; podd history').catch(String)
    throw new Error(`${JSON.stringify(last)}\n${events}`, { cause: error })
  }
}

const startsOf = ({ said }: GateLook, word: string, bootId = ''): number =>
  said.filter((line) => line.startsWith(bootId) && line.endsWith(` ${word}`)).length

/** Places a revision so that no power cut takes it away again. */
async function place(host: InstalledMachine, bad?: number): Promise<void> {
  await host.machine.write(manifest, revisionOf(bad))
  await host.machine.run('sync')
}

/**
 * Power cuts while a crashing revision is taken back: after the boot the good one answers, and the one that failed is not tried
 * again, over a kill of podd and another cut.
 */
export async function cutRollbacks(host: InstalledMachine, seed: number, count: number): Promise<void> {
  const random = seededRandom(seed)
  await host.machine.run(`rm -rf ${saidDir}`)
  await place(host)
  await until(host, 'Healthy')
  await place(host, 0)
  const beganMs = performance.now()
  const undisturbed = await until(host, 'RolledBack')
  const rollbackMs = performance.now() - beganMs
  check(startsOf(undisturbed, 'bad-0') <= crashes, `a revision is taken back by its crash ${crashes}`)
  say(
    `rollback: without a cut it takes ${Math.round(rollbackMs / 1000)} s, ${startsOf(undisturbed, 'bad-0')} starts`,
  )

  for (let cut = 1; cut <= count; cut += 1) {
    const word = `bad-${cut}`
    await place(host, cut)
    // Each in a part of its own of the time; the last one as soon as podd says that it is done.
    const waitMs = rollbackMs * ((cut - 1 + random()) / (count - 1))
    const isDone = cut === count
    if (isDone) await until(host, 'RolledBack')
    else await sleep(waitMs)
    await host.machine.power('powercut')
    const back = await until(host, 'RolledBack')
    const before = startsOf(back, word) - startsOf(back, word, back.bootId)
    const after = startsOf(back, word, back.bootId)
    if (isDone) check(after === 0, `a revision that was taken back is not tried after the boot: ${after}`)
    check(before <= crashes && after <= crashes, `${word} crashed ${before} and ${after} times`)
    const pid = await host.daemonPid()
    await host.machine.run('systemctl kill -s KILL podd')
    await host.untilOtherDaemon(pid)
    const again = await until(host, 'RolledBack')
    check(startsOf(again, word) === before + after, `${word} is not tried again after SIGKILL of podd`)
    const when = isDone ? 'once podd said that it was taken back' : `after ${Math.round(waitMs / 1000)} s`
    say(
      `rollback: cut ${cut}, ${when}: ${before} starts before it and ${after} after it; the good one answers`,
    )
  }

  await host.machine.power('powercut')
  const last = await until(host, 'RolledBack')
  check(
    !last.said.some((line) => line.startsWith(last.bootId) && line.includes(' bad-')),
    `nothing that failed is tried after another cut:\n${last.said.join('\n')}`,
  )
  await place(host)
  await until(host, 'Healthy')
  await host.machine.run(`rm ${manifest}`)
  say(`rollback: ${count} power cuts survived (seed ${seed})`)
}
