import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { PodListObject } from '../../src/api/resource.ts'
import { checkedImage } from '../support/checked-image.ts'
import type { Machine } from './machine.ts'
import type { Progress } from './progress.ts'
import { provideRegistry, pulledImage } from './registry.ts'
import { manifestOf, middleClass, plainImage, saidDir, startsIn } from './vm-pods.ts'
import type { Start, VmPod } from './vm-pods.ts'

const checkout = join(import.meta.dirname, '../..')
const sourceDir = '/root/podd-source'
const progressFile = '/root/podd-vm.json'
const archive = '/var/lib/podd/images/imported.tar'
const importedImage = 'registry.invalid/vm/imported:1'
/** Nothing in these is needed to install podd: tests, what only checks sources, and what Node brings beside its program. */
const leftOut = [
  '.git',
  'test',
  'dist',
  ...[
    'node-linux-*/include',
    'node-linux-*/share',
    'node-linux-*/lib',
    '*typescript*',
    '*vite*',
    '*oxlint*',
    '*oxfmt*',
    '*oxc-*',
    '@emnapi',
    'lightningcss*',
    'axe-core',
    'fast-check',
    'knip',
    'zod',
  ].map((name) => `node_modules/${name}`),
]

function pack(...args: readonly string[]): Buffer {
  const { status, stdout, stderr } = spawnSync('tar', ['-C', checkout, '-czf', '-', ...args], {
    maxBuffer: 2 ** 30,
  })
  // 1: a file has changed meanwhile, as one does that gets another hard link.
  if (status !== 0 && status !== 1) throw new Error(`tar failed: ${stderr.toString()}`)
  return stdout
}

/** An emulated machine under load is some fifty times slower than a real one. */
const patienceMs = 1_200_000

/** What the machine tells in one call. */
export interface Look {
  readonly bootId: string
  readonly uptimeSeconds: number
  /** Those of the namespace `default` by their names, whether they are ready. */
  readonly pods: ReadonlyMap<string, boolean>
  /** The ids of their containers, sorted. */
  readonly containerIds: readonly string[]
  readonly starts: readonly Start[]
  readonly said: string
}

/** The machine with podd installed by its own script, and pods that run on it. */
export class InstalledMachine {
  readonly machine: Machine
  /** Those that were placed, beside `hello`. */
  readonly pods: VmPod[] = []

  constructor(machine: Machine) {
    this.machine = machine
  }

  async install(): Promise<void> {
    const exclude = leftOut.map((path) => `--exclude=./${path}`)
    const source = pack('--no-wildcards-match-slash', ...exclude, '.')
    await this.machine.run(`mkdir -p ${sourceDir} && tar -C ${sourceDir} -xzf -`, source)
    await this.machine.run(`cd ${sourceDir} && ./install.sh`, undefined, 2 * patienceMs)
  }

  /** Puts this checkout's program and units in the place of the installed ones, and starts it. */
  async replaceProgram(): Promise<void> {
    const pid = await this.daemonPid()
    await this.machine.run(
      'rm -rf /opt/podd/dist && tar -C /opt/podd -xzf - && cp /opt/podd/packaging/*.service /etc/systemd/system/ && systemctl daemon-reload && sync && systemctl --no-block restart podd',
      pack('dist', 'packaging'),
    )
    await this.untilOtherDaemon(pid)
  }

  /** Of an earlier run in this machine; undefined where podd was not installed in it. */
  async readProgress(): Promise<Progress | undefined> {
    const text = await this.machine.run(`cat ${progressFile} 2>/dev/null || true`)
    if (text === '') return undefined
    const progress: Progress = JSON.parse(text)
    return progress
  }

  async saveProgress(progress: Progress): Promise<void> {
    await this.machine.write(progressFile, JSON.stringify(progress))
    await this.machine.run('sync')
  }

  async daemonPid(): Promise<string> {
    return (await this.machine.run('systemctl show -P MainPID podd')).trim()
  }

  /** Until another process than this one is podd; gives its number. */
  async untilOtherDaemon(pid: string): Promise<string> {
    return this.machine.until(
      'another podd',
      async () => {
        const now = await this.daemonPid()
        return now === pid || now === '0' ? undefined : now
      },
      patienceMs,
    )
  }

  /** How many milliseconds after `fetchAgain` the pod of an image runs again. */
  async measureFetch(): Promise<number> {
    const pod =
      this.pods.find(({ name }) => name === 'pulled') ?? this.pods.find(({ name }) => name === 'imported')
    if (pod === undefined) throw new Error('there is no pod with an image of its own')
    await this.fetchAgain(pod)
    const beganMs = performance.now()
    await this.machine.until(
      'its pod',
      async () => ((await this.look()).pods.get(pod.name) === true ? true : undefined),
      patienceMs,
    )
    return performance.now() - beganMs
  }

