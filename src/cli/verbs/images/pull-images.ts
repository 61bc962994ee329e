import type { PullUpdate } from '../../../api/images.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'
import { ServerError } from '../../client/client.ts'
import { formatError } from '../../output/format-error.ts'
import { formatImageSize } from '../../output/image-size.ts'
import { PullDisplay } from '../../output/pull-display.ts'

type Pulled = Extract<PullUpdate, { kind: 'pulled' }>

export const pullImagesVerb: Verb = {
  usage: 'images pull NAME… [-q]',
  help: `Pulls images as podd does for its pods, with the node's credentials. A pod that waits for one of them starts
at once. Progress goes to standard error: a bar on a terminal, a line for each tenth elsewhere.
The exit code is 1 where an image could not be pulled; the others are.`,
  flags: [{ name: 'quiet', short: 'q', doc: 'Show no progress.' }],
  examples: [['images pull registry.example/web:2', 'have an image before the pod that needs it']],
  async run(context) {
    const { args, notify, signal } = context
    const names = args.positionals
    if (names.length === 0) throw new UsageError('images pull needs an image', 'podd images pull NAME')
    let text = ''
    let exitCode = 0
    for (const name of names) {
      try {
        const { id, sizeBytes } = await pullImage(context, name)
        text += `pulled ${name}: ${id}, ${formatImageSize(sizeBytes)}\n`
      } catch (error) {
        if (names.length === 1 || signal.aborted) throw error
        notify(formatError(error))
        exitCode = 1
      }
    }
    return { kind: 'text', text, exitCode }
  },
}

async function pullImage({ args, client, signal, stdio }: VerbContext, name: string): Promise<Pulled> {
  const display = args.has('quiet') ? undefined : new PullDisplay(name, stdio.stderr)
  const path = `/podd/v1/images/pull?image=${encodeURIComponent(name)}`
  try {
    for await (const update of client.watch<PullUpdate>(path, signal, 'POST')) {
      if (update.kind === 'pulled') return update
      if (update.kind === 'failed') throw ServerError.of(update.status)
      display?.show(update)
    }
  } finally {
    display?.end()
  }
  signal.throwIfAborted()
  throw new ServerError('InternalError', 'the pull ended without a result', undefined)
}
