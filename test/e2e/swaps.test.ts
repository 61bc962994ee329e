import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const missing = 'localhost/podd-test/shell:absent'

/** A pod that serves its own name on a host port. */
function server(podd: PoddRig, name: string, hostPort: number, image?: string): object {
  return shellPod(name, podd.shared, `echo ${name} >/index.html; say start; exec httpd -f -p 80 -h /`, {
    container: { ports: [{ containerPort: 80, hostPort }], ...(image === undefined ? {} : { image }) },
  })
}

async function ports(count: number): Promise<readonly number[]> {
  const found = new Set<number>()
  while (found.size < count) found.add(await freePort())
  return [...found]
}

/** Waits until each of these ports is served by the pod of that name; gives the pods' UIDs. */
async function untilServed(podd: PoddRig, served: ReadonlyMap<number, string>): Promise<readonly string[]> {
  const [first = ''] = served.values()
  const { hostIP } = (await podd.untilReady(first)).status
  for (const [port, name] of served) {
    const page = async (): Promise<string> => {
      const response = await fetch(`http://${hostIP}:${port}/`, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(2000),
      })
      return await response.text()
    }
    await podd.until(`${name} on its new port`, async () => (await page().catch(() => '')) === `${name}\n`)
  }
  const pods = await Promise.all([...served.values()].toSorted().map((name) => podd.untilReady(name)))
  return pods.map(({ metadata }) => metadata.uid)
}

describePodd('pods that ask for what the others hold', {}, (rig) => {
  it.concurrent('swap two host ports', async () => {
    const podd = rig()
    const [one = 0, two = 0] = await ports(2)
    podd.drop('left', server(podd, 'left', one))
    podd.drop('right', server(podd, 'right', two))
    const before = await untilServed(
      podd,
      new Map([
        [one, 'left'],
        [two, 'right'],
      ]),
    )
    podd.drop('left', server(podd, 'left', two))
    podd.drop('right', server(podd, 'right', one))
    const after = await untilServed(
      podd,
      new Map([
        [two, 'left'],
        [one, 'right'],
      ]),
    )
    expect(new Set([...before, ...after]).size).toBe(4)
  })

  it.concurrent('pass three host ports round', async () => {
    const podd = rig()
    const given = await ports(3)
    const names = ['ring-a', 'ring-b', 'ring-c']
    const turn = async (by: number): Promise<readonly string[]> => {
      const wanted = new Map(given.map((_port, i) => [given[(i + by) % 3] ?? 0, names[i] ?? '']))
      for (const [port, name] of wanted) podd.drop(name, server(podd, name, port))
      return untilServed(podd, wanted)
    }
    const before = await turn(0)
    const after = await turn(1)
    expect(new Set([...before, ...after]).size).toBe(6)
  })

  it.concurrent('end nobody while the image of one cannot be pulled, and say why', async () => {
    const podd = rig()
    const [one = 0, two = 0] = await ports(2)
    podd.drop('able', server(podd, 'able', one))
    podd.drop('unable', server(podd, 'unable', two))
    const before = [await podd.untilReady('able'), await podd.untilReady('unable')]
    podd.drop('able', server(podd, 'able', two))
    podd.drop('unable', server(podd, 'unable', one, missing))
    await podd.untilNote(/able\.yaml.*keeps running.*that of default\/unable cannot start.*absent/u)
    await podd.untilNote(/unable\.yaml.*keeps running.*absent/u)
    const after = [await podd.untilReady('able'), await podd.untilReady('unable')]
    expect(after.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid))
    await untilServed(
      podd,
      new Map([
        [one, 'able'],
        [two, 'unable'],
      ]),
    )

    // As soon as it can, both go.
    podd.drop('unable', server(podd, 'unable', one))
    await untilServed(
      podd,
      new Map([
        [two, 'able'],
        [one, 'unable'],
      ]),
    )
  })
})
