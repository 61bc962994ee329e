import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.ts'
import type { SourceSnapshot } from '../../../src/pod/objects/document.ts'
import { podKey } from '../../../src/pod/values/ids.ts'
import type { Source } from '../../../src/sources/source.ts'
import { slowness } from '../../support/slowness.ts'

/** A manifest of one pod. */
export function podYaml(name: string, image = 'busybox:1.36'): string {
  return `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: main\n    image: ${image}\n`
}

/** What a snapshot comes to: `name=image` of its pods, and its problems' places and messages. */
export function summarize(snapshot: SourceSnapshot): { pods: string[]; problems: string[] } {
  return {
    pods: snapshot.pods.map(
      ({ pod }) =>
        `${podKey(pod.metadata).replace('default/', '')}=${pod.spec.containers.map((container) => container.image).join(',')}`,
    ),
    problems: snapshot.problems.map((problem) => problem.message),
  }
}

/** Runs a source and lets a test wait for what it yields. */
export class SourceRun {
  readonly snapshots: { readonly snapshot: SourceSnapshot; readonly atMs: number }[] = []
  readonly #stop = new AbortController()
  readonly #done: Promise<void>
  #knock: () => void = () => undefined

  constructor(source: Source) {
    this.#done = source.run((snapshot) => {
      this.snapshots.push({ snapshot, atMs: performance.now() })
      this.#knock()
    }, this.#stop.signal)
  }

  last(): SourceSnapshot | undefined {
    return this.snapshots.at(-1)?.snapshot
  }

  /** Resolves when the newest snapshot is one that says all there is. */
  async untilReady(): Promise<void> {
    await this.until(() => this.last()?.ready === true)
  }

  /** Resolves with the time of the first snapshot, from now on or the newest so far, that passes. */
  async until(passes: (summary: ReturnType<typeof summarize>) => boolean, timeoutMs = 5000): Promise<number> {
    const deadlineMs = performance.now() + timeoutMs * slowness
    for (;;) {
      const newest = this.snapshots.at(-1)
      if (newest !== undefined && passes(summarize(newest.snapshot))) return newest.atMs
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) {
        throw new Error(
          `no such snapshot; the newest: ${JSON.stringify(newest && summarize(newest.snapshot))}`,
        )
      }
      await new Promise<void>((resolve) => {
        const timer = systemClock.startTimer(leftMs, resolve)
        this.#knock = () => {
          timer.cancel()
          resolve()
        }
      })
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#done
  }
}

/** A fresh directory under the system's temp directory, and the way to remove it. */
export async function makeScratch(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'podd-source-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
