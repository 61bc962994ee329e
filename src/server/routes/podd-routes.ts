import { selectUnits } from '../../api/sources.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiReaders, SourceControl, UnitControl } from '../requests/readers.ts'
import { jsonResponse } from '../requests/request.ts'
import type { ApiResponse } from '../requests/request.ts'
import { get, integerParam, post, withPods } from '../requests/route.ts'
import type { Call, Route } from '../requests/route.ts'
import { findPods, findRunningPod } from './pod-target.ts'

/** podd's own routes, except those of images. */
export function poddRoutes(readers: ApiReaders): readonly Route[] {
  const { status, drain, restart } = readers
  return [
    get('/podd/v1/status', () => jsonResponse(status.daemonStatus())),
    post('/podd/v1/restart', () => {
      restart()
      return jsonResponse({ restarting: true })
    }),
    ...sourceRoutes(readers),
    withPods(get('/podd/v1/applied', () => jsonResponse(status.applied()))),
    withPods(post('/podd/v1/drain', async () => jsonResponse(await drain.run()))),
    withPods(
      post('/podd/v1/drain/undo', async () => {
        await drain.undo()
        return jsonResponse({ undone: true })
      }),
    ),
    withPods(get('/podd/v1/namespaces/*/pods/*/probes', (call) => listProbes(readers, call))),
    withPods(post('/podd/v1/namespaces/*/pods/*/restart', (call) => restartPod(readers, call))),
    withPods(post('/podd/v1/namespaces/*/pods/*/end', (call) => shortenGrace(readers, call))),
    withPods(
      post('/podd/v1/namespaces/*/persistentvolumeclaims/*/purge', (call) => purgeClaim(readers, call)),
    ),
  ]
}

function listProbes(
  { resources, probes }: ApiReaders,
  { names: [namespace = '', name = ''] }: Call,
): ApiResponse {
  const found = findPods(resources.pods, namespace, name)
  const { metadata } = found.at(-1) ?? found[0]
  return jsonResponse(probes.listProbes(metadata.uid))
}

/** Throws ApiError Conflict for a pod or container that can't be restarted in its state. */
async function restartPod(
  { resources, reach }: ApiReaders,
  { query, names: [namespace = '', name = ''] }: Call,
): Promise<ApiResponse> {
  const pod = findRunningPod(resources.pods, namespace, name)
  const wanted = query.getAll('container')
  try {
    const containers = await reach.restart(pod.metadata.uid, wanted.length === 0 ? undefined : wanted)
    return jsonResponse({ containers })
  } catch (error) {
    throw errorCode(error) === 'RESTART_REFUSED' ? new ApiError(409, errorMessage(error)) : error
  }
}

/** Throws ApiError Conflict for a pod that does not terminate: its manifest is still there. */
function shortenGrace(
  { resources, writer }: ApiReaders,
  { query, names: [namespace = '', name = ''] }: Call,
): ApiResponse {
  const graceSeconds = integerParam(query, 'gracePeriodSeconds') ?? 0
  if (graceSeconds < 0) throw new ApiError(400, 'gracePeriodSeconds must not be negative')
  const found = findPods(resources.pods, namespace, name)
  const ending = found.filter(({ metadata }) => writer?.shortenGrace(metadata.uid, graceSeconds) === true)
  if (ending.length === 0) throw new ApiError(409, `pod ${JSON.stringify(name)} does not terminate`)
  return jsonResponse({ ending: ending.length })
}

async function purgeClaim(
  { claims }: ApiReaders,
  { names: [namespace = '', name = ''] }: Call,
): Promise<ApiResponse> {
  try {
    await claims.purgeClaim({ namespace, name })
  } catch (error) {
    if (!(error instanceof PoddError)) throw error
    if (error.code === 'CLAIM_NOT_FOUND') throw new ApiError(404, error.message, error.hint)
    if (error.code === 'CLAIM_IN_USE' || error.code === 'VOLUME_TEARDOWN')
      throw new ApiError(409, error.message, error.hint)
    throw error
  }
  return jsonResponse({ purged: name })
}

/** The routes of sources and their units: list, hold, roll back and resume. */
function sourceRoutes({ sources, units }: ApiReaders): readonly Route[] {
  return [
    get('/podd/v1/sources', () => jsonResponse(sources.list())),
    post('/podd/v1/sources/hold', (call) => changeEach(sources, call, (name) => sources.hold(name))),
    post('/podd/v1/sources/resume', (call) => resumeEach(sources, units, call)),
    get('/podd/v1/units', () => jsonResponse(units.list())),
    withPods(post('/podd/v1/units/rollback', (call) => rollBack(units, call))),
  ]
}

