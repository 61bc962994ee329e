import { formatAgeOf } from '../../api/served-kind.ts'
import type { AppliedReply, SourceObject, UnitObject } from '../../api/sources.ts'
import { PoddError } from '../../base/errors.ts'
import { readOutputFormat } from '../arguments/verb.ts'
import type { Listing, VerbContext, VerbResult } from '../arguments/verb.ts'
import { titled } from '../output/print.ts'
import { formatProblem } from '../output/report-format.ts'
import { shorten } from '../output/table.ts'

/**
 * The sources, all or by name. Exit code 1 where a named one isn't there.
 * @throws PoddError API_NotFound where only such are named
 */
export async function getSources(context: VerbContext, names: readonly string[]): Promise<VerbResult> {
  const { args, client, clock, signal } = context
  const format = readOutputFormat(args)
  const all = await client.get<readonly SourceObject[]>('/podd/v1/sources', signal)
  const units = await client.get<readonly UnitObject[]>('/podd/v1/units', signal)
  const { pods } = await client.get<AppliedReply>('/podd/v1/applied', signal)
  const { problems } = await client.status(signal)
  const found =
    names.length === 0
      ? all
      : all.filter(({ metadata }) => names.some((name) => isNamed(metadata.name, name)))
  const missing = names.filter((name) => !all.some(({ metadata }) => isNamed(metadata.name, name)))
  const missingText = missing.map((name) => `source ${JSON.stringify(name)} not found`)
  if (missing.length > 0 && found.length === 0) throw new PoddError('API_NotFound', missingText.join('; '))
  return {
    kind: 'listing',
    listings: [listSources(found, units, { nowMs: clock.wallMs(), isSingle: names.length === 1 })],
    format,
    notes: [
      ...problems
        .filter(
          ({ severity, place }) =>
            severity === 'error' &&
            !units.some(({ metadata }) => metadata.name === place.path) &&
            found.some(({ spec }) => isOf(spec, place.path)),
        )
        .map((problem) => shorten(formatProblem(problem))),
      ...units.flatMap(({ metadata, spec, status: { message } }) =>
        message !== undefined && found.some((source) => source.metadata.name === spec.source)
          ? [shorten(`${metadata.name}: ${message}`)]
          : [],
      ),
      ...pods.flatMap(({ key, source, problem }) =>
        problem !== undefined && found.some(({ metadata }) => metadata.name === source)
          ? [`pod ${key}: its new version is not in effect: ${problem}`]
          : [],
      ),
      ...missingText.map((text) => `podd: ${text}`),
      ...(all.length === 0 ? ['No sources are configured'] : []),
    ],
    exitCode: missing.length > 0 ? 1 : 0,
  }
}

/** By its whole name, or what follows its kind: `edge` is `file:edge`. */
function isNamed(name: string, asked: string): boolean {
  return name === asked || name.endsWith(`:${asked}`)
}

function isOf({ type, place }: SourceObject['spec'], path: string): boolean {
  return (
    path === place || (type === 'Directory' && path.startsWith(place.endsWith('/') ? place : `${place}/`))
  )
}

function listSources(
  sources: readonly SourceObject[],
  units: readonly UnitObject[],
  { nowMs, isSingle }: { readonly nowMs: number; readonly isSingle: boolean },
): Listing {
  const age = (time: string | undefined): string => (time === undefined ? '<none>' : formatAgeOf(time, nowMs))
  return {
    columns: titled('NAME STATE PODS ERRORS PENDING ANSWERED ACTIVE OFFERED PLACE'.split(' '), [
      'OBJECTS',
      'REVISION',
      'MODE',
      'LAST GOOD',
      'ETAG',
      'MESSAGE',
    ]),
    rows: sources.map(({ metadata, spec, status }) => [
      metadata.name,
      formatState(status, nowMs),
      String(status.pods),
      status.errorsSince === undefined
        ? String(status.errors)
        : `${status.errors} (${age(status.errorsSince)})`,
      formatPending(status.pending),
      age(status.lastAnswerTime),
      ...formatUnits(units.filter((unit) => unit.spec.source === metadata.name)),
      spec.place,
      String(status.objects),
      status.hash?.slice(0, 12) ?? '<none>',
      status.mode,
      status.lastGood ? 'yes' : 'no',
      status.etag ?? '<none>',
      status.message ?? '<none>',
    ]),
    objects: sources,
    listKind: isSingle ? undefined : 'SourceList',
  }
}

/**
 * The numbers of the active and of the offered revision: of a URL, and of the one file of a directory where they differ; else
 * in how many files they do.
 */
function formatUnits(units: readonly UnitObject[]): readonly [active: string, offered: string] {
  const differing = units.filter(({ status }) => status.active !== status.offered)
  const [only, ...more] = differing.length > 0 ? differing : units
  if (only === undefined) return ['<none>', '<none>']
  if (more.length === 0) return [String(only.status.active), String(only.status.offered)]
  return differing.length === 0 ? ['newest', 'newest'] : [`older of ${differing.length}`, 'newest']
}

function formatState({ state, heldSince, failingSince }: SourceObject['status'], nowMs: number): string {
  const since = state === 'Held' ? heldSince : failingSince
  return since === undefined ? state : `${state} (${formatAgeOf(since, nowMs)})`
}

/** Added, changed and removed objects: `+1 ~2 -1`. */
function formatPending(pending: SourceObject['status']['pending']): string {
  const { added = [], changed = [], removed = [] } = pending ?? {}
  const counts = [`+${added.length}`, `~${changed.length}`, `-${removed.length}`]
  return counts.filter((count) => !count.endsWith('0') || count.length > 2).join(' ') || '<none>'
}
