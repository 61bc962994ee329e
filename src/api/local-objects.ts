/** The metadata common to all objects that pods refer to. */
export interface LocalObjectMeta {
  readonly name: string
  readonly namespace: string
  /** Follows from the kind, the name and the source: the same after a restart of podd. */
  readonly uid: string
  readonly resourceVersion?: string
  /** Of an object without a record: when podd first showed it since it started. */
  readonly creationTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  /** The manifest's, and `podd.dev/source`, `podd.dev/path`. */
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * A ConfigMap or Secret. In podd's own form of a Secret (below /podd/v1) each value is only how long it is (`<7 bytes>`).
 */
export interface ConfigObject {
  readonly apiVersion: 'v1'
  readonly kind: 'ConfigMap' | 'Secret'
  readonly metadata: LocalObjectMeta
  /** Of Secrets. */
  readonly type?: string
  readonly immutable?: boolean
  /** Text in a ConfigMap, base64 in a Secret; absent where there is none. */
  readonly data?: Readonly<Record<string, string>>
  /** Of ConfigMaps: base64. */
  readonly binaryData?: Readonly<Record<string, string>>
}

/** A claim: given by a document, or known only by its remaining directory. */
export interface ClaimObject {
  readonly apiVersion: 'v1'
  readonly kind: 'PersistentVolumeClaim'
  readonly metadata: LocalObjectMeta
  readonly spec?: {
    readonly accessModes: readonly string[]
    readonly resources: { readonly requests: Readonly<Record<string, string>> }
    readonly storageClassName: 'podd-local'
    readonly volumeMode?: 'Filesystem'
    /** Once it is bound. */
    readonly volumeName?: string
  }
  readonly status: {
    /** Pending: no pod has needed it yet. Released: it has data, and no document any more. */
    readonly phase: 'Pending' | 'Bound' | 'Released'
    readonly accessModes?: readonly string[]
    readonly capacity?: { readonly storage: string }
    /** podd's own: the directory, and the size of its content. */
    readonly path: string
    /** As of the last request for claims. */
    readonly usedBytes?: number
  }
}
