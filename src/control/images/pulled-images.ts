import type { Clock } from '../../base/clock.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { Semaphore } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { PullCredential } from '../../decide/images/keyring.ts'
import {
  addWhileReadingLimit,
  mergeImported,
  mergePulledRecord,
  settlePulls,
  accessName,
  verifyImageAccess,
} from '../../decide/images/pulled-record.ts'
import type { PulledRecord, UsedCredential, VerificationRules } from '../../decide/images/pulled-record.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import type { ImageService } from '../../runtime/cri-runtime.ts'
import type { LoadedPulls, PullIntent, PullRecordStore } from '../../store/pull-records.ts'

/** The outcome of a pull. */
export type PullOutcome =
  | { readonly kind: 'pulled'; readonly used: UsedCredential }
  | { readonly kind: 'failed' }
  /** The runtime has not answered: it may have the image. */
  | { readonly kind: 'unknown' }

interface PulledImagesEnv {
  readonly store: Pick<
    PullRecordStore,
    'load' | 'isUnreadable' | 'saveRecord' | 'removeRecord' | 'saveIntent' | 'removeIntent' | 'putAside'
  >
  readonly calls: Pick<ImageService, 'imageStatus' | 'listImages'>
  readonly rules: VerificationRules
  readonly clock: Clock
  readonly logger: Logger
}

type ListedImage = Pick<cri.Image, 'id' | 'repoTags' | 'repoDigests'>

interface Records {
  readonly byRef: Map<string, PulledRecord>
  /** By image, as pods name it. */
  readonly intents: Map<string, PullIntent>
  readonly loaded: LoadedPulls
}

/**
 * Which images podd has pulled, and with which credentials: a pod may use one that is on the machine only where its own
 * credentials fit (`pkg/kubelet/images/pullmanager/image_pull_manager.go`, 1.36). The one writer of these records. Where
 * they cannot be read, credentials are verified.
 */
export class PulledImages {
  readonly #env: PulledImagesEnv
  readonly #turn = new Semaphore(1)
  /** Pulls in flight, by image. */
  readonly #begun = new Map<string, number>()
  /** By image, when its record or its intent was saved, counted in saves. */
  readonly #savedAt = new Map<string, number>()
  #saves = 0
  #records: Records | undefined

  constructor(env: PulledImagesEnv) {
    this.#env = env
  }

