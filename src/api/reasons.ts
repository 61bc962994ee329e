/** Kubernetes' reasons of the API's errors, by HTTP status code. */
export const apiReasons = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  408: 'Timeout',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  431: 'RequestHeaderFieldsTooLarge',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
} as const

export type ApiReason = (typeof apiReasons)[keyof typeof apiReasons]

/** Undefined for what no podd of this version answers. */
export function parseApiReason(text: string): ApiReason | undefined {
  if (text === 'AlreadyExists') return 'Conflict'
  return Object.values(apiReasons).find((reason) => reason === text)
}
