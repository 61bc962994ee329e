import type { DockerConfig } from '../../decide/images/keyring.ts'
import type { ProviderResponse } from '../../decide/images/provider-config.ts'

interface Cached {
  readonly config: DockerConfig
  readonly untilMs: number
}

/** No registry and no image has this name. */
const globalKey = '<global>'

/** The most responses that are cached; those that expire first are dropped first. */
const maxEntries = 1000

/**
 * Caches a plugin's responses for as long as they say: for an image, a registry, or all images
 * (`pkg/credentialprovider/plugin/plugin.go`, 1.36). Times are on one clock of the caller's.
 */
export class ProviderCache {
  readonly #entries = new Map<string, Cached>()

  find(image: string, nowMs: number): DockerConfig | undefined {
    for (const [key, { untilMs }] of this.#entries) if (nowMs > untilMs) this.#entries.delete(key)
    for (const key of [image, registryOf(image), globalKey]) {
      const found = this.#entries.get(key)
      if (found !== undefined) return found.config
    }
    return undefined
  }

  add(image: string, response: ProviderResponse, defaultMs: number, nowMs: number): void {
    const cacheMs = response.cacheMs ?? defaultMs
    if (cacheMs === 0) return
    const key = keyOf(response, image)
    this.#entries.set(key, { config: response.config, untilMs: nowMs + cacheMs })
    if (this.#entries.size <= maxEntries) return
    const [first] = [...this.#entries].sort(([, a], [, b]) => a.untilMs - b.untilMs)
    if (first !== undefined) this.#entries.delete(first[0])
  }
}

function keyOf({ cacheKeyType }: ProviderResponse, image: string): string {
  switch (cacheKeyType) {
    case 'Image':
      return image
    case 'Registry':
      return registryOf(image)
    case 'Global':
      return globalKey
  }
}

/** With its port. */
function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? image
}
