/** Who asks, as the listener that took the connection knows it. */
export interface Identity {
  readonly name: string
  readonly groups: readonly string[]
}

const masters = 'system:masters'

/** Whoever may open the unix socket, which is of mode 0600. */
export const root: Identity = { name: 'root', groups: [masters] }

/** Whether this one may do everything; nobody else may do anything yet. */
export function mayDoAll({ groups }: Identity): boolean {
  return groups.includes(masters)
}
