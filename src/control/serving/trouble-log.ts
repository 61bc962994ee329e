import { isDrained } from '../../api/pod-summary.ts'
import type { PodObject } from '../../api/resource.ts'
import type { Logger } from '../../base/logger.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { ResourceStore } from './resource-store.ts'

/** What a container waits for while it goes well. */
const usualReasons: readonly string[] = ['ContainerCreating', 'PodInitializing']

/**
 * Logs what is wrong with manifests and pods, once each: an error of a manifest again where it was mended meanwhile, a
 * container that does not run again where its reason or its image is another one. Without messages of containers, which may hold
 * anything.
 */
export class TroubleLog {
  readonly #logger: Logger
  #problems: ReadonlySet<string> = new Set()
  /** By pod, what was logged of it: that it failed (empty), and what its containers wait for, by image. */
  readonly #pods = new Map<string, Set<string>>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /**
   * Takes all errors that there are now in manifests.
   * @param sources the places of sources: that one can't be read, it logs itself
   */
  noteProblems(problems: readonly Problem[], sources: ReadonlySet<string>): void {
    const before = this.#problems
    const now = new Set<string>()
    for (const { severity, place, message, field, object } of problems) {
      if (severity !== 'error') continue
      if (sources.has(place.path) && place.line === undefined && object === undefined) continue
      const key = JSON.stringify([place.path, object, field, message])
      if (!before.has(key) && !now.has(key)) {
        const at = place.line === undefined ? place.path : `${place.path}:${place.line}`
        const reason = field === undefined ? message : `${field}: ${message}`
        this.#logger.error(
          { path: at, ...(object !== undefined && { pod: object }), reason },
          'a manifest is not followed',
        )
      }
      now.add(key)
    }
    this.#problems = now
  }

  /** Follows what is shown of pods from now on. */
  follow(pods: Pick<ResourceStore<PodObject>, 'subscribe'>): void {
    pods.subscribe(({ type, object }) => {
      if (type === 'DELETED') this.#pods.delete(object.metadata.uid)
      else this.#notePod(object)
    })
  }

  #notePod(object: PodObject): void {
    const {
      metadata: { uid, namespace, name },
      status,
    } = object
    // Somebody shuts the host down, or drains it.
    if (isDrained(object) || status.reason === 'NodeShutdown') return
    const { phase, reason, initContainerStatuses = [], containerStatuses = [] } = status
    const told = this.#pods.get(uid) ?? new Set<string>()
    this.#pods.set(uid, told)
    const pod = `${namespace}/${name}`
    if (phase === 'Failed' && !told.has('')) {
      told.add('')
      this.#logger.warn({ pod, uid, reason: reason ?? 'a container failed' }, 'a pod failed')
    }
    for (const { name: container, image, state, lastState } of [
      ...initContainerStatuses,
      ...containerStatuses,
    ]) {
      const why = state.waiting?.reason
      const key = `${container} ${why} ${image}`
      if (why === undefined || usualReasons.includes(why) || told.has(key)) continue
      told.add(key)
      const { exitCode } = lastState.terminated ?? {}
      const ended = exitCode === undefined ? {} : { exitCode }
      this.#logger.warn({ pod, uid, container, reason: why, ...ended }, 'a container does not run')
    }
  }
}
