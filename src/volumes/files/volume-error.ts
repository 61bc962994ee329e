import { PoddError } from '../../base/errors.ts'

/**
 * A volume could not be set up or taken down. `VOLUME_SETUP`: the pod waits with a FailedMount event and podd
 * tries again; `VOLUME_TEARDOWN`: something on the host still holds it.
 */
export class VolumeError extends PoddError {
  /** The path of the host that is missing, where it could be set up with it. */
  readonly awaitedPath: string | undefined

  constructor(
    code: 'VOLUME_SETUP' | 'VOLUME_TEARDOWN',
    message: string,
    cause?: unknown,
    hint?: string,
    awaitedPath?: string,
  ) {
    super(code, message, { cause, hint })
    this.awaitedPath = awaitedPath ?? awaitedPathOf(cause)
  }
}

/** Of a volume's error, or of what was caused by one. */
export function awaitedPathOf(error: unknown): string | undefined {
  if (error instanceof VolumeError) return error.awaitedPath
  return error instanceof Error ? awaitedPathOf(error.cause) : undefined
}
