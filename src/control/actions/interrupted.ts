import { PoddError } from '../../base/errors.ts'

/** Thrown into a pass to end its waits. */
export class Interrupted extends PoddError {
  constructor() {
    super('INTERRUPTED', 'the pod has more urgent work')
  }
}

/** Thrown by a pass whose view of the runtime is outdated: the pod is read again at once. */
export class OutdatedView extends Interrupted {}
