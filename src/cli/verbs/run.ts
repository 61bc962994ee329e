import type { Verb } from '../arguments/verb.ts'
import { configFlags, fileOnlyFields, loadConfig } from '../local/load-config.ts'

export const runVerb: Verb = {
  usage: 'run [FLAGS]',
  help: `Runs the daemon in this terminal until SIGTERM or Ctrl-C; the pods keep running without it.
Settings come from flags, then the config file, then the defaults; docs/OPTIONS.md describes them all.`,
  flags: configFlags,
  more: { title: 'Only in the config file (described in docs/OPTIONS.md)', rows: fileOnlyFields },
  examples: [
    ['run', "with the defaults: manifests in /etc/pods, a containerd of podd's own"],
    ['run --pod-manifest-path $PWD/manifests', 'another directory'],
    ['run --container-runtime-endpoint unix:///run/containerd/containerd.sock', "the host's own containerd"],
  ],
  takesSignals: true,
  async run(context) {
    context.args.refuseMore('run')
    return { kind: 'done', exitCode: await context.daemon.startDaemon(await loadConfig(context)) }
  },
}
