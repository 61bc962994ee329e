import type { PodListObject } from '../../src/api/resource.ts'
import type { InstalledMachine } from './installed-machine.ts'
import { check, say } from './say.ts'
import { plainImage } from './vm-pods.ts'

/** A namespace of its own: the other phases wait for all pods of theirs. */
const namespace = 'stack'
/** Where its programs write what they got of each other. */
const saidDir = '/var/lib/podd-vm-stack'
const manifest = '/etc/pods/stack.json'

/** Each serves at a port of its own, and asks the other two by name, again and again. */
const ports = { broker: 1883, editor: 1880, database: 5432 } as const
type Member = keyof typeof ports
const members: readonly Member[] = ['broker', 'editor', 'database']
const podOf = { broker: 'broker-0', editor: 'editor-0', database: 'database-0' } as const

type Generations = Readonly<Record<Member, number>>

/** What asks a member at its port, once; busybox's wget, linked statically, resolves no names. */
const ask = (member: Member): string =>
  `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 ${member}.${namespace}.svc ${ports[member]} | tail -n 1`

function container(script: string, more: object = {}): object {
  return {
    name: 'main',
    image: plainImage,
    imagePullPolicy: 'Never',
    command: ['sh', '-c', `boot=$(cat /proc/sys/kernel/random/boot_id)\n${script}`],
    volumeMounts: [{ name: 'said', mountPath: '/said' }],
    ...more,
  }
}

const said = { name: 'said', hostPath: { path: saidDir, type: 'DirectoryOrCreate' } }

function templateOf(member: Member, generation: number): object {
  const asks = members
    .filter((other) => other !== member)
    .map((other) => `r=$(${ask(other)}); echo $boot ${other} \${r:-lost} >>/said/${member}`)
  // The database answers with what it wrote into its claim when it was first started.
  const content =
    member === 'database'
      ? '[ -s /data/index.html ] || { sha256sum /proc/sys/kernel/random/uuid | cut -c1-16 >/data/.new; sync; mv /data/.new /data/index.html; }; echo $boot >>/data/starts; sync'
      : `mkdir /data; echo ${generation} >/data/index.html`
  const script = `${content}
httpd -p ${ports[member]} -h /data
trap 'exit 0' TERM
while :; do ${asks.join('; ')}; sleep 3; done`
  const mounts = [
    { name: 'said', mountPath: '/said' },
    ...(member === 'database' ? [{ name: 'data', mountPath: '/data' }] : []),
  ]
  return {
    metadata: { labels: { app: member } },
    spec: {
      terminationGracePeriodSeconds: 10,
      volumes: [said],
      containers: [
        container(script, {
          env: [{ name: 'GENERATION', value: String(generation) }],
          volumeMounts: mounts,
          readinessProbe: { tcpSocket: { port: ports[member] }, periodSeconds: 2 },
        }),
      ],
    },
  }
}

/** What runs once. */
const jobTemplate = (script: string): object => ({
  spec: { restartPolicy: 'Never', volumes: [said], containers: [container(script)] },
})

function stackOf(generations: Generations): string {
  const objects = members.flatMap((member) => [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: member, namespace },
      spec: { clusterIP: 'None', selector: { app: member }, ports: [{ port: ports[member] }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: member === 'database' ? 'StatefulSet' : 'Deployment',
      metadata: { name: member, namespace },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: member } },
        template: templateOf(member, generations[member]),
        ...(member === 'database' && {
          serviceName: member,
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
            },
          ],
        }),
      },
    },
  ])
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'schema', namespace },
    spec: {
      backoffLimit: 6,
      template: jobTemplate(
        `until [ -n "$(${ask('database')})" ]; do sleep 1; done; echo ran >>/said/schema; sync`,
      ),
    },
  }
  const cronJob = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'tick', namespace },
    spec: {
      schedule: '* * * * *',
      concurrencyPolicy: 'Forbid',
      // A run that was cut off has failed: no minute has two.
      jobTemplate: { spec: { backoffLimit: 0, template: jobTemplate('hostname >>/said/tick; sync') } },
    },
  }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...objects, job, cronJob] })
}

