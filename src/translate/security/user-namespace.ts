import type { IDMappingInput, UserNamespaceInput } from '../../cri-types/cri-v1.ts'

/** The users, and groups, of the host that a pod's own are mapped to, from its root on. */
export interface UserRange {
  readonly firstId: number
  readonly length: number
}

export function idMappings({ firstId, length }: UserRange): readonly IDMappingInput[] {
  return [{ hostId: firstId, containerId: 0, length }]
}

/** A user namespace of the pod's own (`pkg/kubelet/userns/userns_manager.go`, GetOrCreateUserNamespaceMappings, 1.36). */
export function userNamespace(range: UserRange): UserNamespaceInput {
  return { mode: 'POD', uids: idMappings(range), gids: idMappings(range) }
}
