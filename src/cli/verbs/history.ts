import { formatAgeOf } from '../../api/served-kind.ts'
import { selectUnits } from '../../api/sources.ts'
import type { RevisionObject, RollbackReply, UnitObject } from '../../api/sources.ts'
import { PoddError } from '../../base/errors.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { withQuery } from '../arguments/pod-argument.ts'
import { outputFlag, readOutputFormat } from '../arguments/verb.ts'
import type { Listing, Verb, VerbResult } from '../arguments/verb.ts'
import { titled } from '../output/print.ts'

export const historyVerb: Verb = {
  usage: 'history [UNIT] [-o FORMAT]',
  help: `Lists the units that sources give, each a file of a directory, the whole answer of a URL, or a pod or workload
that was written over the API: which revision of it counts (ACTIVE), which the source gives (OFFERED), and in WHY what keeps another
one or an invalid, held or unread source from counting. With the name of one, its revisions, and why one failed: the exit codes and
the last log lines of its containers. A file may be named by its path or the end of it, with or without \`.yaml\`.`,
  flags: [outputFlag],
  examples: [
    ['history', 'all units'],
    ['history web.yaml', 'the revisions of a file'],
    ['history fleet -o yaml', 'those of the URL fleet, with all that is known'],
  ],
  async run({ args, client, clock, signal }) {
    const format = readOutputFormat(args)
    const [word, ...more] = args.positionals
    if (more.length > 0) throw new UsageError('history of one unit, or of all', 'podd history [UNIT]')
    const all = await client.get<readonly UnitObject[]>('/podd/v1/units', signal)
    if (word === undefined) {
      const notes = all.length === 0 ? ['No source gives anything'] : []
      return { kind: 'listing', listings: [listUnits(all, clock.wallMs())], format, notes }
    }
    const unit = findUnit(all, word)
    const isTable = format === 'table' || format === 'wide'
    return {
      kind: 'listing',
      listings: [listRevisions(unit, clock.wallMs())],
      format,
      notes: isTable ? unit.status.revisions.flatMap((revision) => describeFailure(revision)) : [],
    }
  },
}

function findUnit(all: readonly UnitObject[], word: string): UnitObject {
  const names = selectUnits(
    all.map(({ metadata }) => metadata.name),
    word,
  )
  const unit = all.find(({ metadata }) => metadata.name === names[0])
  if (unit !== undefined && names.length === 1) return unit
  throw new PoddError(
    'API_NotFound',
    names.length > 1
      ? `${JSON.stringify(word)} may be ${names.join(' or ')}`
      : `there is no unit ${JSON.stringify(word)}`,
    { hint: '`podd history` lists them.' },
  )
}

function listUnits(units: readonly UnitObject[], nowMs: number): Listing {
  return {
    columns: titled(['UNIT', 'STATE', 'ACTIVE', 'OFFERED', 'CHANGED', 'WHY']),
    rows: units.map(({ metadata, status }) => [
      metadata.name,
      status.state,
      String(status.active),
      String(status.offered),
      ageOf(status.revisions.at(-1), nowMs),
      status.message ?? '<none>',
    ]),
    objects: units,
    listKind: 'UnitList',
  }
}

function ageOf(revision: RevisionObject | undefined, nowMs: number): string {
  return revision === undefined ? '<none>' : formatAgeOf(revision.time, nowMs)
}

function listRevisions(unit: UnitObject, nowMs: number): Listing {
  const { active, offered, revisions } = unit.status
  return {
    columns: titled(['REVISION', 'VERDICT', 'PODS', 'AGE', 'NOW', 'WHY'], ['HASH', 'ETAG']),
    rows: revisions.map((revision) => [
      String(revision.number),
      revision.verdict,
      String(revision.pods),
      ageOf(revision, nowMs),
      [revision.number === active ? 'active' : '', revision.number === offered ? 'offered' : '']
        .filter((word) => word !== '')
        .join(', ') || '<none>',
      [revision.failure?.reason, revision.distrusted === true ? 'NotTrusted' : undefined]
        .filter((reason) => reason !== undefined)
        .join(', ') || '<none>',
      revision.hash,
      revision.sourceRevision ?? '<none>',
    ]),
    objects: [unit],
    listKind: undefined,
  }
}

/** Why a revision failed, with the last lines of its containers' logs; nothing of one that did not. */
export function describeFailure({ number, failure }: RevisionObject): readonly string[] {
  if (failure === undefined) return []
  const containers = failure.containers.flatMap(({ pod, container, exitCode, reason, lines }) => {
    const code = exitCode === undefined ? '' : ` exit code ${exitCode}`
    const why = reason === undefined ? '' : ` (${reason})`
    return [`  ${pod}, container ${container}:${code}${why}`, ...lines.map((line) => `    | ${line}`)]
  })
  return [`revision ${number} failed: ${failure.message}`, ...containers]
}

export const rollbackVerb: Verb = {
  usage: 'rollback UNIT [--to REVISION]',
  help: `Has an earlier revision of a unit count: the last healthy one before the active one, or the one that --to names. It stays
active until the source gives something new, or \`podd resume UNIT\`. Volumes and claims stay as they are.`,
  flags: [
    { name: 'to', label: 'REVISION', doc: 'The number of a revision, as `podd history UNIT` lists them.' },
  ],
  examples: [
    ['rollback web.yaml', 'go back to the revision before'],
    ['rollback fleet --to 3', 'go back to revision 3 of what the URL fleet gave'],
  ],
  async run({ args, client, signal }): Promise<VerbResult> {
    const [word, ...more] = args.positionals
    if (word === undefined || more.length > 0)
      throw new UsageError('roll back which unit?', 'podd rollback UNIT; `podd history` lists them')
    const to = args.value('to')
    if (to !== undefined && !/^[1-9]\d{0,8}$/u.test(to))
      throw new UsageError(`--to must be the number of a revision, not ${JSON.stringify(to)}`)
    const path = withQuery('/podd/v1/units/rollback', { unit: word, ...(to !== undefined && { to }) })
    const { unit, active } = await client.post<RollbackReply>(path, signal)
    return {
      kind: 'text',
      text: `revision ${active} of ${unit} counts until its source gives something new, or \`podd resume ${word}\`\n`,
    }
  },
}
