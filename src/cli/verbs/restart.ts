import type { RestartReply } from '../../api/routes.ts'
import {
  containerFlag,
  namespaceFlag,
  poddPodPath,
  readNamespace,
  readPodName,
  withQuery,
} from '../arguments/pod-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb } from '../arguments/verb.ts'
import { actOnEach } from './move-images.ts'

export const restartVerb: Verb = {
  usage: 'restart POD... [-c CONTAINER...]',
  help: `Restarts the containers of a pod in place: each is stopped within its grace period (preStop hook, stop signal) and
recreated at once, from the same manifest; the pod keeps its UID, its address and its volumes. A container in
CrashLoopBackOff or ImagePullBackOff is started at once. The restart does not increase the back-off, and ignores the
restart policy; but a finished pod stays finished. Completed init containers don't run again. Of a pod that waits for
the host or the config (reason Blocked, SysctlForbidden, ...) podd decides again whether it may run.`,
  flags: [containerFlag('This container only; may be given more than once.'), namespaceFlag],
  examples: [
    ['restart web', 'all containers of the pod'],
    ['restart web -c nginx', 'one of them'],
  ],
  async run(context) {
    const { args, client, signal } = context
    if (args.positionals.length === 0) throw new UsageError('restart which pod?', 'podd restart POD')
    const asked = args.values('container').map((name) => ['container', name])
    const namespace = readNamespace(args)
    const names = args.positionals.map((word) => readPodName(word, 'restart'))
    return actOnEach(context, names, async (name) => {
      const path = withQuery(`${poddPodPath(namespace, name)}/restart`, asked)
      const { containers } = await client.post<RestartReply>(path, signal)
      return `pod/${name}: restarting ${containers.join(', ')}\n`
    })
  },
}
