import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { FakeRuntimeServer } from '../test/support/fake-runtime-server.ts'
import { FakeRuntime } from '../test/support/fake-runtime.ts'
import { spreadOf } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import { benchImage, PoddUnderTest } from './podd-under-test.ts'

/** How much more a pod may cost among many than among few. */
const flat = 1.25
const asks = 20

interface Scale {
  readonly few: number
  readonly many: number
  readonly containers: number
  /** How long a podd with these pods is left alone. */
  readonly seconds: number
}

/** What a pod costs podd, by what it is for; milliseconds of CPU, and KiB. */
type Costs = ReadonlyMap<string, number>

/** Pods of the embedded containerd beside a fifth of them. */
export function benchMany(podd: PoddUnderTest, seconds: number, many: number): Promise<readonly Figure[]> {
  return compareScales(podd, { few: many / 5, many, containers: 1, seconds })
}

/** Pods of three containers beside a tenth of them (100 at most), of a runtime in the memory of the bench. */
export async function benchFake(seconds: number, many: number): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), 'podd-bench-'))
  const fake = new FakeRuntime({ clock: systemClock, release: '1.6', images: [benchImage] })
  const server = await FakeRuntimeServer.start(fake, { socketPath: join(directory, 'runtime.sock') })
  const podd = new PoddUnderTest(server.endpoint)
  try {
    await podd.start()
    return await compareScales(podd, { few: Math.min(100, many / 10), many, containers: 3, seconds })
  } finally {
    await podd.discard()
    server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function compareScales(podd: PoddUnderTest, scale: Scale): Promise<readonly Figure[]> {
  const { few, many, containers } = scale
  const first = await costsAt(podd, scale, { from: 0, to: few })
  const second = await costsAt(podd, scale, { from: few, to: many })
  for (let index = 0; index < many; index += 1) podd.remove(nameOf(index))
  await podd.untilGone()
  const each = containers === 1 ? 'a pod' : `a pod of ${containers} containers`
  return [...second].map(([what, cost]) => {
    const before = first.get(what) ?? Number.NaN
    return {
      name: `${what}, ${each}: ${many} pods beside ${few}`,
      unit: what.startsWith('memory') ? 'KiB' : 'ms',
      podd: spreadOf([cost]),
      bare: spreadOf([before]),
      atMost: flat * before,
    }
  })
}

async function costsAt(
  podd: PoddUnderTest,
  { containers, seconds }: Scale,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Costs> {
  const costs = new Map<string, number>()
  const spend = async (what: string, share: number, work: () => Promise<unknown>): Promise<void> => {
    const before = podd.cpuMs()
    await work()
    costs.set(what, (podd.cpuMs() - before) / share)
  }
  const memoryBefore = podd.memory().anonymousMiB
  await spend('CPU of a start', to - from, async () => {
    for (let index = from; index < to; index += 1) podd.drop(nameOf(index), manifest(index, containers))
    await podd.untilRunning(to)
  })
  await systemClock.sleep(15_000)
  costs.set('memory', ((podd.memory().anonymousMiB - memoryBefore) * 1024) / (to - from))
  await spend('CPU of an idle minute with its relists', (to * seconds) / 60, () =>
    systemClock.sleep(seconds * 1000),
  )
  await spend('CPU of a list', to * asks, () => repeat(() => podd.text('/api/v1/pods')))
  await spend('CPU of a status', to * asks, () => repeat(() => podd.text('/podd/v1/status')))
  await spend('CPU of a watch that begins', to * asks, () => repeat(() => podd.watchPods(to)))
  return costs
}

async function repeat(work: () => Promise<unknown>): Promise<void> {
  for (let index = 0; index < asks; index += 1) await work()
}

function nameOf(index: number): string {
  return `scale-${index}`
}

function manifest(index: number, containers: number): object {
  const command = ['sleep', '36000']
  const more = Array.from({ length: containers }, (_, each) => ({
    name: `c${each}`,
    image: benchImage,
    command,
  }))
  return podManifest(nameOf(index), { command, spec: containers === 1 ? {} : { containers: more } })
}
