/** The node jobs that have podd listen at a port, by the option that asks for it. */
export const listenJobs = { 'api.listen': 'listen-api', readOnlyPort: 'listen-read-only' } as const

/** An option that has podd listen at a port. */
export type PortOption = keyof typeof listenJobs
