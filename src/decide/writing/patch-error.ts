import { PoddError } from '../../base/errors.ts'

/** A patch that is not well-formed, or can't be applied to the object. */
export class PatchError extends PoddError {
  constructor(message: string) {
    super('PATCH_NOT_APPLICABLE', message)
  }
}
