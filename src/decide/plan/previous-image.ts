import type { ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerHistory } from '../../pod/state/pod-record.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ContainerView } from './container-view.ts'
import type { PodAction } from './pod-action.ts'
import { activeHold, containerHold, previousImageHold } from './hold.ts'
import type { PodFacts } from './pod-facts.ts'
import { isRestartableInit, shouldRestart } from './restart-policy.ts'

/**
 * The spec that an exited or stopping container is restarted with while the new image of its changed manifest is not
 * present: its own, with the previous image. This applies to a container that ran when its manifest was changed, and to
 * any other once the new image can't be pulled. Undefined if it had no other image, or if that was removed too. (The
 * kubelet does not run it until the new image is present. On an unattended host, the previous version is better than
 * none.)
 */
export function withPreviousImage(
  facts: Pick<PodFacts, 'pod' | 'history' | 'containerFacts' | 'holds' | 'nowMs'>,
  spec: ContainerSpec,
  view: ContainerView,
): ContainerSpec | undefined {
  const { name, image } = spec
  const history = facts.history[name]
  const had = previousImage(view, history)
  if (had === undefined || had === image || facts.containerFacts[name]?.imageReady === true) return undefined
  if (activeHold(facts, previousImageHold(name)) !== undefined) return undefined
  const hold = activeHold(facts, containerHold(name))
  const isStopped = view.kind === 'live' && view.container.state !== 'created'
  const isAwaited = history?.awaitedImage === image && !hasCompleted(facts, spec, view)
  const goesOn = hold === undefined ? isStopped || isAwaited : hold.image === image
  return goesOn ? { ...spec, image: had, imagePullPolicy: 'Never' } : undefined
}

/** The image of the newest container that has run. */
function previousImage(view: ContainerView, history: ContainerHistory | undefined): string | undefined {
  if (view.kind === 'none') return undefined
  if (view.kind === 'ended') return view.end.image
  return view.container.state === 'created' ? history?.ended?.image : view.container.image
}

/** Whether it has completed, so that it no longer waits for an image. */
function hasCompleted({ pod }: Pick<PodFacts, 'pod'>, spec: ContainerSpec, view: ContainerView): boolean {
  if (view.kind !== 'ended' || view.end.exitCode !== 0) return false
  const runsOnce = pod.spec.initContainers.some(({ name }) => name === spec.name) && !isRestartableInit(spec)
  return runsOnce || !shouldRestart(pod.spec, spec, 0)
}

/** By container: the image that it will run without after these actions; undefined where it no longer waits for one. */
export function selectAwaitedImages(
  actions: readonly PodAction[],
  { containers }: Pick<ObservedPod, 'containers'>,
): readonly (readonly [container: string, image: string | undefined])[] {
  return actions.flatMap((action) => {
    if (action.kind === 'start-container') return [[action.spec.name, action.awaitedImage] as const]
    if (action.kind !== 'fetch-image') return []
    const { name, image } = action.spec
    const isNew = containers.find((container) => container.name === name)?.image !== image
    return [[name, isNew ? image : undefined] as const]
  })
}
