/** GET /podd/v1/sources: one for each source, in their order. Times are those of Kubernetes' objects. */
export interface SourceObject {
  readonly apiVersion: 'podd.dev/v1'
  readonly kind: 'Source'
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly type: 'Directory' | 'URL'
    /** The directory, or the URL without its credentials. */
    readonly place: string
  }
  readonly status: {
    /** `Following`; `Failing`: it can't be read, and the last good copy stands in for it; `Unread`: there is none. */
    readonly state: 'Following' | 'Failing' | 'Unread'
    /** How changes arrive: told by the file system, found by reading or asking again, held back by the server until there is one. */
    readonly mode: 'watch' | 'poll' | 'push'
    /** Read at least once, or stood in for by its last good copy. */
    readonly ready: boolean
    readonly pods: number
    /** ConfigMaps, Secrets, claims and classes. */
    readonly objects: number
    readonly errors: number
    readonly warnings: number
    /** Of what was read last. */
    readonly hash?: string
    readonly etag?: string
    /** When it was read, or the server answered, last. */
    readonly lastAnswerTime?: string
    /** Why it can't be read. */
    readonly message?: string
    readonly failingSince?: string
    /** The last good copy stands in for the source, or for some of its documents. */
    readonly lastGood: boolean
  }
}
