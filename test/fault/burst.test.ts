import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const count = 20
const names = Array.from({ length: count }, (_, index) => `burst-${index}`)

/** podd is killed when so many of them have begun. */
const killedAt = [1, 7, 14]

/** The default of `syncFrequency`, with its jitter. */
const relistMs = 66_000

/**
 * Takes a lock, and writes down when it was alive under a number of its own. A lock whose holder's heart beats no
 * more (it was killed) is taken over; one whose holder lives is the failure that this is about.
 */
function lockedScript(name: string): string {
  const lock = `/shared/${name}.lock`
  return `id=$(cat /proc/sys/kernel/random/uuid)
if ! mkdir ${lock} 2>/dev/null; then
  before=$(cat ${lock}/beat); sleep 2
  [ "$before" = "$(cat ${lock}/beat)" ] || { say double $id; exit 1; }
fi
trap 'say end $id; rm -r ${lock}; exit 0' TERM
say start $id
while :; do read t _ </proc/uptime; echo "$id $t" >${lock}/beat; sleep 0.5 & wait $!; say alive $id; done`
}

interface Span {
  readonly id: string
  readonly from: number
  to: number
}

/** When each instance was alive. */
function spansOf(lines: readonly string[]): Span[] {
  const spans = new Map<string, Span>()
  for (const line of lines) {
    const [time, , id = ''] = line.split(' ')
    const span = spans.get(id)
    if (span === undefined) spans.set(id, { id, from: Number(time), to: Number(time) })
    else span.to = Number(time)
  }
  return [...spans.values()].sort((a, b) => a.from - b.from)
}

function started(podd: PoddRig): number {
  return names.filter((name) => podd.lines(name).length > 0).length
}

describePodd('a burst of pods', {}, (rig) => {
  it('runs each of 20 pods once, although podd is killed in the middle, again and again', async () => {
    const podd = rig()
    // Twenty at once keep a small host busy: the grace is long, so that none is killed for being late.
    const spec = { terminationGracePeriodSeconds: 30 }
    for (const name of names) podd.drop(name, shellPod(name, podd.shared, lockedScript(name), { spec }))
    for (const share of killedAt) {
      await podd.until(`${share} pods`, () => started(podd) >= share)
      await podd.stopDaemon('SIGKILL')
      podd.launch()
    }
    await podd.until(`${count} ready pods`, async () => {
      const pods = await podd.pods()
      return pods.length === count && pods.every((pod) => containerOf(pod, 'main').ready)
    })
    // From its first heartbeat on a container hears SIGTERM.
    await podd.until(`${count} heartbeats`, () =>
      names.every((name) => wordsOf(podd.lines(name)).at(-1)?.startsWith('alive') === true),
    )
    const pods = await podd.pods()
    expect(pods.map(({ metadata }) => metadata.name).toSorted()).toEqual(names.toSorted())
    // What runs is what podd shows: a sandbox and a container for each pod.
    const tasks = podd.ctr('tasks', 'ls').trim().split('\n').slice(1)
    expect(tasks.filter((line) => line.endsWith('RUNNING'))).toHaveLength(2 * count)
    expect(new Set(pods.map(({ status }) => status.podIP)).size).toBe(count)
  })

  it('ends them all at once, and leaves nothing', { timeout: 240_000 * slowness }, async () => {
    const podd = rig()
    let remains = ''
    for (const name of names) podd.removeManifest(name)
    await podd.until('the end of all', async () => (await podd.pods()).length === 0)
    await podd
      .until(
        'the end of what calls of a killed podd may have left, by the next full relist',
        () => {
          remains = podd.ctr('containers', 'ls')
          return remains.trim().split('\n').length === 1
        },
        relistMs * 2,
      )
      .catch((error: unknown) => {
        throw new Error(`left in the runtime:\n${remains}`, { cause: error })
      })
    for (const name of names) {
      const lines = podd.lines(name)
      const spans = spansOf(lines)
      for (const [index, span] of spans.slice(1).entries())
        expect(span.from).toBeGreaterThan(spans[index]?.to ?? Infinity)
      const words = wordsOf(lines).map((word) => word.split(' ')[0])
      expect(words).not.toContain('double')
      expect([name, words.at(-1)]).toEqual([name, 'end'])
      // One whose start was in flight when podd was killed may have been cancelled by the runtime, and repeated; on
      // a slow host that may have been so at each kill.
      const most = slowness > 1 ? killedAt.length + 1 : 2
      expect([name, spans.length <= most]).toEqual([name, true])
    }
  })
})
