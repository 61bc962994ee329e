import type { IncomingMessage, ServerResponse } from 'node:http'
import { execProtocol } from '../api/exec-frames.ts'
import type { EventObject, PodObject } from '../api/objects.ts'
import { forwardProtocol } from '../api/routes.ts'
import { ApiError } from './api-error.ts'
import { imageRoutes } from './image-handlers.ts'
import { objectRoutes } from './object-handlers.ts'
import { readLogQuery } from './log-query.ts'
import type { PodLogs } from './pod-logs.ts'
import { podNotFound } from './pod-target.ts'
import { booleanParam } from './query.ts'
import { readPodMetrics, restartPod } from './reach-handlers.ts'
import type { ApiReaders } from './readers.ts'
import { respondJson, respondList, respondStream } from './respond.ts'
import type { Patience } from './respond.ts'
import { respondWatch } from './respond-watch.ts'
import type { WatchSource } from './respond-watch.ts'
import type { WatchLines } from './watch-lines.ts'

export interface RequestContext extends Patience {
  readonly readers: ApiReaders
  readonly logs: PodLogs
  readonly lines: WatchLines
  /** Ends what is being sent: the client went away, or the server closes. */
  readonly signal: AbortSignal
}

interface Call extends RequestContext {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  /** What the pattern's `*` stood for. */
  readonly names: readonly string[]
}

interface Route {
  readonly method: 'GET' | 'POST'
  /** Segments; `*` stands for any one. */
  readonly pattern: string
  /** Answered before the pods are known, too. */
  readonly isUrgent?: true
  handle(call: Call): void | Promise<void>
}

/** What is served; src/api/routes.ts tells the same in words. */
const routes: readonly Route[] = [
  { method: 'GET', pattern: '/healthz', isUrgent: true, handle: ({ response }) => void response.end('ok') },
  { method: 'GET', pattern: '/api/v1/pods', handle: (call) => sendPods(call, undefined) },
  { method: 'GET', pattern: '/api/v1/namespaces/*/pods', handle: (call) => sendPods(call, call.names[0]) },
  {
    method: 'GET',
    pattern: '/api/v1/namespaces/*/pods/*',
    handle: (call) => respondJson(call.response, findPod(call)),
  },
  { method: 'GET', pattern: '/api/v1/namespaces/*/pods/*/log', handle: sendLog },
  { method: 'POST', pattern: '/api/v1/namespaces/*/pods/*/exec', handle: refuseWithoutUpgrade },
  { method: 'POST', pattern: '/api/v1/namespaces/*/pods/*/portforward', handle: refuseWithoutUpgrade },
  { method: 'GET', pattern: '/api/v1/events', isUrgent: true, handle: (call) => sendEvents(call, undefined) },
  {
    method: 'GET',
    pattern: '/api/v1/namespaces/*/events',
    isUrgent: true,
    handle: (call) => sendEvents(call, call.names[0]),
  },
  {
    method: 'GET',
    pattern: '/podd/v1/status',
    isUrgent: true,
    handle: ({ readers, response }) => respondJson(response, readers.status.daemonStatus()),
  },
  {
    method: 'GET',
    pattern: '/podd/v1/applied',
    handle: ({ readers, response }) => respondJson(response, readers.status.applied()),
  },
  ...imageRoutes,
  { method: 'POST', pattern: '/podd/v1/gc', handle: collectGarbage },
  {
    method: 'GET',
    pattern: '/podd/v1/namespaces/*/pods/*/probes',
    handle: (call) => respondJson(call.response, call.readers.probes.listProbes(findPod(call).metadata.uid)),
  },
  {
    method: 'POST',
    pattern: '/podd/v1/namespaces/*/pods/*/restart',
    handle: async (call) => respondJson(call.response, await restartPod(call)),
  },
  ...objectRoutes,
  { method: 'GET', pattern: '/apis/metrics.k8s.io/v1beta1/pods', handle: sendPodMetrics },
  { method: 'GET', pattern: '/apis/metrics.k8s.io/v1beta1/namespaces/*/pods', handle: sendPodMetrics },
  { method: 'GET', pattern: '/apis/metrics.k8s.io/v1beta1/namespaces/*/pods/*', handle: sendPodMetrics },
]

