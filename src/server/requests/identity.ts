/** The identity of a client, as the listener determined it. */
export interface Identity {
  readonly name: string
  readonly groups: readonly string[]
  /** Known by a token in the request, which a browser doesn't send by itself, as it does a certificate. */
  readonly byToken?: true
}

const masters = 'system:masters'

/** A client on the unix socket, which has mode 0600. */
export const root: Identity = { name: 'root', groups: [masters] }

/** A client with neither a certificate nor a token. */
export const anonymous: Identity = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

/** The group of all identified clients. */
export const authenticatedGroup = 'system:authenticated'

/** Whether this identity may do everything. */
export function mayDoAll({ groups }: Identity): boolean {
  return groups.includes(masters)
}

export function isAnonymous({ groups }: Identity): boolean {
  return !groups.includes(authenticatedGroup) && !groups.includes(masters)
}