/** Throws ApiError NotFound for an unknown unit, Conflict for a revision that can't be had, BadRequest for no number. */
async function rollBack(units: UnitControl, { query }: Call): Promise<ApiResponse> {
  const word = query.get('unit') ?? ''
  const to = query.get('to')
  if (to !== null && !/^[1-9]\d{0,8}$/u.test(to))
    throw new ApiError(400, `to must be the number of a revision, not ${JSON.stringify(to)}`)
  const found = findUnits(units, word)
  const [unit] = found
  if (unit === undefined || found.length > 1) throw noUnit(units, word, found)
  try {
    const active = await units.rollBack(unit, to === null ? undefined : Number(to))
    return jsonResponse({ unit, active })
  } catch (error) {
    throw errorCode(error) === 'UPDATE_REFUSED' ? new ApiError(409, errorMessage(error)) : error
  }
}

function findUnits(units: UnitControl, word: string): readonly string[] {
  return selectUnits(
    units.list().map(({ metadata }) => metadata.name),
    word,
  )
}

function noUnit(units: UnitControl, word: string, found: readonly string[]): ApiError {
  if (found.length > 1) return new ApiError(400, `${JSON.stringify(word)} may be ${found.join(' or ')}`)
  const all = units.list().map(({ metadata }) => metadata.name)
  const some = all.slice(0, 10).join(', ')
  const hint =
    all.length === 0 ? 'No source gives anything.' : `There are ${some}${all.length > 10 ? ', …' : ''}.`
  return new ApiError(404, `there is no unit ${JSON.stringify(word)}`, hint)
}

/**
 * Follows sources that are held, and what named units give. Without a name only sources: what failed is not tried again
 * unless it is named. Throws ApiError NotFound for an unknown name; nothing is changed then.
 */
async function resumeEach(sources: SourceControl, units: UnitControl, call: Call): Promise<ApiResponse> {
  const asked = call.query.getAll('source')
  const resumed: string[] = []
  const named = asked.map((word) => {
    const ofUnits = findUnits(units, word)
    const [unit] = ofUnits
    const all = sources.list().map(({ metadata }) => metadata.name)
    const isSource = all.includes(word) || all.some((name) => name.endsWith(`:${word}`))
    if (ofUnits.length > 1 && !isSource) throw noUnit(units, word, ofUnits)
    if (unit === undefined || isSource) return { source: findSource(all, word), unit }
    return { source: undefined, unit }
  })
  const held = asked.length === 0 ? sources.list().map(({ metadata }) => metadata.name) : []
  for (const { source, unit } of [...named, ...held.map((name) => ({ source: name, unit: undefined }))]) {
    const isHeld = source !== undefined && (await sources.resume(source))
    const isBack = unit !== undefined && (await units.resume(unit))
    if (isHeld || isBack) resumed.push(isHeld ? source : (unit ?? ''))
  }
  return jsonResponse({ changed: resumed })
}

/** Throws ApiError NotFound for an unknown source; none is changed then. */
async function changeEach(
  sources: SourceControl,
  { query }: Call,
  change: (name: string) => Promise<boolean>,
): Promise<ApiResponse> {
  const all = sources.list().map(({ metadata }) => metadata.name)
  const asked = query.getAll('source')
  const names = asked.length === 0 ? all : asked.map((word) => findSource(all, word))
  const changed: string[] = []
  for (const name of names) if (await change(name)) changed.push(name)
  return jsonResponse({ changed })
}

/** Finds a source by its name, or by what follows its kind: `edge` is `file:edge`. */
function findSource(all: readonly string[], word: string): string {
  const found = all.includes(word) ? [word] : all.filter((name) => name.endsWith(`:${word}`))
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  if (word === 'api')
    throw new ApiError(
      404,
      'the objects written over the API are not a source that can be held',
      'Directories and URLs can: what they give is held until `podd resume`, and each write over the API still counts.',
    )
  const hint = all.length === 0 ? 'No sources are configured.' : `There are ${all.join(', ')}.`
  throw new ApiError(404, `there is no source ${JSON.stringify(word)}`, hint)
}