interface StackLook {
  readonly bootId: string
  readonly pods: PodListObject['items']
  /** What each file has, line by line. */
  readonly said: ReadonlyMap<string, readonly string[]>
  /** In the claim of the database: a line for each of its starts. */
  readonly starts: readonly string[]
}

async function look(host: InstalledMachine): Promise<StackLook> {
  const mark = '====='
  const files = ['broker', 'editor', 'database', 'schema', 'tick']
  const claim = `/var/lib/podd/claims/${namespace}/data-database-0/starts`
  const text = await host.machine.run(
    `cat /proc/sys/kernel/random/boot_id; echo ${mark}; curl -s --unix-socket /run/podd/podd.sock http://podd/api/v1/namespaces/${namespace}/pods; ` +
      files
        .map((file) => `echo; echo ${mark}; tail -n 4000 ${saidDir}/${file} 2>/dev/null | tr -d '\\0'`)
        .join('; ') +
      `; echo; echo ${mark}; cat ${claim} 2>/dev/null | tr -d '\\0'; true`,
  )
  const [boot = '', json = '', ...parts] = text.split(`${mark}\n`)
  const { items }: PodListObject = JSON.parse(json)
  const lines = (part = ''): readonly string[] => part.split('\n').filter((line) => line.trim() !== '')
  return {
    bootId: boot.trim(),
    pods: items,
    said: new Map(files.map((file, at) => [file, lines(parts[at])])),
    starts: lines(parts[files.length]),
  }
}

/** Until each member has the newest answer of both others, in this boot; the database's answer is its token. */
async function untilConnected(host: InstalledMachine, generations: Generations): Promise<string> {
  let last: StackLook | undefined
  let token = ''
  try {
    await host.machine.until(
      'the stack to be connected',
      async () => {
        last = await look(host)
        const { bootId, said: files, pods } = last
        const tokens = new Set<string>()
        const isConnected = members.every((member) => {
          const newest = (files.get(member) ?? []).slice(-4)
          return members
            .filter((other) => other !== member)
            .every((other) => {
              if (other !== 'database') return newest.includes(`${bootId} ${other} ${generations[other]}`)
              const answer = newest.findLast((line) => line.startsWith(`${bootId} database `))?.split(' ')[2]
              tokens.add(answer ?? 'lost')
              return /^[0-9a-f]{16}$/u.test(answer ?? '')
            })
        })
        token = [...tokens].join()
        const isReady = members.every((member) =>
          pods.some(
            ({ metadata, status, spec }) =>
              metadata.name === podOf[member] &&
              JSON.stringify(spec).includes(`"GENERATION","value":"${generations[member]}"`) &&
              status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
          ),
        )
        return isConnected && isReady && tokens.size === 1 ? true : undefined
      },
      1_200_000,
    )
  } catch (error) {
    const events = await host.machine
      .run(`podd get all -n ${namespace}; podd get events -n ${namespace} | tail -40; podd status`)
      .catch(String)
    throw new Error(
      `${JSON.stringify([...(last?.said ?? [])].map(([file, lines]) => [file, lines.slice(-6)]))}\n${events}`,
      {
        cause: error,
      },
    )
  }
  return token
}

const idsOf = ({ pods }: StackLook): string =>
  pods
    .filter(({ metadata }) => members.some((member) => podOf[member] === metadata.name))
    .flatMap(({ status }) => (status.containerStatuses ?? []).map(({ containerID = '' }) => containerID))
    .toSorted()
    .join('\n')

