import { finishPurges } from '../../volumes/plugins/claim-directory.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

const periodMs = 3_600_000
/** Gigabytes on an SD card take minutes. */
const deadlineMs = 1_800_000

/** Deletes what is left of purged claims: of a podd that was killed meanwhile, or of data that was mounted somewhere. */
export function finishPurgesJob(rootDir: string): NodeJob {
  return {
    name: 'finish-purges',
    periodMs,
    deadlineMs,
    runsAtStart: true,
    run: () => finishPurges(rootDir),
  }
}