/** Answers one request. Throws what is to be told to the client (see respondError). */
export async function handleRequest(
  request: IncomingMessage,
  response: ServerResponse,
  context: RequestContext,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://podd')
  const segments = decodePath(url.pathname)
  const matches = routes.flatMap((route) => {
    const names = match(route.pattern, segments)
    return names === undefined ? [] : [{ route, names }]
  })
  const found = matches.find(({ route }) => route.method === request.method)
  if (found !== undefined) {
    if (found.route.isUrgent !== true) await context.readers.pods.whenShown()
    await found.route.handle({ ...context, request, response, query: url.searchParams, names: found.names })
    return
  }
  if (matches.length === 0) {
    throw new ApiError(404, `the server could not find the requested resource ${url.pathname}`)
  }
  throw new ApiError(405, `${request.method ?? ''} is not allowed at ${url.pathname}`)
}

function decodePath(pathname: string): readonly string[] {
  try {
    return pathname.split('/').map((segment) => decodeURIComponent(segment))
  } catch {
    // decodeURIComponent throws for malformed escapes alone.
    throw new ApiError(400, `${pathname} is not a well-formed path`)
  }
}

function match(pattern: string, segments: readonly string[]): readonly string[] | undefined {
  const wanted = pattern.split('/')
  if (wanted.length !== segments.length) return undefined
  const names: string[] = []
  for (const [index, segment] of segments.entries()) {
    if (wanted[index] === '*') names.push(segment)
    else if (wanted[index] !== segment) return undefined
  }
  return names
}

function sendPods(call: Call, namespace: string | undefined): void | Promise<void> {
  const { pods } = call.readers
  const accepts = (pod: PodObject): boolean => namespace === undefined || pod.metadata.namespace === namespace
  if (booleanParam(call.query, 'watch')) {
    const source = {
      list: () => pods.listPods(),
      watch: (listener: Parameters<typeof pods.watchPods>[0]) => pods.watchPods(listener),
      accepts,
    }
    return sendWatch(call, source)
  }
  const items = pods.listPods().filter((pod) => accepts(pod))
  return respondList(call.response, { apiVersion: 'v1', kind: 'PodList', items }, call)
}

function sendEvents(call: Call, namespace: string | undefined): void | Promise<void> {
  const { events } = call.readers
  const accepts = (event: EventObject): boolean =>
    namespace === undefined || event.metadata.namespace === namespace
  if (booleanParam(call.query, 'watch')) {
    const source = {
      list: () => events.listEvents(),
      watch: (listener: Parameters<typeof events.watchEvents>[0]) => events.watchEvents(listener),
      accepts,
    }
    return sendWatch(call, source)
  }
  const items = events.listEvents().filter((event) => accepts(event))
  return respondList(call.response, { apiVersion: 'v1', kind: 'EventList', items }, call)
}

function sendWatch<T>(
  { response, lines, clock, unreadMs, signal }: Call,
  source: WatchSource<T>,
): Promise<void> {
  return respondWatch(response, { source, lines, clock, unreadMs, signal })
}

/** Of two pods under one name, of which one replaces the other, the new one. */
function findPod(call: Call): PodObject {
  const found = namesakes(call).at(-1)
  const [namespace = '', name = ''] = call.names
  if (found === undefined) throw podNotFound(call.readers.pods, namespace, name)
  return found
}

/** All pods of the name that was asked for, oldest first. */
function namesakes({ readers, names }: Call): readonly PodObject[] {
  const [namespace, name] = names
  return readers.pods
    .listPods()
    .filter((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name)
}

async function sendLog(call: Call): Promise<void> {
  // While its successor is still being made ready, it is the old pod that has something to tell.
  const pod = namesakes(call).findLast(({ status }) => status.phase !== 'Pending') ?? findPod(call)
  const request = readLogQuery(call.query, pod.metadata.name, call.clock.wallMs())
  const chunks = await call.logs.read(pod, request, call.signal)
  if (request.follow) {
    // The client knows from this on that there is nothing to complain about, however quiet the container is.
    call.response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
    call.response.flushHeaders()
  }
  await respondStream(call.response, chunks, call.signal)
}

/** What asks for an upgrade never gets here. */
function refuseWithoutUpgrade(): void {
  throw new ApiError(
    400,
    `the connection must be upgraded to ${execProtocol} or ${forwardProtocol}`,
    'Use `podd exec` or `podd port-forward` of the same version.',
  )
}

async function sendPodMetrics(call: Call): Promise<void> {
  respondJson(call.response, await readPodMetrics(call))
}

async function collectGarbage({ readers, response, query, signal }: Call): Promise<void> {
  const options = { dryRun: booleanParam(query, 'dryRun'), young: booleanParam(query, 'all') }
  respondJson(response, await readers.images.collect(options, signal))
}
