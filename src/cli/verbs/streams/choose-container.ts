import type { PodObject } from '../../../api/resource.ts'
import { PoddError } from '../../../base/errors.ts'
import {
  annotatedContainer,
  containerNames,
  firstContainer,
  namesOfAll,
} from '../../arguments/default-container.ts'

/** The annotation's, else the first, as kubectl chooses. Throws PoddError for an annotation that names none. */
export function chooseContainer(pod: PodObject, notify: (line: string) => void): string {
  const annotated = annotatedContainer(pod)
  if (annotated === undefined) return firstContainer(pod, notify)
  const lists = ['containers', 'initContainers', 'ephemeralContainers'] as const
  if (lists.some((list) => containerNames(pod, list).includes(annotated))) return annotated
  throw new PoddError(
    'CONTAINER_NOT_FOUND',
    `container ${annotated} is not valid for pod ${pod.metadata.name} out of: ${namesOfAll(pod).join(', ')}`,
    { hint: "The pod's annotation kubectl.kubernetes.io/default-container names it; -c names another." },
  )
}
