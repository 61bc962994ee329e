import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'

export const pinImagesVerb: Verb = pinVerb(
  'pin',
  `Keeps images from being removed while they are unused: by image garbage collection, \`podd gc\` and
\`podd images prune\`.`,
  ['images pin registry.example/web:2', 'keep an image for a pod to come'],
)

export const unpinImagesVerb: Verb = pinVerb(
  'unpin',
  `Lets podd remove images when they are unused. An image from the directory of image archives stays pinned as long as
its file is there.`,
  ['images unpin localhost/web:1', 'let podd remove it when it is unused and the disk is full'],
)

function pinVerb(action: 'pin' | 'unpin', help: string, example: readonly [string, string]): Verb {
  return {
    usage: `images ${action} NAME…`,
    help,
    flags: [],
    examples: [example],
    async run({ args, client, signal }) {
      const names = args.positionals
      if (names.length === 0)
        throw new UsageError(`images ${action} needs an image`, `podd images ${action} NAME`)
      let text = ''
      for (const name of names) {
        await client.post(`/podd/v1/images/${action}?image=${encodeURIComponent(name)}`, signal)
        text += `${action}ned ${name}\n`
      }
      return { kind: 'text', text }
    },
  }
}
