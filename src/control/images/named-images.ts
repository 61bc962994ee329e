import type { ImageUse } from '../../decide/node/plan-image-garbage.ts'
import { selectVolumeImages } from '../../pod/schema/default-pod.ts'
import type { SourceSnapshot } from '../../pod/objects/document.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'
import type { ContainerHistory } from '../../pod/state/pod-record.ts'

/** What a pod's worker knows of its images. */
export interface NamingWorker {
  readonly ref: { readonly namespace: string; readonly name: string }
  readonly state: {
    readonly pod: Pod
    readonly observed: { readonly containers: readonly Pick<ObservedContainer, 'image' | 'imageId'>[] }
    readonly record: {
      readonly containers: Readonly<Record<string, Pick<ContainerHistory, 'ended' | 'awaitedImage'>>>
    }
  }
}

/**
 * All images that pods have, had last, or are to have: those of what runs, of what a source wants (in its last good
 * form, where the newest is bad; be it refused, waiting, or fetched for a replacement), and those that a container goes
 * back to while its new image can't be had.
 */
export function listNamedImages(
  workers: Iterable<NamingWorker>,
  snapshots: readonly SourceSnapshot[],
): readonly ImageUse[] {
  return [
    ...snapshots.flatMap(({ pods }) =>
      pods.flatMap(({ pod }) => namedBy(pod, `pod ${nameOf(pod.metadata)}`)),
    ),
    ...[...workers].flatMap((worker) => ofWorker(worker)),
  ]
}

function ofWorker({ ref, state: { pod, observed, record } }: NamingWorker): readonly ImageUse[] {
  const by = `pod ${nameOf(ref)}`
  const images = [
    ...observed.containers.flatMap(({ image, imageId }) => [image, imageId]),
    ...Object.values(record.containers).flatMap(({ ended, awaitedImage }) => [
      ended?.image,
      ended?.imageId,
      awaitedImage,
    ]),
  ]
  return [
    ...namedBy(pod, by),
    ...images.flatMap((image) => (image === undefined || image === '' ? [] : [{ image, by }])),
  ]
}

function namedBy(pod: Pod, by: string): readonly ImageUse[] {
  return listPodImages(pod).map((image) => ({ image, by }))
}

/** The images that a manifest names. */
export function listPodImages({ spec }: Pod): readonly string[] {
  const wanted = [...spec.initContainers, ...spec.containers, ...selectVolumeImages(spec.volumes)]
  return wanted.map(({ image }) => image)
}

function nameOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`
}
