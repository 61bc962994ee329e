import type { PoddRig } from './podd-rig.ts'
import { shellPod } from './shell-pods.ts'

/** Pods that come, run to their end, and go, `atOnce` of them at a time. */
export async function runShortPods(podd: PoddRig, count: number, atOnce: number): Promise<void> {
  let next = 0
  const runOne = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) {
      const name = `short-${number}`
      // Every third one has a volume of its own, and every fifth is ended while it runs.
      const spec = { restartPolicy: 'Never' }
      const volumes = number % 3 === 0 ? [{ name: 'data', emptyDir: {} }] : []
      const mounts = number % 3 === 0 ? [{ name: 'data', mountPath: '/data' }] : []
      const runs = number % 5 === 0
      podd.drop(name, shellPod(name, podd.shared, runs ? 'stay' : 'say done', { spec, volumes, mounts }))
      if (runs) await podd.untilReady(name)
      else await podd.untilPhase(name, 'Succeeded')
      podd.removeManifest(name)
      await podd.untilGone(name)
      podd.removeShared(name)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, runOne))
}