  /** Places the pods whose images are there or can be made; gives what could not be had, and why. */
  async placePods(): Promise<readonly string[]> {
    const missing: string[] = []
    await this.machine.write('/etc/pods/middle-class.yaml', middleClass)
    await this.place({ name: 'low', image: plainImage })
    await this.place({ name: 'middle', image: plainImage, priorityClassName: 'middle' })
    await this.place({ name: 'vital', image: plainImage, priorityClassName: 'system-node-critical' })
    const hasArchive = await this.machine.run(`[ -e ${archive} ] && echo yes || true`)
    if (hasArchive === '') await this.machine.write(archive, checkedImage(importedImage))
    await this.place({ name: 'imported', image: importedImage, isChecked: true })
    try {
      await provideRegistry(this.machine)
      await this.place({ name: 'pulled', image: pulledImage, isChecked: true })
    } catch (error) {
      missing.push(`pulls: no registry in the machine (${String(error)})`)
    }
    return missing
  }

  /** @param revision another one replaces the pod */
  async place(pod: VmPod, revision = 0): Promise<void> {
    if (!this.pods.some(({ name }) => name === pod.name)) this.pods.push(pod)
    await this.machine.write(`/etc/pods/${pod.name}.yaml`, manifestOf(pod, revision))
  }

  /** Places a pod as soon as the first pod ends, whatever else systemd stops by then. */
  async placeWhilePodsEnd(pod: VmPod): Promise<void> {
    await this.machine.run(`rm -f /etc/pods/${pod.name}.yaml`)
    await this.machine.write(`/root/${pod.name}.yaml`, manifestOf(pod))
    this.pods.push(pod)
    const script = `until grep -q ^end ${saidDir}/*; do sleep 0.5; done; mv /root/${pod.name}.yaml /etc/pods/; sync`
    await this.machine.run(
      `systemd-run --collect --unit=place-${pod.name} -p DefaultDependencies=no sh -c '${script}'`,
    )
  }

  /** Ends the pod of an image, removes the image, and has it pulled or imported again: that is in progress on return. */
  async fetchAgain(pod: VmPod): Promise<void> {
    const manifest = `/etc/pods/${pod.name}.yaml`
    const aside = `/root/${pod.name}.yaml`
    const gone = `until ! curl -s --unix-socket /run/podd/podd.sock http://podd/api/v1/namespaces/default/pods/${pod.name} | grep -q '"kind":"Pod"'; do sleep 0.2; done`
    const isImport = pod.image === importedImage
    await this.machine.run(
      [
        `mv ${manifest} ${aside}`,
        gone,
        ...(isImport ? [`mv ${archive} /root/imported.tar`] : []),
        `podd images remove --force ${pod.image}`,
        'sync',
        ...(isImport ? [`mv /root/imported.tar ${archive}`] : []),
        `mv ${aside} ${manifest}`,
      ].join(' && '),
    )
  }

  /** A cut may leave NULs before the first line of the next boot, where a file had grown and its blocks weren't written. */
  async look(): Promise<Look> {
    const text = await this.machine.run(
      `cat /proc/sys/kernel/random/boot_id; cut -d' ' -f1 /proc/uptime; curl -s --unix-socket /run/podd/podd.sock http://podd/api/v1/namespaces/default/pods; echo; grep -ra . ${saidDir} 2>/dev/null | tr -d '\\0' | sed 's#.*/##'; true`,
    )
    const [bootId = '', uptime, json = '', ...said] = text.split('\n')
    const { items }: PodListObject = JSON.parse(json)
    const statuses = items.flatMap(({ status }) => status.containerStatuses ?? [])
    return {
      bootId,
      uptimeSeconds: Number(uptime),
      pods: new Map(
        items.map(({ metadata, status }) => [
          metadata.name,
          status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
        ]),
      ),
      containerIds: statuses.map(({ containerID = '' }) => containerID).toSorted(),
      starts: startsIn(said.join('\n'), bootId),
      said: said.join('\n'),
    }
  }

  /** Until all pods are ready, each of those that were placed by a start in this boot. */
  async untilAllRun(): Promise<Look> {
    let last: Look | undefined
    try {
      return await this.machine.until(
        'all pods',
        async () => {
          last = await this.look()
          const { pods, starts } = last
          const hasStarted = this.pods.every(({ name }) => starts.some(({ pod }) => pod === name))
          return hasStarted && [...pods.values()].every(Boolean) && pods.size > this.pods.length
            ? last
            : undefined
        },
        patienceMs,
      )
    } catch (error) {
      const events = await this.machine.run('podd events | tail -40; podd images').catch(String)
      throw new Error(
        `not all pods run: ${JSON.stringify([...(last?.pods ?? [])])}\n${last?.said ?? ''}\n${events}`,
        {
          cause: error,
        },
      )
    }
  }

  /** What podd has said of files or a state of its own that was bad; nothing where all is well. */
  async complaints(): Promise<readonly string[]> {
    const text = await this.machine.run(
      `ls /var/lib/podd/crash 2>/dev/null; find /var/lib/podd -maxdepth 3 -name '*.unreadable'; journalctl -b -u podd -o cat --no-pager | grep -E '"level":"(error|fatal)"' | cut -c1-400; true`,
    )
    return text.split('\n').filter((line) => line !== '')
  }
}
