import { refuseProxied } from '../requests/refuse-foreign-site.ts'
import { jsonResponse } from '../requests/api-request.ts'
import type { ApiResponse } from '../requests/api-request.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { readTarget } from '../requests/route.ts'
import type { Call, Route } from '../requests/route.ts'
import { findRunningPod } from './pod-target.ts'

/** The routes of HTTP servers in pods, below the pod's path. */
export function proxyRoutes({ resources }: Pick<ApiReaders, 'resources'>): readonly Route[] {
  const handle = async (call: Call): Promise<ApiResponse> => {
    const { request, names } = call
    refuseProxied(request)
    const [namespace = '', text = ''] = names
    const { pathname, search } = readTarget(request.target)
    const { parseProxyName, proxyAddress } = await import('./proxy-target.ts')
    const name = parseProxyName(text)
    const pod = findRunningPod(resources.pods.reader, namespace, name.name)
    const address = proxyAddress(pod, name)
    // With its escapes, as the server in the pod reads them.
    const segments = pathname.split('/')
    const base = segments.slice(0, ownSegments).join('/')
    const rest = segments.slice(ownSegments).join('/')
    if (segments.length === ownSegments && request.method === 'GET')
      return { ...jsonResponse({}, 301), headers: { location: `${base}/${search}` } }
    const { proxyRequest } = await import('./proxy-request.ts')
    return proxyRequest(request, { scheme: name.scheme, ...address, path: `/${rest}${search}`, base })
  }
  return (['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) => ({
    method,
    pattern: '/api/v1/namespaces/*/pods/*/proxy/**',
    needsPods: true,
    handle,
  }))
}

/** `/api/v1/namespaces/NS/pods/NAME/proxy`, with the empty one before the first slash. */
const ownSegments = 8
