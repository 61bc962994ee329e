import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import type { NodeEvent, PodEvent } from '../pod/state/pod-event.ts'

/** A crash of this daemon or an earlier one. */
export interface CrashReport {
  /** Wall milliseconds. */
  readonly atMs: number
  readonly path: string
}

export function crashDirectory(rootDir: string): string {
  return join(rootDir, 'crash')
}

/** The kept reports, oldest first. Never throws. */
export function listCrashReports(rootDir: string): readonly CrashReport[] {
  const directory = crashDirectory(rootDir)
  try {
    return readdirSync(directory)
      .flatMap((name) => {
        const atMs = /^(\d+)\.json$/u.exec(name)?.[1]
        return atMs === undefined ? [] : [{ atMs: Number(atMs), path: join(directory, name) }]
      })
      .toSorted((a, b) => a.atMs - b.atMs)
  } catch {
    // There was no crash, or this user may not read them.
    return []
  }
}

/** Left out for an event about the node. */
export type KeptEvent =
  | PodEvent
  | (NodeEvent & { readonly [Field in 'pod' | 'kind' | 'container']?: undefined })

/** A moment by a clock that never jumps: in which boot of the host, and how long after that began. */
export interface BootMoment {
  readonly boot: string
  readonly upMs: number
  /** The same in wall milliseconds, by the clock as it was set then. */
  readonly atMs?: number | undefined
}

/** An event in `<root-dir>/events.json`; times are wall milliseconds, by the clock as it was set then. */
export interface Kept {
  /** The newest message, where it combines similar events. */
  event: KeptEvent
  readonly firstAtMs: number
  lastAtMs: number
  count: number
  /** Left out of what an older podd recorded. */
  readonly first?: BootMoment | undefined
  last?: BootMoment | undefined
}

/** What is known of boots of the host: when each began, in wall milliseconds, by the clock as it was set at its end. */
export type Boots = Readonly<Record<string, number>>

/** The boot that lasts, by the clock as it is set now. */
export interface CurrentBoot {
  readonly id: string
  readonly beganAtMs: number
  /** Events without a boot happened before this. */
  readonly readAtMs: number
}

/**
 * When something happened, by the clock as it is set now: in this boot for certain; in an earlier one by what that knew of
 * the time at its end, and before this one began, whatever the clock said.
 * @param atMs by the clock as it was set then
 */
export function whenItHappened(
  moment: BootMoment | undefined,
  atMs: number,
  boots: Boots,
  now: CurrentBoot,
): number {
  if (moment === undefined) return Math.min(atMs, now.readAtMs)
  if (moment.boot === now.id) return now.beganAtMs + moment.upMs
  const beganAtMs = boots[moment.boot]
  return Math.min(beganAtMs === undefined ? atMs : beganAtMs + moment.upMs, now.beganAtMs)
}

/** Version 1 was the bare list. */
export const eventMigrations: readonly Migration[] = [(content) => ({ events: content })]

interface EventFile {
  /** Oldest first. */
  readonly events: readonly Kept[]
  readonly boots: Boots
  /** The newest one that was given. */
  readonly revision: number | undefined
}

/** Without events where this version can't read them. */
export function readEventFile(text: string | undefined): EventFile {
  const reading = text === undefined ? undefined : readState(text, eventMigrations)
  const parsed = reading?.kind === 'current' ? parseEvents(reading.content) : undefined
  return parsed ?? { events: [], boots: {}, revision: undefined }
}

/** Undefined where it is no list of events. */
export function parseEvents(content: JsonObject): EventFile | undefined {
  const events: unknown = content['events']
  if (!Array.isArray(events)) return undefined
  const { revision, boots } = content
  return {
    events: events.filter((item) => isKept(item)).map((kept) => withoutStaleMoment(kept)),
    boots: Object.fromEntries(
      Object.entries(isJsonObject(boots) ? boots : {}).flatMap(([id, ms]) =>
        typeof ms === 'number' ? [[id, ms] as const] : [],
      ),
    ),
    revision: typeof revision === 'number' ? revision : undefined,
  }
}

/** An older podd that saw the event again has written when, and left the moment as it was. */
function withoutStaleMoment(kept: Kept): Kept {
  const { last, lastAtMs } = kept
  return last?.atMs === undefined || last.atMs === lastAtMs ? kept : { ...kept, last: undefined }
}

function isKept(value: unknown): value is Kept {
  if (!isJsonObject(value) || !isJsonObject(value['event'])) return false
  const { pod } = value['event']
  if (pod !== undefined && !isJsonObject(pod)) return false
  const numbers = ['firstAtMs', 'lastAtMs', 'count'].every((key) => typeof value[key] === 'number')
  const moments = [value['first'], value['last']].every(
    (moment) =>
      moment === undefined ||
      (isJsonObject(moment) &&
        typeof moment['boot'] === 'string' &&
        typeof moment['upMs'] === 'number' &&
        ['undefined', 'number'].includes(typeof moment['atMs'])),
  )
  const { event } = value
  const texts = ['type', 'reason', 'message'].every((key) => typeof event[key] === 'string')
  return numbers && moments && texts
}