  /**
   * Whether a pod may use an image that is on the machine without a pull.
   * @param credentials those of the pod's own Secrets that fit the image
   */
  async mayUse(image: string, imageRef: string, credentials: readonly PullCredential[]): Promise<boolean> {
    const { rules, store } = this.#env
    if (rules.policy === 'NeverVerify') return true
    return this.#turn.run(async () => {
      const records = await this.#load()
      const record = records?.byRef.get(imageRef)
      const intent = records?.intents.get(image)
      // A pull that brings what was there before it changes nothing until it has succeeded.
      const isBegun = intent === undefined ? this.#begun.has(image) : intent.presentRef !== imageRef
      const maybePulled = records === undefined || isBegun || store.isUnreadable(imageRef, records.loaded)
      const verdict = verifyImageAccess(rules, image, { maybePulled, record }, credentials)
      if (verdict.kind === 'must-pull') return false
      if (verdict.remember !== undefined) await this.#note(image, imageRef, verdict.remember)
      return true
    })
  }

  /** Records on disk that a pull is about to begin. Throws PoddError where that fails: then it must not begin. */
  async begin(image: string): Promise<void> {
    await this.#turn.run(async () => {
      // Before the intent is among what an earlier podd left.
      const records = await this.#load()
      const intent = records?.intents.get(image) ?? (await this.#intend(image))
      try {
        await this.#env.store.saveIntent(intent)
      } catch (error) {
        throw new PoddError('RECORD_WRITE', `failed to record image pull intent: ${errorMessage(error)}`, {
          cause: error,
        })
      }
      records?.intents.set(image, intent)
      this.#markSaved(image)
      this.#begun.set(image, (this.#begun.get(image) ?? 0) + 1)
    })
  }

  /** Records on disk the outcome of a pull that was begun. A failed write is logged, and credentials are verified then. */
  async end(image: string, outcome: PullOutcome): Promise<void> {
    await this.#turn.run(async () => {
      try {
        if (outcome.kind === 'pulled') {
          const asNamed = { image, userSpecifiedImage: image }
          const { image: found } = await this.#env.calls.imageStatus({ image: asNamed })
          if (found !== null) await this.#save(image, found.id, outcome.used)
        }
        await this.#endIntent(image, outcome.kind !== 'unknown')
      } catch (error) {
        this.#env.logger.error({ image, err: error }, 'cannot record how an image was pulled')
        await this.#endIntent(image, false)
      }
    })
  }

  /**
   * Records on disk that these images were imported: all pods may use them, however they were pulled before. Never
   * rejects: what cannot be written is logged.
   */
  async noteImported(images: readonly string[]): Promise<void> {
    await this.#turn.run(async () => {
      const records = await this.#load()
      for (const image of images) {
        try {
          const { image: found } = await this.#env.calls.imageStatus({ image: { image } })
          if (found === null) continue
          const before = records?.byRef.get(found.id)
          const name = accessName(image) ?? image
          const record = mergeImported(before, { imageRef: found.id, name }, this.#env.clock.wallMs())
          if (record !== before) await this.#replace(before, record)
          for (const intended of records?.intents.keys() ?? [])
            if (!this.#begun.has(intended) && normalizeImageName(intended) === normalizeImageName(image))
              await this.#dropIntent(intended)
        } catch (error) {
          this.#env.logger.warn({ image, err: error }, 'cannot record that an image was imported')
        }
      }
    })
  }

  /** Whether a pull has brought the image that has this name, or may have, or is in flight. Throws the runtime's error. */
  async mayHavePulled(image: string): Promise<boolean> {
    return this.#turn.run(async () => {
      const records = await this.#load()
      if (records === undefined) return true
      const wanted = normalizeImageName(image)
      const isWanted = (name: string): boolean => normalizeImageName(name) === wanted
      if ([...this.#begun.keys(), ...records.intents.keys()].some(isWanted)) return true
      const { image: found } = await this.#env.calls.imageStatus({ image: { image } })
      const access = found === null ? undefined : records.byRef.get(found.id)?.access
      return access !== undefined && Object.hasOwn(access, accessName(image) ?? image)
    })
  }

  /** To be taken before the images are listed that `prune` gets. */
  get mark(): number {
    return this.#saves
  }

  /**
   * Forgets images that the runtime no longer has, and pulls of unknown end that have left none; not those that were
   * pulled since the mark. Never rejects.
   */
  async prune(images: readonly ListedImage[], mark: number): Promise<void> {
    await this.#turn.run(async () => {
      const records = await this.#load()
      const imageRefs = new Set(images.map(({ id }) => id))
      try {
        for (const image of await this.#settleIntents(images, mark)) await this.#dropIntent(image)
      } catch (error) {
        this.#env.logger.warn({ err: error }, 'cannot settle image pulls of unknown end')
      }
      for (const imageRef of records?.byRef.keys() ?? []) {
        if (imageRefs.has(imageRef) || (this.#savedAt.get(imageRef) ?? 0) > mark) continue
        try {
          await this.#env.store.removeRecord(imageRef)
          records?.byRef.delete(imageRef)
          this.#savedAt.delete(imageRef)
        } catch (error) {
          this.#env.logger.warn({ id: imageRef, err: error }, 'cannot remove the record of an image')
        }
      }
    })
  }

  async #endIntent(image: string, isOver: boolean): Promise<void> {
    const left = (this.#begun.get(image) ?? 1) - 1
    if (left > 0) this.#begun.set(image, left)
    else this.#begun.delete(image)
    this.#markSaved(image)
    if (left <= 0 && isOver) await this.#dropIntent(image)
  }

  async #dropIntent(image: string): Promise<void> {
    await this.#env.store.removeIntent(image)
    this.#records?.intents.delete(image)
    this.#savedAt.delete(image)
  }

  /** What is there before a pull; where the runtime does not say, it counts as nothing. */
  async #intend(image: string): Promise<PullIntent> {
    try {
      const { image: found } = await this.#env.calls.imageStatus({ image: { image } })
      return found === null ? { image } : { image, presentRef: found.id }
    } catch (error) {
      this.#env.logger.debug({ image, err: error }, 'cannot tell which image a pull may replace')
      return { image }
    }
  }

  /** As `#save`; a failure is logged. */
  async #note(image: string, imageRef: string, used: UsedCredential): Promise<void> {
    const secrets = this.#records?.byRef.get(imageRef)?.access[accessName(image) ?? '']?.secrets ?? []
    if (secrets.length >= addWhileReadingLimit) return
    try {
      await this.#save(image, imageRef, used)
    } catch (error) {
      this.#env.logger.warn({ image, err: error }, 'cannot record which Secret fits an image')
    }
  }

  async #save(image: string, imageRef: string, used: UsedCredential): Promise<void> {
    const before = (await this.#load())?.byRef.get(imageRef)
    const pull = { imageRef, name: accessName(image) ?? image, used }
    const record = mergePulledRecord(before, pull, this.#env.clock.wallMs())
    if (record !== before) await this.#replace(before, record)
  }

  /** An unreadable file is put aside first. */
  async #replace(before: PulledRecord | undefined, record: PulledRecord): Promise<void> {
    const { store } = this.#env
    const { imageRef } = record
    const records = await this.#load()
    if (records !== undefined && before === undefined && store.isUnreadable(imageRef, records.loaded))
      await store.putAside(imageRef)
    // It counts from now on, whether it can be written or not.
    this.#records?.byRef.set(imageRef, record)
    this.#markSaved(imageRef)
    await this.#env.store.saveRecord(record)
  }

  #markSaved(key: string): void {
    this.#saves += 1
    this.#savedAt.set(key, this.#saves)
  }

  /** Undefined where the records cannot be read for now. */
  async #load(): Promise<Records | undefined> {
    if (this.#records !== undefined) return this.#records
    const { store, logger } = this.#env
    try {
      const loaded = await store.load()
      this.#records = {
        byRef: new Map(loaded.records.map((record) => [record.imageRef, record])),
        intents: new Map(loaded.intents.map((intent) => [intent.image, intent])),
        loaded,
      }
    } catch (error) {
      logger.error({ err: error }, 'cannot read the records of pulled images')
      return undefined
    }
    try {
      if (this.#records.intents.size > 0) {
        // One that has left no image yet may still be carried out by the runtime: see `prune`.
        const { images } = await this.#env.calls.listImages({})
        await this.#settleIntents(images, this.#saves)
      }
    } catch (error) {
      logger.warn({ err: error }, 'cannot settle the image pulls of an earlier podd')
    }
    return this.#records
  }

  /**
   * Settles pulls of unknown end that were begun before the mark: where they brought an image, it was pulled, and it is
   * not known with what. One that was there before, and one that was imported, stays what it was.
   * @returns the images of those that have left none
   */
  async #settleIntents(images: readonly ListedImage[], mark: number): Promise<readonly string[]> {
    const due = [...(this.#records?.intents.values() ?? [])].filter(
      ({ image }) => !this.#begun.has(image) && (this.#savedAt.get(image) ?? 0) <= mark,
    )
    const settled = settlePulls(due, images)
    for (const { image, imageRef, isBrought } of settled) {
      if (imageRef === undefined) continue
      const isImported = this.#records?.byRef.get(imageRef)?.imported?.includes(accessName(image) ?? image)
      if (isBrought && isImported !== true) await this.#save(image, imageRef, undefined)
      await this.#dropIntent(image)
    }
    return settled.flatMap(({ image, imageRef }) => (imageRef === undefined ? [image] : []))
  }
}
