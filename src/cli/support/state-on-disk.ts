import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatTime } from '../../base/clock.ts'
import { unreadableSuffix } from '../../base/atomic-file.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { containerdPlaces, findContainerd, findShims } from '../../runtime/containerd/process.ts'
import { listProcesses } from '../../host/processes.ts'
import { listCrashReports, readEventFile } from '../../store/reports.ts'
import type { ShownError } from './shown-error.ts'

/** The state of podd from its files, while it doesn't answer. */
export interface StateOnDisk {
  readonly rootDir: string
  readonly containerd: {
    /** Left out where no embedded containerd runs. */
    readonly pid?: number
    /** Pods that have processes. */
    readonly pods: number
  }
  /** `namespace/name` of the pods that podd has a record of. */
  readonly pods: readonly string[]
  readonly sources: readonly { readonly source: string; readonly path: string; readonly pods: number }[]
  readonly crashes: readonly { readonly time: string; readonly report: string }[]
  readonly lastErrors: readonly ShownError[]
  /** Files that podd has put aside. */
  readonly unreadable: readonly string[]
}

/** How many of the newest events that are warnings are shown. */
export const mostErrors = 5

/** Changes nothing. Unreadable files are skipped. */
export function readStateOnDisk(rootDir: string, runDir: string): StateOnDisk {
  const places = containerdPlaces(rootDir, runDir)
  const processes = listProcesses()
  const containerd = findContainerd(places, processes)
  const events = readEventFile(readText(join(rootDir, 'events.json')))
  return {
    rootDir,
    containerd: {
      ...(containerd === undefined ? {} : { pid: containerd.pid }),
      pods: findShims(places, processes).length,
    },
    pods: readJsonFiles(join(rootDir, 'records'))
      .map(({ content }) => `${text(content['namespace'])}/${text(content['name'])}`)
      .toSorted(),
    sources: readJsonFiles(join(rootDir, 'sources')).map(({ name, content }) => ({
      source: name,
      path: text(content['location']),
      pods: podsIn(content['documents']),
    })),
    crashes: listCrashReports(rootDir).map(({ atMs, path }) => ({ time: formatTime(atMs), report: path })),
    lastErrors: events
      .filter(({ event }) => event.type === 'Warning')
      .slice(-mostErrors)
      .map(({ event: { pod, reason, message }, lastAtMs, count }) => ({
        time: formatTime(lastAtMs),
        object: pod === undefined ? 'Node' : `Pod/${pod.name}`,
        reason,
        message,
        count,
      })),
    unreadable: ['.', 'records', 'sources', 'sources/worked', 'sources/held'].flatMap((directory) =>
      namesIn(join(rootDir, directory))
        .filter((name) => name.endsWith(unreadableSuffix))
        .map((name) => join(rootDir, directory, name)),
    ),
  }
}

function readJsonFiles(directory: string): readonly { name: string; content: JsonObject }[] {
  return namesIn(directory)
    .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
    .flatMap((name) => {
      try {
        const content: unknown = JSON.parse(readText(join(directory, name)) ?? '')
        return isJsonObject(content) ? [{ name: name.replace(/\.json$/u, ''), content }] : []
      } catch {
        // podd puts it aside at its next start.
        return []
      }
    })
}

function podsIn(documents: unknown): number {
  if (!Array.isArray(documents)) return 0
  return documents.filter(
    (document: unknown) =>
      isJsonObject(document) && isJsonObject(document['manifest']) && document['manifest']['kind'] === 'Pod',
  ).length
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '?'
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    // podd never ran here, or only root may read it.
    return []
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // podd never ran here, or only root may read it.
    return undefined
  }
}
