import type { ChildProcess } from 'node:child_process'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { EventObject } from '../../src/api/resource.ts'
import { checkedImage } from './checked-image.ts'
import { registryProgram, startRegistry } from './loopback-registry.ts'
import type { PoddRig } from './podd-rig.ts'
import { cutPower } from './power-cut.ts'
import type { Moment, Struck } from './seeded-random.ts'
import { shellPod } from './shell-pods.ts'

/** What the power cut falls into. */
interface PowerMoment extends Moment {
  readonly kind: 'quiet' | 'start' | 'change' | 'podd starts' | 'import' | 'pull'
  /** The image that is pulled or imported, and of which archive. */
  readonly image?: string
  readonly archive?: string
}

const check =
  'cd / && if sha256sum -c /sums >/dev/null 2>&1; then say whole; stay; else say damaged; exit 1; fi'

/** Pods that run again after each power cut, once each; and what is on its way to the disk meanwhile. */
export class PowerRounds implements Struck<PowerMoment> {
  readonly #podd: PoddRig
  readonly #hasRegistry: boolean
  readonly #bootMs: number[] = []
  #registry: { readonly child: ChildProcess; readonly address: string } | undefined
  #discarded = 0

  constructor(podd: PoddRig, hasRegistry: boolean) {
    this.#podd = podd
    this.#hasRegistry = hasRegistry
  }

  async open(): Promise<void> {
    const podd = this.#podd
    for (const name of ['one', 'two', 'three'])
      podd.drop(name, shellPod(name, podd.shared, 'say start; stay'))
    podd.drop('changing', shellPod('changing', podd.shared, 'say start; stay'))
    for (const name of ['one', 'two', 'three', 'changing']) await podd.untilReady(name)
    if (this.#hasRegistry) this.#registry = await startRegistry(podd)
    execFileSync('sync', ['--file-system', podd.rootDir])
  }

  close(): void {
    this.#registry?.child.kill('SIGKILL')
  }

  async begin(cut: number): Promise<PowerMoment> {
    const podd = this.#podd
    const kinds: readonly PowerMoment['kind'][] = [
      'import',
      this.#registry === undefined ? 'import' : 'pull',
      'change',
      'import',
      'podd starts',
      this.#registry === undefined ? 'quiet' : 'pull',
      'start',
    ]
    const kind = kinds[cut % kinds.length] ?? 'quiet'
    for (const name of readdirSync(podd.manifests))
      if (name.startsWith('checked')) rmSync(join(podd.manifests, name))
    switch (kind) {
      case 'import': {
        const image = `registry.invalid/power/checked:${cut}`
        const archive = `checked-${cut}.tar`
        this.#dropChecked(cut, image)
        this.#place(archive, image)
        return { kind, image, archive, withinMs: 4000 }
      }
      case 'pull': {
        const image = `${this.#registry?.address ?? ''}/power/checked:${cut}`
        await this.#push(image)
        this.#dropChecked(cut, image)
        return { kind, image, withinMs: 4000 }
      }
      case 'change': {
        const env = [{ name: 'CUT', value: String(cut) }]
        podd.drop('changing', shellPod('changing', podd.shared, 'say start; stay', { container: { env } }))
        return { kind, withinMs: 2000 }
      }
      case 'start':
        podd.drop(`new-${cut}`, shellPod(`new-${cut}`, podd.shared, 'say start; stay'))
        return { kind, withinMs: 2000 }
      case 'podd starts':
        await podd.stopDaemon('SIGKILL')
        podd.launch()
        return { kind, withinMs: 2000 }
      case 'quiet':
        return { kind, withinMs: 1000 }
    }
  }

  async strike(): Promise<void> {
    await cutPower(this.#podd)
  }

  /** Boots, and fails where not all pods run, or one runs twice or on what is damaged. */
  async judge(cut: number, moment: PowerMoment): Promise<void> {
    const podd = this.#podd
    const names = readdirSync(podd.manifests).map((name) => name.replace('.yaml', ''))
    for (const name of names) rmSync(join(podd.shared, name), { force: true })
    const { archive, image } = moment
    // Its name may not have been on the disk yet.
    if (archive !== undefined && image !== undefined && !existsSync(join(podd.rootDir, 'images', archive)))
      this.#place(archive, image)
    await this.#reopenRegistry()
    const beganMs = performance.now()
    await podd.startDaemon()
    for (const name of names) await podd.untilReady(name)
    this.#bootMs.push(performance.now() - beganMs)
    for (const name of names) {
      const words = await podd.untilWords(name, 1)
      expect(words, `what ${name} said`).toEqual([name.startsWith('checked') ? 'whole' : 'start'])
    }
    const { items } = await podd.get<{ readonly items: readonly EventObject[] }>('/api/v1/events')
    this.#discarded += items.filter(({ reason }) => reason === 'ImageDiscarded').length
    expect(items.filter(({ reason }) => reason === 'StateUnreadable')).toEqual([])
    // The disk is small.
    if (archive !== undefined) rmSync(join(podd.rootDir, 'images', archive))
    if (image !== undefined) {
      podd.removeManifest(`checked-${cut}`)
      await podd.untilGone(`checked-${cut}`)
      await podd.cli('images', 'remove', '--force', image)
    }
  }

  /** The cut ended it; its disk is another one. */
  async #reopenRegistry(): Promise<void> {
    const address = this.#registry?.address
    if (address === undefined) return
    const { directory } = this.#podd
    const child = spawn(registryProgram, ['serve', join(directory, 'registry.yml')], { stdio: 'ignore' })
    this.#registry = { child, address }
    await this.#podd.until('the registry', async () => (await fetch(`http://${address}/v2/`)).ok)
  }

  outcome(): string {
    const sorted = this.#bootMs.toSorted((a, b) => a - b).map((ms) => Math.round(ms))
    return `all pods ran again after each power cut, median ${sorted[sorted.length >> 1]} ms, longest ${sorted.at(-1)} ms after podd's start; ${this.#discarded} images were not on the disk and brought again`
  }

  #dropChecked(cut: number, image: string): void {
    const podd = this.#podd
    const container = { image, imagePullPolicy: 'IfNotPresent' }
    podd.drop(`checked-${cut}`, shellPod(`checked-${cut}`, podd.shared, check, { container }))
  }

  /** Puts an archive on the disk, name and content, for podd to import. */
  #place(archive: string, image: string): void {
    const directory = join(this.#podd.rootDir, 'images')
    mkdirSync(directory, { recursive: true })
    const temporary = join(this.#podd.rootDir, 'placed')
    writeFileSync(temporary, checkedImage(image))
    execFileSync('sync', ['--file-system', directory])
    renameSync(temporary, join(directory, archive))
  }

  /** Through podd's containerd, which forgets it again. */
  async #push(image: string): Promise<void> {
    const podd = this.#podd
    const file = join(podd.directory, 'pushed.tar')
    writeFileSync(file, checkedImage(image))
    podd.ctr('images', 'import', '--no-unpack', file)
    podd.ctr('images', 'push', '--plain-http', image)
    podd.ctr('images', 'rm', '--sync', image)
    // CRI hears of it a moment later.
    const tag = image.slice(image.lastIndexOf('/') + 1).replace(':', ' +')
    await podd.until('it gone', async () => !new RegExp(tag, 'u').test(await podd.cliOk('images')))
    rmSync(file)
    execFileSync('sync', ['--file-system', podd.rootDir])
  }
}
