import { namespaceFlag, readNamespace } from '../arguments/namespace.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'

const claimNames = ['pvc', 'persistentvolumeclaim', 'persistentvolumeclaims']

export const deleteVerb: Verb = {
  usage: 'delete pvc NAME --purge [-n NAMESPACE]',
  help: `Deletes the data of a claim permanently. Nothing else deletes it: the data outlives the pods that use it, the
claim's document, and podd itself. Every other object is deleted by removing its manifest from its source.`,
  flags: [{ name: 'purge', doc: 'Yes, delete the data.' }, namespaceFlag],
  examples: [['delete pvc data --purge', 'delete the contents of the claim named data']],
  async run({ args, client, signal }) {
    const [resource = '', ...rest] = args.positionals
    const slash = resource.indexOf('/')
    const kind = slash < 0 ? resource : resource.slice(0, slash)
    const names = slash < 0 ? rest : [resource.slice(slash + 1), ...rest]
    const [name, extra] = names
    if (!claimNames.includes(kind.toLowerCase())) {
      throw new UsageError(
        'podd deletes only the data of claims',
        'To delete a pod, remove its manifest from its source.',
      )
    }
    if (name === undefined || extra !== undefined)
      throw new UsageError('delete which claim?', 'podd delete pvc NAME --purge')
    if (!args.has('purge')) {
      throw new UsageError(`this deletes the data of claim ${name} permanently`, 'Confirm with --purge.')
    }
    const namespace = readNamespace(args)
    const path = `/podd/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}/purge`
    await client.post(path, signal)
    return { kind: 'text', text: `persistentvolumeclaim "${name}" purged\n` }
  },
}
