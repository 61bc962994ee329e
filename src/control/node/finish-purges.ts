import { finishPurges } from '../../volumes/claims.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

const periodMs = 3_600_000
/** Gigabytes on an SD card take minutes. */
const deadlineMs = 1_800_000

/** Completes purges of claims that were interrupted because podd was killed or data was mounted elsewhere. */
export function finishPurgesJob(rootDir: string): NodeJob {
  return {
    name: 'finish-purges',
    periodMs,
    deadlineMs,
    runsAtStart: true,
    run: () => finishPurges(rootDir),
  }
}
