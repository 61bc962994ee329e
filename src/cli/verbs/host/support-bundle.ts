import { hostname } from 'node:os'
import { writeFile } from 'node:fs/promises'
import { PoddError, errorMessage } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/text.ts'
import type { Json } from '../../../base/json.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'
import { findBundleTarget } from '../../local/bundle-target.ts'
import { configFlags } from '../../local/load-config.ts'
import { redactConfig, secretTexts } from '../../../config/options.ts'
import {
  readCredentials,
  readHostFiles,
  readLogs,
  readSecretFiles,
  readStateFiles,
} from '../../support/bundle-sources.ts'
import type { BundleSource } from '../../support/bundle-sources.ts'
import { findSecrets } from '../../support/find-secrets.ts'
import { gatherStatus } from '../../support/gather-status.ts'
import { makeBundle } from '../../support/make-bundle.ts'
import { formatError } from '../../output/format-error.ts'

export const supportBundleVerb: Verb = {
  usage: 'support-bundle [FILE] [FLAGS]',
  help: `Writes what is needed to find out what is wrong with this host: podd's settings, state, events, crash reports, the
log of podd (of its systemd unit) and of containerd, what \`podd status\` and \`podd doctor\` say, and what the kernel tells
of memory, disks and mounts. Works with and without a running daemon. Values of environment variables, headers,
ConfigMaps, Secrets and of the settings \`values\` and \`valueFiles\`, and credentials, are taken out; where the Secrets can't
be read, so are logs and state. FILE must not exist yet; - stands for standard output. Takes the flags of \`podd run\`; the directories are those of the podd that
answers.`,
  flags: configFlags,
  examples: [
    ['support-bundle', 'podd-support-HOST-TIME.tar.gz in this directory'],
    ['support-bundle - | ssh desk "cat > host.tar.gz"', 'where the disk is full'],
  ],
  async run(context) {
    const [named, extra] = context.args.positionals
    if (extra !== undefined) throw new UsageError(`support-bundle takes no argument ${JSON.stringify(extra)}`)
    const bundle = await makeOf(context)
    if (named === '-') return { kind: 'chunks', chunks: oneChunk(bundle) }
    const time = new Date(context.clock.wallMs()).toISOString().slice(0, 19).replaceAll(/[-:]/gu, '')
    const path = named ?? `podd-support-${hostname()}-${time}.tar.gz`
    try {
      await writeFile(path, bundle, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      throw new PoddError('WRITE_FAILED', `cannot write ${path}: ${errorMessage(error)}`, {
        cause: error,
        hint: 'Name a file that does not exist yet, on a disk with space, or - for standard output.',
      })
    }
    return { kind: 'text', text: `${path} (${formatBytes(bundle.length)})\n` }
  },
}

/** What podd, its pods and containerd said, beside the state. */
const mayHoldValues = /^(?:logs\/|(?:status|pods|events)\.json$)/u

async function makeOf(context: VerbContext): Promise<Buffer> {
  const { client, deps, clock, signal, notify } = context
  const { config, warnings } = await findBundleTarget(context)
  const { rootDir, runDir } = config
  const ask = async (path: string, get: () => Promise<unknown>): Promise<BundleSource> => {
    try {
      return { path: `${path}.json`, kind: 'json', content: asJson(await get()) }
    } catch (error) {
      signal.throwIfAborted()
      return { path: `${path}.txt`, kind: 'text', content: `${formatError(error)}\n` }
    }
  }
  const sources: readonly BundleSource[] = [
    { path: 'made.json', kind: 'json', content: { time: new Date(clock.wallMs()).toISOString() } },
    { path: 'config.json', kind: 'json', content: redactConfig(config) },
    { path: 'config-warnings.json', kind: 'json', content: asJson(warnings) },
    await ask('status', () => gatherStatus(client, { rootDir, runDir }, signal)),
    await ask('doctor', () => deps.doctor(config, signal)),
    await ask('pods', () => client.get('/api/v1/pods', signal)),
    await ask('events', () => client.get('/api/v1/events', signal)),
    ...(await readLogs(rootDir, runDir)),
    ...readHostFiles(),
  ]
  const state = readStateFiles(rootDir)
  const settings = [...secretTexts(config), ...readSecretFiles(config)]
  // Last: what was read before may hold the values of a Secret that is new.
  const secrets = await findSecrets({ client, persistSecrets: config.persistSecrets, ...state, signal })
  if (secrets.kind === 'found')
    return makeBundle(
      [...sources, ...state.sources],
      [...readCredentials(rootDir), ...secrets.documents],
      settings,
    )
  const content = `left out, as the values of Secrets are not known: status, pods, events, state and logs: ${secrets.why}\n`
  notify(content.trimEnd())
  const harmless = sources.filter(({ path }) => !mayHoldValues.test(path))
  return makeBundle(
    [...harmless, { path: 'secrets-unknown.txt', kind: 'text', content }],
    readCredentials(rootDir),
    settings,
  )
}

function asJson(value: unknown): Json {
  const json: Json = JSON.parse(JSON.stringify(value ?? null))
  return json
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}
