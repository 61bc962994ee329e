/* The directory of image archives: which files are read, imported or waited for, and which images stay pinned. */

/** A file in the directory of image archives. */
export interface ArchiveFile {
  readonly name: string
  /** Whether it is a list of images to pull, rather than an archive. */
  readonly isList: boolean
  readonly sizeBytes: number
  readonly modifiedAtMs: number
  readonly fingerprint: string
  /** Why it can be neither. */
  readonly refusal?: string | undefined
  /** Whether it was renamed into place, which makes it complete at once. */
  readonly isRenamed: boolean
  /** Milliseconds since its last change. */
  readonly quietMs: number
  /** The content of the current file; undefined before it was read. */
  readonly content?: ArchiveContent | undefined
  /** Why the current file could not be read or imported, and in how many milliseconds it is retried; 0 or less: now. */
  readonly failure?: { readonly message: string; readonly retryMs: number } | undefined
}

/** The content of a file that should be an archive or a list of images. */
export type ArchiveContent =
  | {
      readonly kind: 'archive'
      /** Complete names of its images. */
      readonly images: readonly string[]
      /** A hash of an archive's indexes, which name everything else by digest: equal for equal images. */
      readonly digest: string
      /** Whether it has its end mark, and so is complete. */
      readonly isMarked: boolean
    }
  /** It is truncated: it may still be written. */
  | { readonly kind: 'incomplete'; readonly message: string }
  /** It is another kind of file, or damaged. */
  | { readonly kind: 'bad'; readonly message: string }

/** A file whose images were imported, or pulled, and pinned. */
export interface ImportedArchive {
  readonly sizeBytes: number
  readonly modifiedAtMs: number
  readonly digest: string
  readonly images: readonly string[]
  /** Images that users have pinned: they stay pinned when the file is gone. */
  readonly kept?: readonly string[]
}

export interface ArchiveFacts {
  /** In the order of their names. */
  readonly files: readonly ArchiveFile[]
  readonly imported: ReadonlyMap<string, ImportedArchive>
  /** The complete names of the runtime's images; undefined while unknown. */
  readonly present: ReadonlySet<string> | undefined
}

/** The work to be done for the directory. */
export interface ArchivePlan {
  readonly stages: ReadonlyMap<string, ArchiveStage>
  /** Files to read, in this order. */
  readonly read: readonly string[]
  /** Archives to import, in this order: awaited ones first. */
  readonly imports: readonly string[]
  /** Lists whose images are to be pulled. */
  readonly lists: readonly string[]
  /** Files that are gone: no longer on record. */
  readonly forget: readonly string[]
  /** The images that no file has any more: to be unpinned. */
  readonly unpin: readonly string[]
  /** When to look again without an event; undefined: not needed. */
  readonly wakeMs: number | undefined
}

/** @param wanted complete names of images that pods wait for */
export function planImageArchives(facts: ArchiveFacts, wanted: ReadonlySet<string>): ArchivePlan {
  const { files, imported, present } = facts
  const stages = new Map(files.map((file) => [file.name, stageOf(file, facts)] as const))
  const due = files.flatMap(({ name, isList }) => {
    const stage = stages.get(name)
    return stage?.kind === 'due' ? [{ name, isList, images: stage.images }] : []
  })
  const isWanted = ({ images }: { readonly images: readonly string[] }): boolean =>
    images.some((image) => wanted.has(image))
  const archives = due.filter(({ isList }) => !isList)
  const inOrder = [
    ...archives.filter((each) => isWanted(each)),
    ...archives.filter((each) => !isWanted(each)),
  ]
  const forget = [...imported.keys()].filter((name) => !stages.has(name))
  const inFiles = new Set(files.flatMap(({ name }) => imagesOf(stages.get(name), imported.get(name))))
  const waits = [...stages.values()].flatMap((stage) =>
    'waitMs' in stage && (stage.kind !== 'incomplete' || stage.waitMs > 0) ? [stage.waitMs] : [],
  )
  return {
    stages,
    read: files.flatMap(({ name }) => (stages.get(name)?.kind === 'unread' ? [name] : [])),
    imports: present === undefined ? [] : inOrder.map(({ name }) => name),
    lists: present === undefined ? [] : due.flatMap(({ name, isList }) => (isList ? [name] : [])),
    forget,
    unpin: dropped(
      forget.flatMap((name) => unkept(imported.get(name))),
      inFiles,
    ),
    wakeMs: waits.length === 0 ? undefined : Math.min(...waits),
  }
}

export type ArchiveStage =
  /** It may still be written. */
  | { readonly kind: 'settling'; readonly waitMs: number }
  /** Probably complete; not read yet. */
  | { readonly kind: 'unread' }
  /** It is truncated. It is read again once it changes. */
  | { readonly kind: 'incomplete'; readonly message: string; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string; readonly waitMs: number }
  /** It was imported, and it is not known yet whether its images are still present. */
  | { readonly kind: 'unchecked'; readonly images: readonly string[] }
  | { readonly kind: 'due'; readonly images: readonly string[]; readonly digest: string }
  /** `isTouched`: with another size or time than on record. */
  | { readonly kind: 'imported'; readonly record: ImportedArchive; readonly isTouched: boolean }

