import { PoddError } from '../../base/errors.ts'
import type { PoddErrorOptions } from '../../base/errors.ts'

/** The embedded containerd could not be set up, started, or cleaned away (`EMBEDDED_CONTAINERD`). */
export class EmbeddedContainerdError extends PoddError {
  constructor(message: string, options: PoddErrorOptions = {}) {
    super('EMBEDDED_CONTAINERD', message, options)
  }
}
