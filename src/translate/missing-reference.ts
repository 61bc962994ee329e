import { PoddError } from '../base/errors.ts'

/**
 * A pod refers to an object, a key or a file that isn't there; in the kubelet's words. A container waits
 * with CreateContainerConfigError, a volume with a FailedMount event, until it comes.
 */
export class MissingReference extends PoddError {
  constructor(message: string, hint?: string) {
    super('REFERENCE_MISSING', message, { hint })
  }
}
