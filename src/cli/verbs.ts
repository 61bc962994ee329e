import type { Verb } from './verb.ts'

export interface VerbEntry {
  readonly name: string
  readonly aliases?: readonly string[]
  /** One line for `podd --help`. */
  readonly summary: string
  /** Loads the verb's code: a call pays only for the verb it names. */
  load(): Promise<Verb>
}

/** All verbs, in the order of the help. */
export const verbs: readonly VerbEntry[] = [
  {
    name: 'run',
    summary: 'Run the daemon in this terminal',
    load: async () => (await import('./run.ts')).runVerb,
  },
  {
    name: 'get',
    summary: 'List pods, events and what pods refer to',
    load: async () => (await import('./get.ts')).getVerb,
  },
  {
    name: 'describe',
    summary: 'Show all about one pod',
    load: async () => (await import('./describe.ts')).describeVerb,
  },
  {
    name: 'logs',
    aliases: ['log'],
    summary: 'Print what a container wrote',
    load: async () => (await import('./logs.ts')).logsVerb,
  },
  {
    name: 'exec',
    summary: 'Run a command in a container',
    load: async () => (await import('./exec.ts')).execVerb,
  },
  {
    name: 'port-forward',
    summary: 'Open local ports that lead into a pod',
    load: async () => (await import('./port-forward.ts')).portForwardVerb,
  },
  {
    name: 'restart',
    summary: "Restart a pod's containers",
    load: async () => (await import('./restart.ts')).restartVerb,
  },
  {
    name: 'top',
    summary: 'Show what pods use',
    load: async () => (await import('./top.ts')).topVerb,
  },
  {
    name: 'delete',
    summary: "Delete a claim's data",
    load: async () => (await import('./delete.ts')).deleteVerb,
  },
  {
    name: 'events',
    summary: 'List what happened',
    load: async () => (await import('./events.ts')).eventsVerb,
  },
  {
    name: 'images',
    aliases: ['image'],
    summary: "List the runtime's images, or import some from a file",
    load: async () => (await import('./images.ts')).imagesVerb,
  },
  {
    name: 'validate',
    summary: 'Check manifests without running them',
    load: async () => (await import('./validate.ts')).validateVerb,
  },
  {
    name: 'doctor',
    summary: 'Check what this host has and lacks',
    load: async () => (await import('./doctor-verb.ts')).doctorVerb,
  },
  {
    name: 'down',
    summary: 'End all pods and the embedded containerd',
    load: async () => (await import('./down.ts')).downVerb,
  },
  {
    name: 'version',
    summary: 'Print the versions',
    load: async () => (await import('./version.ts')).versionVerb,
  },
]
