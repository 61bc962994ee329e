import type { Logger } from '../../base/logger.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { ContainerdPlaces } from './containerd-places.ts'
import { findContainerd } from './containerd-process.ts'
import type { ContainerdVersion } from './containerd-version.ts'
import { EmbeddedContainerdError } from './embedded-containerd-error.ts'
import { findNewer } from './newer-containerd.ts'
import type { InstalledContainerd } from './newer-containerd.ts'

export interface InstalledProgramOptions {
  readonly places: ContainerdPlaces
  /** Records an event of the node. */
  readonly tell: (reason: string, message: string) => void
  readonly logger: Logger
}

/** The containerd that is installed, beside the one under which pods run: an older one must not take its place. */
export class InstalledProgram {
  readonly #options: InstalledProgramOptions
  #path: string | undefined
  #problem: Problem | undefined

  constructor(options: InstalledProgramOptions) {
    this.#options = options
  }

  /** Which containerd would be started now; undefined before the first look. */
  get path(): string | undefined {
    return this.#path
  }

  /** Whether an older one was installed at the last look. */
  get problem(): Problem | undefined {
    return this.#problem
  }

  /**
   * The newer version under which pods run, and which is kept running.
   * @throws EmbeddedContainerdError where it does not run
   */
  async findNewer(installed: InstalledContainerd): Promise<ContainerdVersion | undefined> {
    const { places, tell, logger } = this.#options
    const running = findContainerd(places)
    const newer = await findNewer(places, installed, running)
    this.#path = installed.containerdPath
    const before = this.#problem
    this.#problem = undefined
    if (newer === undefined) return undefined
    const older = `containerd ${installed.version.text} is installed, and pods run under containerd ${newer.text}`
    const again = `Install containerd ${newer.text} or newer again`
    if (running === undefined)
      throw new EmbeddedContainerdError(`${older}, which an older one would lose`, {
        hint: `${again}; or reboot the host, which ends the pods.`,
      })
    this.#problem = {
      severity: 'warning',
      place: { path: installed.containerdPath },
      message: `${older}: that one keeps running; where it ends, no other starts before the pods have ended`,
      hint: again,
    }
    if (before?.message === this.#problem.message) return newer
    logger.warn({ reason: older }, 'the newer containerd keeps running')
    tell('ContainerdOlder', `${older}: that one keeps running`)
    return newer
  }
}
