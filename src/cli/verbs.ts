import type { Verb, VerbEntry } from './arguments/verb.ts'
import { getVerb } from './verbs/get.ts'

/** All verbs, in the order of the help. */
export const verbs: readonly VerbEntry[] = [
  entry('run', 'Run the daemon in this terminal', async () => (await import('./verbs/run.ts')).runVerb),
  entry('get', 'List pods, events and the objects that pods refer to', () => Promise.resolve(getVerb)),
  entry('describe', 'Show one pod in detail', async () => (await import('./verbs/describe.ts')).describeVerb),
  entry('logs log', "Print a container's log", async () => (await import('./verbs/logs.ts')).logsVerb),
  entry('exec', 'Run a command in a container', async () => (await import('./verbs/exec.ts')).execVerb),
  entry(
    'attach',
    "Join a container's own input and output",
    async () => (await import('./verbs/exec.ts')).attachVerb,
  ),
  entry(
    'debug',
    'Add a container to a running pod, to look into it',
    async () => (await import('./verbs/debug.ts')).debugVerb,
  ),
  entry(
    'cp',
    'Copy files between this host and a container',
    async () => (await import('./verbs/cp.ts')).cpVerb,
  ),
  entry(
    'port-forward',
    'Forward local ports to a pod',
    async () => (await import('./verbs/port-forward.ts')).portForwardVerb,
  ),
  entry(
    'restart',
    "Restart a pod's containers",
    async () => (await import('./verbs/restart.ts')).restartVerb,
  ),
  entry('top', 'Show the resource usage of pods', async () => (await import('./verbs/top.ts')).topVerb),
  entry('diff', 'Show what manifests would change', async () => (await import('./verbs/diff.ts')).diffVerb),
  entry(
    'apply',
    'Write manifests into the manifest directory',
    async () => (await import('./verbs/apply.ts')).applyVerb,
  ),
  entry(
    'history',
    'Show the revisions of what sources give, and why one failed',
    async () => (await import('./verbs/history.ts')).historyVerb,
  ),
  entry(
    'rollback',
    'Go back to an earlier revision of a file or URL',
    async () => (await import('./verbs/history.ts')).rollbackVerb,
  ),
  entry(
    'rollout',
    'Wait for the pods of a workload to be replaced, have them replaced, or go back',
    async () => (await import('./verbs/rollout.ts')).rolloutVerb,
  ),
  entry(
    'scale',
    'Change how many pods a workload has',
    async () => (await import('./verbs/rollout.ts')).scaleVerb,
  ),
  entry(
    'create',
    'Start a Job of a CronJob at once',
    async () => (await import('./verbs/rollout.ts')).createVerb,
  ),
  entry('wait', 'Wait until pods meet a condition', async () => (await import('./verbs/wait.ts')).waitVerb),
  entry(
    'delete',
    "Remove pods from the manifest directory, or a claim's data",
    async () => (await import('./verbs/delete.ts')).deleteVerb,
  ),
  entry('events', 'List events', async () => (await import('./verbs/describe.ts')).eventsVerb),
  entry(
    'images image',
    'List, pull, import, export, remove and pin images',
    async () => (await import('./verbs/images.ts')).imagesVerb,
  ),
  entry('gc', 'Remove unused images', async () => (await import('./verbs/images.ts')).gcVerb),
  entry(
    'validate',
    'Check manifests without running them',
    async () => (await import('./verbs/validate.ts')).validateVerb,
  ),
  entry(
    'explain',
    'Show the fields of a kind, and what podd does with each',
    async () => (await import('./verbs/explain.ts')).explainVerb,
  ),
  entry(
    'doctor',
    'Check what this host has and lacks',
    async () => (await import('./verbs/doctor-verb.ts')).doctorVerb,
  ),
  entry(
    'support-bundle',
    'Pack what is needed to find out what is wrong, without secrets',
    async () => (await import('./verbs/support-bundle.ts')).supportBundleVerb,
  ),
  entry(
    'kubeconfig',
    'Print a kubeconfig for kubectl and other clients',
    async () => (await import('./verbs/version.ts')).kubeconfigVerb,
  ),
  entry(
    'restart-daemon',
    'Restart podd itself; the pods keep running',
    async () => (await import('./verbs/restart.ts')).restartDaemonVerb,
  ),
  entry('hold', 'Freeze the host at what it runs', async () => (await import('./verbs/drain.ts')).holdVerb),
  entry('resume', 'Follow the sources again', async () => (await import('./verbs/drain.ts')).resumeVerb),
  entry(
    'drain',
    'End all pods in order before the host shuts down',
    async () => (await import('./verbs/drain.ts')).drainVerb,
  ),
  entry(
    'down',
    'Stop all pods and the embedded containerd',
    async () => (await import('./verbs/down.ts')).downVerb,
  ),
  entry(
    'status',
    "Show the daemon's state and problems",
    async () => (await import('./verbs/status.ts')).statusVerb,
  ),
  entry(
    'upgrade',
    'Replace podd by another release, or go back',
    async () => (await import('./verbs/upgrade.ts')).upgradeVerb,
  ),
  entry('completion', 'Print the completion for a shell', async () =>
    (await import('./completion.ts')).createCompletionVerb(verbs),
  ),
  entry('version', 'Print the versions', async () => (await import('./verbs/version.ts')).versionVerb),
]

/** @param names the verb's own, and other words for it */
function entry(names: string, summary: string, load: () => Promise<Verb>): VerbEntry {
  const [name = '', ...aliases] = names.split(' ')
  return { name, aliases, summary, load }
}
