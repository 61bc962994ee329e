import { nearestName } from '../../pod/values/nearest-name.ts'
import { getEvents } from './events.ts'
import { getClaims, getConfigMaps, getSecrets, showValuesFlag } from './get-objects.ts'
import { getPods } from './get-pods.ts'
import { allNamespacesFlag, namespaceFlag } from '../arguments/namespace.ts'
import { outputFlag } from '../arguments/output-format.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'

type Getter = (context: VerbContext, names: readonly string[]) => Promise<VerbResult>

const resources = new Map<string, Getter>([
  ['pods', getPods],
  ['pod', getPods],
  ['po', getPods],
  ['configmaps', getConfigMaps],
  ['configmap', getConfigMaps],
  ['cm', getConfigMaps],
  ['secrets', getSecrets],
  ['secret', getSecrets],
  ['persistentvolumeclaims', getClaims],
  ['persistentvolumeclaim', getClaims],
  ['pvc', getClaims],
  ['events', getEvents],
  ['event', getEvents],
  ['ev', getEvents],
])

export const getVerb: Verb = {
  usage: 'get pods|events|configmaps|secrets|pvc [NAME...] [-o wide|json|yaml|name] [-w] [-n NAMESPACE | -A]',
  help: `Lists pods, events or the objects that pods refer to, as kubectl does. For ConfigMaps and Secrets it shows only
keys and lengths. Manifests with errors, and problems of the container runtime, follow on standard error.`,
  flags: [
    outputFlag,
    showValuesFlag,
    { name: 'watch', short: 'w', doc: 'For pods and events: after listing, watch for changes until Ctrl-C.' },
    namespaceFlag,
    allNamespacesFlag,
  ],
  examples: [
    ['get pods', 'the pods of namespace default'],
    ['get pods -A -o wide', 'all pods, with addresses and manifests'],
    ['get pod web -o yaml', 'one pod with its whole status'],
    ['get pods -w', 'the pods, then each change'],
    ['get events', 'what happened'],
    ['get secrets', 'their keys; `-o yaml --show-values` shows what they hold'],
    ['get pvc', 'claims, and how much is in them'],
  ],
  run(context) {
    const [first, ...rest] = context.args.positionals
    if (first === undefined) throw new UsageError('get what?', 'Try `podd get pods` or `podd get events`.')
    const slash = first.indexOf('/')
    const resource = slash === -1 ? first : first.slice(0, slash)
    const getter = resources.get(resource.toLowerCase())
    if (getter === undefined) {
      const near = nearestName(resource, [...resources.keys()])
      throw new UsageError(
        `podd knows no resource ${JSON.stringify(resource)}`,
        near === undefined
          ? 'There are pods, events, configmaps, secrets and persistentvolumeclaims.'
          : `Did you mean ${near}?`,
      )
    }
    const names = [...(slash === -1 ? [] : [first]), ...rest].map((name) => name.replace(/^[a-z]+\//u, ''))
    return getter(context, names)
  },
}
