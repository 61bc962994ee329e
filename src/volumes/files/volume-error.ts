import { PoddError } from '../../base/errors.ts'

/**
 * A volume could not be set up or taken down. `VOLUME_SETUP`: the pod waits with a FailedMount event and podd
 * tries again; `VOLUME_TEARDOWN`: something on the host still holds it.
 */
export class VolumeError extends PoddError {
  constructor(code: 'VOLUME_SETUP' | 'VOLUME_TEARDOWN', message: string, cause?: unknown, hint?: string) {
    super(code, message, { cause, hint })
  }
}
