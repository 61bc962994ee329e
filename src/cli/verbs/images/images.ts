import type { Verb } from '../../arguments/verb.ts'
import { exportImagesVerb } from './export-images.ts'
import { importImagesVerb } from './import-images.ts'
import { listImagesVerb } from './list-images.ts'
import { pinImagesVerb, unpinImagesVerb } from './pin-images.ts'
import { pullImagesVerb } from './pull-images.ts'
import { pruneImagesVerb, removeImagesVerb } from './remove-images.ts'

export const imagesVerb: Verb = {
  usage: 'images [ACTION] [ARGUMENTS]',
  help: `Lists, pulls, imports, exports, removes and pins the runtime's images; without an action, lists them.
\`podd images ACTION --help\` tells more of an action.`,
  flags: listImagesVerb.flags,
  actions: [
    { name: 'ls', aliases: ['list'], verb: listImagesVerb },
    { name: 'pull', verb: pullImagesVerb },
    { name: 'import', aliases: ['load'], verb: importImagesVerb },
    { name: 'export', aliases: ['save'], verb: exportImagesVerb },
    { name: 'rm', aliases: ['remove', 'rmi'], verb: removeImagesVerb },
    { name: 'prune', verb: pruneImagesVerb },
    { name: 'pin', verb: pinImagesVerb },
    { name: 'unpin', verb: unpinImagesVerb },
  ],
  examples: [
    ['images', 'list images'],
    ['images import web.tar', 'import images on a host without a registry'],
    ['images export registry.example/web:2 -o web.tar', 'save an imported image to a file'],
  ],
  run(context) {
    return listImagesVerb.run(context)
  },
}
