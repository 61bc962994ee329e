import { readFileSync, readdirSync } from 'node:fs'

/** A container's first process, as /proc shows it. */
export interface ProcessLife {
  /** `pod/container`. */
  readonly key: string
  readonly version: number
  /** A pid with the time of its start: no two processes share both. */
  readonly id: string
}

/** How often /proc is read: longer than that no two processes of one container run beside each other unseen. */
const sampleMs = 100

/** What a container's command line has to hold, so that its process is found. */
export function processMark(podName: string, containerName: string, version: number): string {
  return `: podd-life ${podName}/${containerName}@${version};`
}

/**
 * Which containers run and ran, from /proc alone: neither podd nor containerd is asked. Counts the first processes of
 * containers (those with pid 1 in a pid namespace of their own) that bear a mark and live below a cgroup.
 */
export class ProcessLedger {
  readonly #cgroupRoot: string
  readonly #seen = new Map<string, ProcessLife>()
  readonly #overlaps = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(cgroupRoot: string) {
    this.#cgroupRoot = cgroupRoot
  }

  open(): void {
    this.#timer = setInterval(() => this.sample(), sampleMs)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Those that run at this moment. */
  sample(): readonly ProcessLife[] {
    const lives = readdirSync('/proc').flatMap((pid) => this.#lifeOf(pid) ?? [])
    for (const life of lives) this.#seen.set(life.id, life)
    for (const [key, beside] of Map.groupBy(lives, (life) => life.key))
      if (beside.length > 1)
        this.#overlaps.add(
          `${key}: ${beside.map(({ id, version }) => `${id} (version ${version})`).join(', ')}`,
        )
    return lives
  }

  /** All that were seen since the last `forget`. */
  get seen(): readonly ProcessLife[] {
    return [...this.#seen.values()]
  }

  /** Processes of one container that ran at the same time, in words. */
  get overlaps(): readonly string[] {
    return [...this.#overlaps]
  }

  forget(): void {
    this.#seen.clear()
    this.#overlaps.clear()
  }

  #lifeOf(pid: string): ProcessLife | undefined {
    if (!/^\d+$/u.test(pid)) return undefined
    try {
      const mark = /: podd-life (?<key>\S+)@(?<version>\d+);/u.exec(
        readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
      )
      const { key, version } = mark?.groups ?? {}
      if (key === undefined) return undefined
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      if (!/^NSpid:.*\t1$/mu.test(status) || /^State:\tZ/mu.test(status)) return undefined
      if (!readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(`${this.#cgroupRoot}/`)) return undefined
      // The name in parentheses may hold spaces; the time of the start is the 20th field after it.
      const startTime = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19] ?? ''
      return { key, version: Number(version), id: `${pid}:${startTime}` }
    } catch {
      // It ended meanwhile.
      return undefined
    }
  }
}
