import type { ArchiveReport } from '../../api/images.ts'
import type { ArchiveFile, ArchiveStage } from '../../decide/node/plan-image-archives.ts'

/** The state of a file, as the API shows it. */
export function toArchiveReport(
  directory: string,
  { name, isList, content, failure }: Pick<ArchiveFile, 'name' | 'isList' | 'content' | 'failure'>,
  stage: ArchiveStage,
): ArchiveReport {
  const known = content?.kind === 'archive' ? content.images : []
  const found = content?.kind === 'incomplete' ? `${content.message}; ` : ''
  const file = { path: `${directory}/${name}`, type: isList ? 'list' : 'archive' } as const
  switch (stage.kind) {
    case 'imported':
      return { ...file, state: 'imported', images: stage.record.images }
    case 'unchecked':
    case 'due':
      return {
        ...file,
        state: failure === undefined ? 'pending' : 'failed',
        images: stage.images,
        message: failure?.message ?? (isList ? 'to be pulled' : 'to be imported'),
      }
    case 'settling':
      return { ...file, state: 'pending', images: known, message: `${found}it may still be written` }
    case 'unread':
      return { ...file, state: 'pending', images: known, message: 'to be read' }
    case 'incomplete':
    case 'refused':
    case 'failed':
      return { ...file, state: 'failed', images: known, message: stage.message }
  }
}
