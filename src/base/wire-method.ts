/** One RPC on the wire. */
export interface WireMethod<Request = object, Reply = object> {
  /** `/runtime.v1.RuntimeService/Version` */
  readonly path: string
  readonly requestSerialize: (request: Request) => Buffer
  readonly responseDeserialize: (bytes: Buffer) => Reply
}
