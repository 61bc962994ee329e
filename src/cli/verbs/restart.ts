import type { RestartReply } from '../../api/routes.ts'
import { errorCode } from '../../base/errors.ts'
import { formatError } from '../output/report-format.ts'
import {
  containerFlag,
  namespaceFlag,
  poddPodPath,
  readNamespace,
  readPodName,
} from '../arguments/pod-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb } from '../arguments/verb.ts'

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
  async run({ args, client, signal }) {
    if (args.positionals.length === 0) throw new UsageError('restart which pod?', 'podd restart POD')
    const query = new URLSearchParams(args.values('container').map((name) => ['container', name]))
    const namespace = readNamespace(args)
    const restart = async (name: string): Promise<string> => {
      const path = `${poddPodPath(namespace, name)}/restart`
      const { containers } = await client.post<RestartReply>(`${path}?${query.toString()}`, signal)
      return `pod/${name}: restarting ${containers.join(', ')}\n`
    }
    const names = args.positionals.map((word) => readPodName(word, 'restart'))
    const lines: string[] = []
    const notes: string[] = []
    for (const name of names) {
      try {
        lines.push(await restart(name))
      } catch (error) {
        // One that can't be restarted keeps none of the others from it.
        if (names.length === 1 || errorCode(error) === 'INTERRUPTED') throw error
        notes.push(formatError(error))
      }
    }
    return { kind: 'text', text: lines.join(''), notes, exitCode: notes.length === 0 ? 0 : 1 }
  },
}
