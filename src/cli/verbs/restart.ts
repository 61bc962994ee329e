import type { RestartReply } from '../../api/routes.ts'
import { errorCode, PoddError } from '../../base/errors.ts'
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
import { deadCodes } from '../local/gather-status.ts'
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

/** How long podd may take to be back: it reads what runs of all pods. */
const backMs = 60_000
const askMs = 200

export const restartDaemonVerb: Verb = {
  usage: 'restart-daemon',
  help: `Restarts podd itself, with the config file as it is now; the pods keep running. With and without systemd: its process
is replaced, and keeps its number. To take a newer podd, use the installer.`,
  flags: [],
  examples: [['restart-daemon', 'after a change of /etc/podd/config.yaml']],
  async run({ args, client, clock, signal }) {
    args.refuseMore('restart-daemon', 0, 'Of a pod: podd restart POD')
    const before = (await client.status(signal)).startedAt
    await client.post('/podd/v1/restart', signal)
    const untilMs = clock.monotonicMs() + backMs
    for (;;) {
      await clock.sleep(askMs, signal)
      const status = await client.status(signal).catch((error: unknown) => {
        // It closes its socket for a moment.
        if (!deadCodes.includes(errorCode(error) ?? '')) throw error
      })
      if (status !== undefined && status.startedAt !== before)
        return { kind: 'text', text: `podd ${status.version} runs again (pid ${status.pid})\n` }
      if (clock.monotonicMs() > untilMs)
        throw new PoddError('DAEMON_GONE', 'podd does not answer after its restart', {
          hint: 'Its log says why: `journalctl -u podd`, or /var/log/podd.log where there is no systemd.',
        })
    }
  },
}