/** The Job has run once, and no minute of the CronJob twice. */
function ranOnce({ said: files }: StackLook, when: string): number {
  const runs = files.get('schema') ?? []
  check(runs.length === 1, `the Job has run once ${when}: ${runs.join(', ')}`)
  const minutes = (files.get('tick') ?? []).map((name) => name.replace(/-\d+$/u, ''))
  check(
    new Set(minutes).size === minutes.length,
    `each run of the CronJob was one ${when}: ${minutes.join(', ')}`,
  )
  return minutes.length
}

/** Places the stack, where it isn't there yet; gives the token of the database once all are connected. */
async function place(host: InstalledMachine, generations: Generations): Promise<string> {
  await host.machine.run(`[ -e ${manifest} ] || rm -rf ${saidDir}`)
  await host.machine.write(manifest, stackOf(generations))
  const token = await untilConnected(host, generations)
  await host.machine.until(
    'the Job to complete',
    async () =>
      (
        await host.machine.run(`podd get job schema -n ${namespace} -o 'jsonpath={.status.succeeded}'`)
      ).trim() === '1'
        ? true
        : undefined,
    600_000,
  )
  say('stack: broker, editor and database talk by name, and the Job has completed')
  return token
}

async function remove(host: InstalledMachine): Promise<void> {
  await host.machine.run(`rm -f ${manifest}`)
  await host.machine.until(
    'the stack to be gone',
    async () => ((await look(host)).pods.length === 0 ? true : undefined),
    600_000,
  )
}

/**
 * A broker, an editor and a database that know each other by name find each other again after a new version of each and SIGKILL of
 * podd. The stack stays, for `stackBoots`.
 */
export async function stack(host: InstalledMachine): Promise<void> {
  const { machine } = host
  const generations = { broker: 1, editor: 1, database: 1 }
  await remove(host)
  const token = await place(host, generations)

  for (const member of members) {
    generations[member] += 1
    await machine.write(manifest, stackOf(generations))
    check((await untilConnected(host, generations)) === token, `the data is there after a new ${member}`)
  }
  ranOnce(await look(host), 'after new versions')
  say('stack: connected again after a new version of each')

  const before = await look(host)
  const pid = await host.daemonPid()
  await machine.run('systemctl kill -s KILL podd')
  await host.untilOtherDaemon(pid)
  check((await untilConnected(host, generations)) === token, 'the data is there after SIGKILL of podd')
  const after = await look(host)
  check(idsOf(after) === idsOf(before), 'the containers are the same after SIGKILL of podd')
  for (const member of members) {
    const lines = after.said.get(member)?.slice(before.said.get(member)?.length) ?? []
    check(
      !lines.some((line) => line.endsWith('lost')),
      `${member} lost nobody while podd was killed:\n${lines.join('\n')}`,
    )
  }
  say('stack: nobody was lost while podd was killed, and the containers are the same')
}

/** So they do after a reboot and a power cut; the claim keeps its data, the Job doesn't run again, and the CronJob goes on. */
export async function stackBoots(host: InstalledMachine): Promise<void> {
  const { machine } = host
  const generations = { broker: 2, editor: 2, database: 2 }
  const token = await place(host, generations)

  for (const [verb, what] of [
    ['reboot', 'a reboot'],
    ['powercut', 'a power cut'],
  ] as const) {
    const { said: earlier, starts } = await look(host)
    const ticks = earlier.get('tick')?.length ?? 0
    await machine.power(verb)
    check((await untilConnected(host, generations)) === token, `the data is there after ${what}`)
    await machine.until(
      `the CronJob after ${what}`,
      async () => ((await look(host)).said.get('tick')?.length ?? 0) > ticks || undefined,
      600_000,
    )
    const now = await look(host)
    const count = ranOnce(now, `after ${what}`)
    check(
      now.starts.length === starts.length + 1 && now.starts.at(-1) === now.bootId,
      `the database was started once after ${what}: ${now.starts.join(', ')}`,
    )
    say(
      `stack: connected again after ${what}, with the same data; the Job has run once, the CronJob ${count} times`,
    )
  }
  await remove(host)
}
