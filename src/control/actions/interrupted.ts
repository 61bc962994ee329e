import { PoddError } from '../../base/errors.ts'

/** Thrown into a pass to make it let go of its waits. */
export class Interrupted extends PoddError {
  constructor() {
    super('INTERRUPTED', 'the pod has something more urgent to do')
  }
}

/** Thrown by a pass whose view of the runtime doesn't hold any more: the pod is looked at again at once. */
export class OutdatedView extends Interrupted {}
