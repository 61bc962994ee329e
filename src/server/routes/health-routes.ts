import type { HealthCheck } from '../../decide/node/judge-health.ts'
import { ApiError } from '../requests/api-error.ts'
import type { HealthReader } from '../requests/readers.ts'
import type { ApiResponse } from '../requests/request.ts'
import { get } from '../requests/route.ts'
import type { Call, Route } from '../requests/route.ts'

/**
 * `/healthz`, which is `/livez`, and `/readyz`, and a path below them for each check, in the API server's form
 * (`staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go`, 1.36), but that each failure says why.
 */
export function healthRoutes(health: HealthReader): readonly Route[] {
  return (['healthz', 'livez', 'readyz'] as const).flatMap((name): readonly Route[] => {
    const checks = (): readonly HealthCheck[] =>
      health.checks().filter(({ about }) => about === 'live' || name === 'readyz')
    const routes = [
      get(`/${name}`, ({ query }) => answerAll(name, checks(), query)),
      get(`/${name}/*`, (call) => answerOne(checks(), call)),
    ]
    // Load balancers ask for the head alone.
    return routes.flatMap((route): readonly Route[] => [route, { ...route, method: 'HEAD' }])
  })
}

/** `?verbose` names the checks that pass too; `?exclude=NAME` leaves one out. */
function answerAll(name: string, checks: readonly HealthCheck[], query: URLSearchParams): ApiResponse {
  const excluded = new Set(query.getAll('exclude'))
  const isFailing = checks.some((check) => check.failure !== undefined && !excluded.has(check.name))
  if (!isFailing && !query.has('verbose')) return text('ok')
  const lines = checks.map((check) =>
    excluded.has(check.name) ? `[+]${check.name} excluded: ok` : line(check),
  )
  const known = new Set<string>(checks.map((check) => check.name))
  const unknown = [...excluded].filter((other) => !known.has(other)).toSorted()
  if (unknown.length > 0) {
    const names = unknown.map((other) => JSON.stringify(other)).join(', ')
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`)
  }
  const result = `${name} check ${isFailing ? 'failed' : 'passed'}`
  return text(`${[...lines, result].join('\n')}\n`, isFailing ? 500 : 200)
}

function answerOne(checks: readonly HealthCheck[], { names: [wanted = ''] }: Call): ApiResponse {
  const check = checks.find((other) => other.name === wanted)
  if (check === undefined)
    throw new ApiError(404, 'the server could not find the requested resource', undefined, {})
  return check.failure === undefined ? text('ok') : text(`internal server error: ${check.failure}\n`, 500)
}

function line({ name, failure }: HealthCheck): string {
  return failure === undefined ? `[+]${name} ok` : `[-]${name} failed: ${failure}`
}

function text(body: string, status = 200): ApiResponse {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}
