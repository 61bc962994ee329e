import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { HostileRegistry } from '../support/hostile-registry.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { Gates, dropPulling, messageOf, onBlob } from '../support/pulling-pods.ts'

const mebibyte = 1024 * 1024

let registry: HostileRegistry

beforeAll(async () => {
  registry = await HostileRegistry.start()
})
afterAll(() => registry.close())

/** Pods a, b, … with an image each whose layer waits at a gate; dropped one after the other. */
async function dropGated(podd: PoddRig, count: number, gates: Gates): Promise<readonly string[]> {
  const names = Array.from({ length: count }, (_, index) => `image-${'abcdefgh'[index] ?? index}`)
  for (const name of names) {
    const { name: image, layers } = registry.add(name, { layerBytes: [100_000] })
    registry.misbehave(name, onBlob(layers[1], { kind: 'held', until: gates.of(name).until }))
    dropPulling(podd, name, image, 'Always')
    await podd.untilEvent(name, 'Pulling')
  }
  return names
}

/** The repositories that were asked for, in order. */
function asked(names: readonly string[]): readonly string[] {
  return [...new Set(registry.calls.map(({ repository }) => repository))].filter((name) =>
    names.includes(name),
  )
}

describePodd(
  'pulls of images, two at a time',
  { config: { serializeImagePulls: false, maxParallelImagePulls: 2 } },
  (rig) => {
    // Kubernetes' own: test/e2e_node/image_pull_test.go, there with 5.
    // id: parallel-image-pulls
    it('Pull Image: parallel image pull with MaxParallelImagePulls, pulls at once no more images than the limit, in order', async () => {
      const podd = rig()
      registry.calls.length = 0
      const gates = new Gates()
      const names = await dropGated(podd, 6, gates)
      await podd.until('two pulls', () => asked(names).length === 2)
      const third = await podd.untilPod('image-c', 'its turn is awaited', (pod) => messageOf(pod) !== '')
      expect(messageOf(third)).toMatch(
        /^waiting to pull image ".*\/image-c:1": other images are pulled before it$/u,
      )
      for (const [index, name] of names.entries()) {
        await podd.until('the next pull', () => asked(names).length === Math.min(index + 2, names.length))
        // One that may not be there for a moment shows that no further one begins.
        await new Promise((resolve) => setTimeout(resolve, 300))
        expect(asked(names)).toEqual(names.slice(0, index + 2))
        gates.of(name).open()
        await podd.untilReady(name)
      }
    })
  },
)

describePodd('pulls of images, one at a time', {}, (rig) => {
  // Kubernetes' own: test/e2e_node/image_pull_test.go.
  // id: serial-image-pulls
  it('Pull Image: serialize image pull should be waiting more', async () => {
    const podd = rig()
    registry.calls.length = 0
    const gates = new Gates()
    const names = await dropGated(podd, 2, gates)
    await podd.until('the first pull', () => asked(names).length === 1)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    expect(asked(names)).toEqual(['image-a'])
    for (const name of names) gates.of(name).open()
    for (const name of names) await podd.untilReady(name)
    expect(asked(names)).toEqual(names)
    const [first, second] = await Promise.all(
      names.map(async (name) => (await podd.untilEvent(name, 'Pulled', /including waiting/u)).message),
    )
    const waited = (message = ''): readonly number[] =>
      [...message.matchAll(/(?:([\d.]+)m)?([\d.]+)(ms|s)\b/gu)].map(
        ([, minutes = '0', amount = '0', unit]) =>
          Number(minutes) * 60 + Number(amount) / (unit === 'ms' ? 1000 : 1),
      )
    const [pulled = 0, inAll = 0] = waited(second)
    expect(inAll).toBeGreaterThan(3)
    expect(inAll).toBeGreaterThan(1.5 * pulled)
    expect(first).toMatch(
      /^Successfully pulled image ".*" in .* \(.* including waiting\)\. Image size: \d+ bytes\.$/u,
    )
  })

  it('leave nothing that could be exported once containerd has deleted the layers, which podd says', async () => {
    const podd = rig()
    const kept = registry.add('kept', { layerBytes: [mebibyte] })
    const removed = registry.add('removed', { layerBytes: [mebibyte] })
    for (const { name } of [kept, removed]) await podd.cliOk('images', 'pull', name)
    // containerd deletes what nothing refers to when an image is removed.
    await podd.cliOk('images', 'rm', removed.name)
    const file = join(podd.directory, 'pulled.tar')
    const refused = await podd.cli('images', 'export', kept.name, '-o', file)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/cannot export .*\/kept:1: containerd has only 1 of its \d blobs/u)
    expect(refused.stderr).toContain('skopeo copy')
    expect(existsSync(file)).toBe(false)
  })
})
