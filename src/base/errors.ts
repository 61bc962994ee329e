/** Every code of an error that podd raises; docs/ERRORS.md tells what each means. Stable over versions. */
export const errorCodes = [
  'ALREADY_RUNNING',
  'ANSWER_UNREADABLE',
  'API_BadRequest',
  'API_Conflict',
  'API_Expired',
  'API_Forbidden',
  'API_InternalError',
  'API_Invalid',
  'API_MethodNotAllowed',
  'API_NotAcceptable',
  'API_NotFound',
  'API_RequestEntityTooLarge',
  'API_RequestHeaderFieldsTooLarge',
  'API_ServiceUnavailable',
  'API_Timeout',
  'API_TooManyRequests',
  'API_Unauthorized',
  'API_UnsupportedMediaType',
  'ARGUMENTS_TOO_LARGE',
  'ATTACH_FAILED',
  'BAD_CONFIG',
  'BAD_DURATION',
  'BAD_FLAG',
  'BAD_FRAME',
  'BAD_PROXY',
  'CGROUP',
  'CLAIM_IN_USE',
  'CLAIM_NOT_FOUND',
  'CLIENT_GONE',
  'CLOSING',
  'CONFIG_UNREADABLE',
  'CONTAINER_NOT_FOUND',
  'COPY_FAILED',
  'CRASHED',
  'DAEMON_GONE',
  'DAEMON_NOT_RUNNING',
  'DAEMON_SILENT',
  'DAEMON_STUCK',
  'DAEMON_UNKNOWN',
  'DECODE_UNAVAILABLE',
  'DIRECTORY',
  'DRAIN_UNDONE',
  'EMBEDDED_CONTAINERD',
  'EXEC_FAILED',
  'EXPORT_UNSUPPORTED',
  'HOOK_FAILED',
  'HOST_COMMAND',
  'GARBAGE_NOT_COLLECTED',
  'IMAGES_DISK_UNKNOWN',
  'IMAGES_NOT_COLLECTED',
  'IMAGES_NOT_KNOWN',
  'IMAGE_DISK_FULL',
  'IMAGE_EXPORT',
  'IMAGE_IMPORT',
  'IMAGE_IN_USE',
  'IMAGE_NOT_FOUND',
  'IMAGE_PINNED',
  'IMAGE_UNAVAILABLE',
  'IMAGE_VANISHED',
  'IMPORT_UNSUPPORTED',
  'INTERNAL',
  'INTERRUPTED',
  'JSONPATH_FAILED',
  'LOCK_FAILED',
  'LOG_SPACE',
  'LOG_WATCH',
  'MANIFEST_ELSEWHERE',
  'MANIFEST_UNREADABLE',
  'MOUNT_NOT_SHARED',
  'NODE_JOB_DEADLINE',
  'NOTHING_TO_READ',
  'NO_MANIFEST_DIRECTORY',
  'OBJECT_NOT_KEPT',
  'PIN_UNSUPPORTED',
  'PATCH_NOT_APPLICABLE',
  'PLACES_DIFFER',
  'PLACES_UNKNOWN',
  'POD_GONE',
  'POD_HOSTNAME_TOO_LONG',
  'PORT_FORWARD_FAILED',
  'PORT_REFUSED',
  'PULL_STALLED',
  'PULL_UNWANTED',
  'RECORD_WRITE',
  'REFERENCE_MISSING',
  'REPORT_FAILED',
  'RESIZE_BELOW_USAGE',
  'RESTART_REFUSED',
  'ROOT_NEEDED',
  'RUNTIME_API_VERSION',
  'RUNTIME_BAD_REPLY',
  'RUNTIME_ENDPOINT',
  'RUNTIME_EXISTS',
  'RUNTIME_FAILED',
  'RUNTIME_INVALID',
  'RUNTIME_NOT_FOUND',
  'RUNTIME_STALE',
  'RUNTIME_TIMEOUT',
  'RUNTIME_UNAVAILABLE',
  'RUNTIME_UNSUPPORTED',
  'RUN_AS_NON_ROOT',
  'SANDBOX_IMAGE',
  'SOCKET_DENIED',
  'SOCKET_FAILED',
  'SOCKET_PATH_TOO_LONG',
  'SOURCE_FILE',
  'SOURCE_TIMEOUT',
  'SOURCE_URL',
  'STOPPED',
  'SUB_PATH',
  'UNREADABLE',
  'UPGRADE_FAILED',
  'UPGRADE_REFUSED',
  'UPDATE_REFUSED',
  'USAGE',
  'USER_RANGE',
  'VOLUME_SETUP',
  'VOLUME_TEARDOWN',
  'WAIT_FAILED',
  'WAIT_TIMEOUT',
  'WRITE_FAILED',
] as const

export type ErrorCode = (typeof errorCodes)[number]

/** The options of every podd error. */
export interface PoddErrorOptions {
  /** The underlying error, if any. */
  readonly cause?: unknown
  /** What the user can do about it: one sentence, imperative. */
  readonly hint?: string | undefined
}

/**
 * The base of all errors that podd raises on purpose. `code` is stable and stands in docs/ERRORS.md;
 * code may be compared, message text never.
 */
export class PoddError extends Error {
  readonly code: ErrorCode
  readonly hint: string | undefined

  constructor(code: ErrorCode, message: string, options: PoddErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    this.hint = options.hint
  }
}

/** The message of any thrown value, without its hint. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The `code` of any thrown value (`ENOENT`, `RUNTIME_UNAVAILABLE`, …), or undefined. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Whether a system call failed (open, read, mmap, …), as opposed to an error in the data. */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && typeof error.syscall === 'string'
}

/** The codes of a shortage of resources, or of a disk or server that doesn't answer. */
const passingCodes: readonly string[] = [
  'EAGAIN',
  'EBUSY',
  'EINTR',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ESTALE',
  'ETIMEDOUT',
]

/** Whether the same call may succeed later without a change of the host. */
export function mayPass(error: unknown): boolean {
  return isSystemError(error) && passingCodes.includes(errorCode(error) ?? '')
}

/**
 * What a call on the file system gives; undefined where nothing is at its path. Rejects with the system's other errors.
 * @param codes those of nothing; ENOTDIR where the way leads through a file
 */
export async function ifThere<T>(
  call: Promise<T>,
  codes: readonly string[] = ['ENOENT'],
): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (codes.includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}