/** How long a file that is written in place has to be quiet before it is read. */
export const settleMs = 1000
/** How long a truncated file has to be quiet before that is an error. */
export const patienceMs = 10_000

/** The state of a file. */
export function stageOf(file: ArchiveFile, { imported, present }: Omit<ArchiveFacts, 'files'>): ArchiveStage {
  const record = imported.get(file.name)
  if (file.refusal !== undefined) return { kind: 'refused', message: file.refusal }
  const isSame = record?.sizeBytes === file.sizeBytes && record.modifiedAtMs === file.modifiedAtMs
  if (record !== undefined && isSame && isThere(record, present))
    return present === undefined
      ? { kind: 'unchecked', images: record.images }
      : { kind: 'imported', record, isTouched: false }
  if (file.failure !== undefined && file.failure.retryMs > 0)
    return { kind: 'failed', message: file.failure.message, waitMs: file.failure.retryMs }
  const { content } = file
  if (content === undefined) {
    const waitMs = file.isRenamed && file.sizeBytes > 0 ? 0 : settleMs - file.quietMs
    return waitMs > 0 ? { kind: 'settling', waitMs } : { kind: 'unread' }
  }
  if (content.kind === 'bad') return { kind: 'refused', message: content.message }
  if (content.kind === 'incomplete' || !content.isMarked) {
    const waitMs = patienceMs - file.quietMs
    if (waitMs > 0) return { kind: 'settling', waitMs }
    if (content.kind === 'incomplete') return { kind: 'incomplete', message: content.message, waitMs: 0 }
  }
  if (record?.digest === content.digest && isThere(record, present))
    return { kind: 'imported', record, isTouched: true }
  return { kind: 'due', images: content.images, digest: content.digest }
}

/** Whether nothing is known to be missing. */
function isThere({ images }: ImportedArchive, present: ReadonlySet<string> | undefined): boolean {
  return present === undefined || images.every((image) => present.has(image))
}

/** The images of a file, or those of its last import, which it may still have. */
function imagesOf(stage: ArchiveStage | undefined, record: ImportedArchive | undefined): readonly string[] {
  return [...(record?.images ?? []), ...(stage !== undefined && 'images' in stage ? stage.images : [])]
}

/** The images that a newly imported file replaces: those of its record that no file has any more. */
export function selectReplaced(
  name: string,
  images: readonly string[],
  imported: ReadonlyMap<string, ImportedArchive>,
): readonly string[] {
  const inFiles = [...imported].flatMap(([other, record]) => (other === name ? [] : record.images))
  return dropped(unkept(imported.get(name)), new Set([...inFiles, ...images]))
}

/** The images of a file that users have pinned, not earlier imports. */
export function selectKept(
  images: readonly string[],
  pinned: ReadonlySet<string>,
  imported: ReadonlyMap<string, ImportedArchive>,
): readonly string[] {
  return images.filter((image) => {
    const holders = [...imported.values()].filter((record) => record.images.includes(image))
    return holders.length === 0
      ? pinned.has(image)
      : holders.some(({ kept }) => kept?.includes(image) === true)
  })
}

function unkept(record: ImportedArchive | undefined): readonly string[] {
  return (record?.images ?? []).filter((image) => record?.kept?.includes(image) !== true)
}

function dropped(images: readonly string[], inFiles: ReadonlySet<string>): readonly string[] {
  return [...new Set(images)].filter((image) => !inFiles.has(image))
}

/**
 * The archive whose import a missing image waits for; undefined where none has it. An archive that was not read yet may
 * have it, so an image may wait for that. Lists, and archives that can't be imported, delay nothing.
 * @param image its complete name
 */
export function findAwaitedArchive(
  image: string,
  files: readonly Pick<ArchiveFile, 'name' | 'isList' | 'failure'>[],
  stages: ReadonlyMap<string, ArchiveStage>,
): { readonly name: string; readonly isKnown: boolean } | undefined {
  const pending = files.flatMap(({ name, isList, failure }) => {
    const stage = isList || failure !== undefined ? undefined : stages.get(name)
    if (stage?.kind === 'unread') return [{ name, isKnown: false }]
    const isPending = stage?.kind === 'due' || stage?.kind === 'unchecked'
    return isPending && stage.images.includes(image) ? [{ name, isKnown: true }] : []
  })
  return pending.find(({ isKnown }) => isKnown) ?? pending[0]
}

const firstRetryMs = 10_000
const longestRetryMs = 600_000

/** The delay before a retry after this many failures: 10 s, twice as long each time, up to ten minutes. */
export function archiveRetryMs(failures: number): number {
  return Math.min(firstRetryMs * 2 ** (failures - 1), longestRetryMs)
}
