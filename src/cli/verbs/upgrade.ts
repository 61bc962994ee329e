import { dirname } from 'node:path'
import type { PodListObject } from '../../api/resource.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { deadCodes } from '../local/gather-status.ts'
import {
  findInstallation,
  goBack,
  keepChange,
  keepInstalled,
  lockUpgrades,
  readReleaseKeys,
  releaseDir,
  runningPods,
  switchTo,
  takeRelease,
  undoChange,
  versionOfRelease,
  watchChange,
} from '../local/upgrade.ts'
import type { Installation, RunningPods } from '../local/upgrade.ts'

/** How long the new podd has to be healthy and to have adopted what runs. */
const patienceMs = 60_000

export const upgradeVerb: Verb = {
  usage: 'upgrade --from FILE|URL [--key FILE.pub] | --rollback',
  help: `Replaces the installed podd by another release; the pods keep running. SHA256SUMS and SHA256SUMS.minisig have to be
beside the release: its checksum and their signature are verified first. If the new podd is not healthy within a minute, or
has not adopted all pods that were running, podd goes back to the version before by itself. With --rollback it goes back
to that version later; a second --rollback returns to the newer one. Settings are never replaced.`,
  flags: [
    {
      name: 'from',
      label: 'FILE|URL',
      doc: 'The release: podd_VERSION_ARCH.deb where podd is a package, else podd_VERSION_linux_ARCH.tar.gz.',
    },
    {
      name: 'key',
      label: 'FILE.pub',
      doc: 'A public key of minisign, or a file with one. Default: the key that came with the installed release.',
    },
    { name: 'rollback', doc: 'Go back to the version before.' },
  ],
  examples: [
    ['upgrade --from podd_0.3.0_amd64.deb', 'from files beside each other'],
    ['upgrade --from https://example.com/podd/0.3.0/podd_0.3.0_arm64.deb', 'from a server'],
    ['upgrade --rollback', 'back to the version before'],
  ],
  async run(context) {
    const { args } = context
    args.refuseMore('upgrade', 0, 'Name the release with --from.')
    const from = args.value('from')
    const isBack = args.has('rollback')
    if ((from === undefined) !== isBack) throw new UsageError('upgrade takes either --from or --rollback')
    const installation = findInstallation(dirname(import.meta.dirname))
    const unlock = await lockUpgrades()
    // A connection that is lost in the middle leaves nobody who would go back.
    const stay = (): void => {}
    process.on('SIGHUP', stay)
    try {
      return await upgrade(installation, from, context)
    } finally {
      process.off('SIGHUP', stay)
      unlock()
    }
  },
}

async function upgrade(
  installation: Installation,
  from: string | undefined,
  context: VerbContext,
): Promise<VerbResult> {
  const { args, notify } = context
  if (from === undefined) {
    const before = await podsThatRun(context)
    await goBack(installation)
    const wrong = await watch(before, undefined, context)
    if (wrong !== undefined) throw new PoddError('UPGRADE_FAILED', `podd went back, but ${wrong}`)
    return { kind: 'text', text: `podd went back to the version before; ${said(before)}\n` }
  }
  const keys = await readReleaseKeys(installation, args.values('key'))
  const version = versionOfRelease(from, installation, process.arch)
  notify(`taking ${from}`)
  const release = await takeRelease(from, keys, releaseDir, context)
  await keepInstalled(installation)
  const before = await podsThatRun(context)
  notify(`installing podd ${version}`)
  const wrong = await change(release, version, before, installation, context)
  if (wrong === undefined) {
    await keepChange(installation)
    return { kind: 'text', text: `podd ${version} runs; ${said(before)}\n` }
  }
  notify(`going back: ${wrong}`)
  await undoChange(installation)
  const still = context.signal.aborted ? undefined : await watch(before, undefined, context)
  const now = still === undefined ? 'the version before runs again' : `after going back, ${still}`
  throw new PoddError('UPGRADE_FAILED', `podd ${version} did not work here: ${wrong}; ${now}`, {
    hint: '`journalctl -u podd` tells what the new podd said',
  })
}

/** Installs the release; returns what is wrong with it. */
async function change(
  release: string,
  version: string,
  before: RunningPods,
  installation: Installation,
  context: VerbContext,
): Promise<string | undefined> {
  try {
    await switchTo(release, installation)
  } catch (error) {
    return errorMessage(error)
  }
  return watch(before, version, context).catch((error: unknown) => {
    if (!context.signal.aborted) throw error
    return 'it was interrupted'
  })
}

async function watch(
  before: RunningPods,
  version: string | undefined,
  { client, clock, signal }: VerbContext,
): Promise<string | undefined> {
  return watchChange(before, version, { client, clock, signal, patienceMs })
}

/** None where no podd runs: there is nothing to adopt then. */
async function podsThatRun({ client, signal }: VerbContext): Promise<RunningPods> {
  try {
    return runningPods(await client.getList<PodListObject>('/api/v1/pods', signal))
  } catch (error) {
    if (signal.aborted || !deadCodes.includes(errorCode(error) ?? '')) throw error
    return new Map()
  }
}

function said(before: RunningPods): string {
  return before.size === 0 ? 'no pods ran' : `all ${before.size} pods kept running`
}
