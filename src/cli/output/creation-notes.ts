import type { PodObject } from '../../api/objects.ts'
import type { ResourceObject } from '../../api/resource.ts'

/** What a container that is being created is shown as. */
const created: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])

/** For what pods wait whose containers are being created: how far the pull of an image is, say. */
export function creationNotes(objects: readonly ResourceObject[]): readonly string[] {
  const notes = objects
    .filter((object) => isPod(object))
    .flatMap(({ metadata: { namespace, name }, status }) =>
      [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap(({ state }) => {
        const { reason = '', message = '' } = state.waiting ?? {}
        return created.has(reason) && message !== '' ? [`${namespace}/${name}: ${message}`] : []
      }),
    )
  return [...new Set(notes)]
}

function isPod(object: ResourceObject): object is PodObject {
  return object.kind === 'Pod'
}
