import type { VerbEntry } from './arguments/verb.ts'
import { getVerb } from './verbs/get.ts'

/** All verbs, in the order of the help. */
export const verbs: readonly VerbEntry[] = [
  {
    name: 'run',
    summary: 'Run the daemon in this terminal',
    load: async () => (await import('./verbs/run.ts')).runVerb,
  },
  {
    name: 'get',
    summary: 'List pods, events and the objects that pods refer to',
    load: () => Promise.resolve(getVerb),
  },
  {
    name: 'describe',
    summary: 'Show one pod in detail',
    load: async () => (await import('./verbs/describe.ts')).describeVerb,
  },
  {
    name: 'logs',
    aliases: ['log'],
    summary: "Print a container's log",
    load: async () => (await import('./verbs/logs.ts')).logsVerb,
  },
  {
    name: 'exec',
    summary: 'Run a command in a container',
    load: async () => (await import('./verbs/exec.ts')).execVerb,
  },
  {
    name: 'attach',
    summary: "Join a container's own input and output",
    load: async () => (await import('./verbs/exec.ts')).attachVerb,
  },
  {
    name: 'debug',
    summary: 'Add a container to a running pod, to look into it',
    load: async () => (await import('./verbs/debug.ts')).debugVerb,
  },
  {
    name: 'cp',
    summary: 'Copy files between this host and a container',
    load: async () => (await import('./verbs/cp.ts')).cpVerb,
  },
  {
    name: 'port-forward',
    summary: 'Forward local ports to a pod',
    load: async () => (await import('./verbs/port-forward.ts')).portForwardVerb,
  },
  {
    name: 'restart',
    summary: "Restart a pod's containers",
    load: async () => (await import('./verbs/restart.ts')).restartVerb,
  },
  {
    name: 'top',
    summary: 'Show the resource usage of pods',
    load: async () => (await import('./verbs/top.ts')).topVerb,
  },
  {
    name: 'diff',
    summary: 'Show what manifests would change',
    load: async () => (await import('./verbs/diff.ts')).diffVerb,
  },
  {
    name: 'apply',
    summary: 'Write manifests into the manifest directory',
    load: async () => (await import('./verbs/apply.ts')).applyVerb,
  },
  {
    name: 'wait',
    summary: 'Wait until pods meet a condition',
    load: async () => (await import('./verbs/wait.ts')).waitVerb,
  },
  {
    name: 'delete',
    summary: "Remove pods from the manifest directory, or a claim's data",
    load: async () => (await import('./verbs/delete.ts')).deleteVerb,
  },
  {
    name: 'events',
    summary: 'List events',
    load: async () => (await import('./verbs/describe.ts')).eventsVerb,
  },
  {
    name: 'images',
    aliases: ['image'],
    summary: 'List, pull, import, export, remove and pin images',
    load: async () => (await import('./verbs/images.ts')).imagesVerb,
  },
  {
    name: 'gc',
    summary: 'Remove unused images',
    load: async () => (await import('./verbs/images.ts')).gcVerb,
  },
  {
    name: 'validate',
    summary: 'Check manifests without running them',
    load: async () => (await import('./verbs/validate.ts')).validateVerb,
  },
  {
    name: 'explain',
    summary: 'Show the fields of a kind, and what podd does with each',
    load: async () => (await import('./verbs/explain.ts')).explainVerb,
  },
  {
    name: 'doctor',
    summary: 'Check what this host has and lacks',
    load: async () => (await import('./verbs/doctor-verb.ts')).doctorVerb,
  },
  {
    name: 'support-bundle',
    summary: 'Pack what is needed to find out what is wrong, without secrets',
    load: async () => (await import('./verbs/support-bundle.ts')).supportBundleVerb,
  },
  {
    name: 'kubeconfig',
    summary: 'Print a kubeconfig for kubectl and other clients',
    load: async () => (await import('./verbs/version.ts')).kubeconfigVerb,
  },
  {
    name: 'hold',
    summary: 'Freeze the host at what it runs',
    load: async () => (await import('./verbs/drain.ts')).holdVerb,
  },
  {
    name: 'resume',
    summary: 'Follow the sources again',
    load: async () => (await import('./verbs/drain.ts')).resumeVerb,
  },
  {
    name: 'drain',
    summary: 'End all pods in order before the host shuts down',
    load: async () => (await import('./verbs/drain.ts')).drainVerb,
  },
  {
    name: 'down',
    summary: 'Stop all pods and the embedded containerd',
    load: async () => (await import('./verbs/down.ts')).downVerb,
  },
  {
    name: 'status',
    summary: "Show the daemon's state and problems",
    load: async () => (await import('./verbs/status.ts')).statusVerb,
  },
  {
    name: 'completion',
    summary: 'Print the completion for a shell',
    load: async () => (await import('./completion.ts')).createCompletionVerb(verbs),
  },
  {
    name: 'version',
    summary: 'Print the versions',
    load: async () => (await import('./verbs/version.ts')).versionVerb,
  },
]
