import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spreadOf } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

/** The first call for a pod: whether its image is there. */
const firstCall = /^trace ([\d.]+) sending (?:ImageStatus|RunPodSandbox)$/mu
const mostRenameMs = 20
const mostPushMs = 30
const reference = new URL('../examples/source-server.ts', import.meta.url).pathname

/**
 * From the rename of a manifest, and from its publication on the reference server, to the first CRI call. What
 * podd prints with PODD_TRACE=1 is on the same clock.
 */
export async function benchPublish(podd: PoddUnderTest, rounds: number): Promise<readonly Figure[]> {
  const served = join(podd.directory, 'served')
  mkdirSync(served)
  publish(served, 'pods.json', { apiVersion: 'v1', kind: 'List', items: [] })
  const server = spawn(process.execPath, [reference, served, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line]: Buffer[] = await once(server.stdout, 'data')
    const [, port] = /port: (\d+)/u.exec(String(line)) ?? []
    await podd.stop()
    const url = `http://127.0.0.1:${port}/pods.json`
    await podd.start({ flags: ['--manifest-url', url], env: { PODD_TRACE: '1' } })
    const renamed = await measure(podd, rounds, {
      publish: (pod) => publish(podd.manifests, 'publish.json', pod),
      withdraw: () => podd.remove('publish'),
    })
    const pushed = await measure(podd, rounds, {
      publish: (pod) => publish(served, 'pods.json', pod),
      withdraw: () => publish(served, 'pods.json', { apiVersion: 'v1', kind: 'List', items: [] }),
    })
    return [
      {
        name: 'renamed manifest to first CRI call',
        unit: 'ms',
        podd: spreadOf(renamed),
        atMost: mostRenameMs,
      },
      { name: 'push to first CRI call', unit: 'ms', podd: spreadOf(pushed), atMost: mostPushMs },
    ]
  } finally {
    server.kill()
  }
}

interface Publisher {
  readonly publish: (pod: object) => void
  readonly withdraw: () => void
}

async function measure(
  podd: PoddUnderTest,
  rounds: number,
  { publish: give, withdraw }: Publisher,
): Promise<readonly number[]> {
  const took: number[] = []
  const pod = podManifest('publish', { command: ['sleep', '3600'] })
  for (let round = -2; round < rounds; round += 1) {
    // A server that holds answers back is asked again by now.
    await sleep(150)
    const { size } = statSync(podd.logPath)
    const beganMs = Number(process.hrtime.bigint()) / 1e6
    give(pod)
    await podd.untilRunning(1)
    const log = readFileSync(podd.logPath).subarray(size).toString()
    const calledMs = Number(firstCall.exec(log)?.[1])
    withdraw()
    await podd.untilGone()
    // The first rounds warm up.
    if (round >= 0) took.push(calledMs - beganMs)
  }
  return took
}

/** As `mv` does. */
function publish(directory: string, name: string, document: object): void {
  const path = join(directory, `.${name}.new`)
  writeFileSync(path, JSON.stringify(document))
  renameSync(path, join(directory, name))
}
