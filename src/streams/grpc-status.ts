/** The codes of gRPC. */
export const Status = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const

/** The status that a call ended with. */
export interface GrpcStatus {
  readonly code: number
  readonly details: string
  /** Whether the server sent it. False where the connection broke, or the answer was cut short. */
  readonly isAnswer: boolean
}

/** An end that the server did not send. */
export function failed(code: number, details: string): GrpcStatus {
  return { code, details, isAnswer: false }
}

/** The gRPC code for an answer of plain HTTP (gRPC's `http-grpc-status-mapping.md`). */
export function statusOfHttp(httpStatus: string): GrpcStatus {
  const codes: Readonly<Record<string, number>> = {
    400: Status.INTERNAL,
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.UNIMPLEMENTED,
    429: Status.UNAVAILABLE,
    502: Status.UNAVAILABLE,
    503: Status.UNAVAILABLE,
    504: Status.UNAVAILABLE,
  }
  const code = codes[httpStatus] ?? Status.UNKNOWN
  return failed(code, `the server answered with HTTP status ${httpStatus}`)
}

/** The gRPC code for a stream that RST_STREAM ends (gRPC's `PROTOCOL-HTTP2.md`, Errors). */
export function statusOfReset(errorCode: number): GrpcStatus {
  const codes: Readonly<Record<number, number>> = {
    7: Status.UNAVAILABLE,
    8: Status.CANCELLED,
    11: Status.RESOURCE_EXHAUSTED,
    12: Status.PERMISSION_DENIED,
  }
  const code = codes[errorCode] ?? Status.INTERNAL
  return failed(code, `the server reset the call with code ${errorCode}`)
}
