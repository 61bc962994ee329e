/** Who asks, as the listener that took the connection knows it. */
export interface Identity {
  readonly name: string
  readonly groups: readonly string[]
}

const masters = 'system:masters'

/** Whoever may open the unix socket, which is of mode 0600. */
export const root: Identity = { name: 'root', groups: [masters] }

/** Who brought neither a certificate nor a token. */
export const anonymous: Identity = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

/** In the groups of all who are known. */
export const authenticatedGroup = 'system:authenticated'

/** Whether this one may do everything. */
export function mayDoAll({ groups }: Identity): boolean {
  return groups.includes(masters)
}

export function isAnonymous({ groups }: Identity): boolean {
  return !groups.includes(authenticatedGroup) && !groups.includes(masters)
}
