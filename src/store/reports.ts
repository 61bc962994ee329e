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

/** An event in `<root-dir>/events.json`; times are wall milliseconds. */
export interface Kept {
  /** The newest message, where it combines similar events. */
  event: KeptEvent
  readonly firstAtMs: number
  lastAtMs: number
  count: number
}

/** Version 1 was the bare list. */
export const eventMigrations: readonly Migration[] = [(content) => ({ events: content })]

/** The events of that file, oldest first; none where this version can't read them. */
export function readEventFile(text: string | undefined): readonly Kept[] {
  const reading = text === undefined ? undefined : readState(text, eventMigrations)
  return (reading?.kind === 'current' ? parseEvents(reading.content)?.events : undefined) ?? []
}

/** Undefined where it is no list of events; `revision` is the newest one that was given. */
export function parseEvents(
  content: JsonObject,
): { readonly events: readonly Kept[]; readonly revision: number | undefined } | undefined {
  const events: unknown = content['events']
  if (!Array.isArray(events)) return undefined
  const { revision } = content
  return {
    events: events.filter((item) => isKept(item)),
    revision: typeof revision === 'number' ? revision : undefined,
  }
}

function isKept(value: unknown): value is Kept {
  if (!isJsonObject(value) || !isJsonObject(value['event'])) return false
  const { pod } = value['event']
  if (pod !== undefined && !isJsonObject(pod)) return false
  const numbers = ['firstAtMs', 'lastAtMs', 'count'].every((key) => typeof value[key] === 'number')
  const { event } = value
  return numbers && ['type', 'reason', 'message'].every((key) => typeof event[key] === 'string')
}
