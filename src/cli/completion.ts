import { namesOfKind, servedKinds } from '../api/kinds/served-kinds.ts'
import { globalFlags } from './help.ts'
import { UsageError } from './arguments/usage-error.ts'
import type { Verb } from './arguments/verb.ts'

interface CompletedVerb {
  readonly name: string
  readonly summary: string
  load(): Promise<Verb>
}

const shells = ['bash', 'zsh', 'fish'] as const
/** Verbs whose first word is a pod, and those whose first word is a kind and whose second a name. */
const ofPods: readonly string[] = ['attach', 'cp', 'exec', 'logs', 'port-forward', 'restart']
const ofKinds: readonly string[] = ['delete', 'describe', 'get', 'top', 'wait']
/** What prints the names of pods; quiet where podd doesn't run. */
const podNames = "podd get pods -o 'jsonpath={.items[*].metadata.name}' 2>/dev/null"

/** Prints what a shell reads to complete podd's verbs, flags, kinds and pods. */
export function createCompletionVerb(verbs: readonly CompletedVerb[]): Verb {
  return {
    usage: 'completion bash|zsh|fish',
    help: `Prints what makes a shell complete verbs, flags, kinds and the names of pods. The daemon is asked for those names,
so they are completed for root only.`,
    flags: [],
    examples: [
      ['completion bash > /etc/bash_completion.d/podd', 'for bash'],
      ['completion zsh > /usr/share/zsh/vendor-completions/_podd', 'for zsh'],
      ['completion fish > /etc/fish/completions/podd.fish', 'for fish'],
    ],
    async run({ args }) {
      const [shell, extra] = args.positionals
      const known = shells.find((name) => name === shell)
      if (known === undefined || extra !== undefined)
        throw new UsageError('completion for which shell?', `podd completion ${shells.join('|')}`)
      const loaded = await Promise.all(
        verbs.map(async (entry) => ({ name: entry.name, summary: entry.summary, verb: await entry.load() })),
      )
      const text = known === 'fish' ? fish(loaded) : bash(loaded)
      return { kind: 'text', text: known === 'zsh' ? `#compdef podd\n${zshHead}${text}` : text }
    },
  }
}

const zshHead = 'autoload -U +X bashcompinit && bashcompinit\n'

interface LoadedVerb {
  readonly name: string
  readonly summary: string
  readonly verb: Verb
}

function kindWords(): readonly string[] {
  return servedKinds.flatMap((kind) => namesOfKind(kind))
}

function bash(verbs: readonly LoadedVerb[]): string {
  const flagsOf = ({ verb }: LoadedVerb): string =>
    [...verb.flags, ...(verb.actions ?? []).flatMap((action) => action.verb.flags), ...globalFlags]
      .map(({ name }) => `--${name}`)
      .filter((word, at, all) => all.indexOf(word) === at)
      .join(' ')
  const actions = verbs.filter(({ verb }) => verb.actions !== undefined)
  return `_podd() {
  local cur=\${COMP_WORDS[COMP_CWORD]} verb='' words='' place=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      --) return ;;
      -*) ;;
      *) if [ -z "$verb" ]; then verb=\${COMP_WORDS[i]}; else place=$((place + 1)); fi ;;
    esac
  done
  if [ -z "$verb" ]; then
    words='${verbs.map(({ name }) => name).join(' ')}'
  else
    case $cur in
      -*)
        case $verb in
${verbs.map((each) => `          ${each.name}) words='${flagsOf(each)}' ;;`).join('\n')}
        esac ;;
      *)
        case $verb in
          ${ofPods.join('|')}) words=$(${podNames}) ;;
          ${ofKinds.join('|')}) if [ "$place" -eq 0 ]; then words='${kindWords().join(' ')}'; else words=$(${podNames}); fi ;;
${actions.map(({ name, verb }) => `          ${name}) words='${(verb.actions ?? []).map((action) => action.name).join(' ')}' ;;`).join('\n')}
        esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _podd podd
`
}

function fish(verbs: readonly LoadedVerb[]): string {
  const quote = (text: string): string => `'${text.replaceAll(/['\\]/gu, String.raw`\$&`)}'`
  const lines = verbs.flatMap(({ name, summary, verb }) => [
    `complete -c podd -n __fish_use_subcommand -f -a ${name} -d ${quote(summary)}`,
    ...[...verb.flags, ...globalFlags].map(
      (flag) =>
        `complete -c podd -n '__fish_seen_subcommand_from ${name}' -l ${flag.name}${flag.short === undefined ? '' : ` -s ${flag.short}`}${flag.label === undefined ? '' : ' -r'} -d ${quote(flag.doc)}`,
    ),
    ...(verb.actions ?? []).map(
      (action) => `complete -c podd -n '__fish_seen_subcommand_from ${name}' -f -a ${action.name}`,
    ),
  ])
  const pods = `complete -c podd -n '__fish_seen_subcommand_from ${ofPods.join(' ')}' -f -a ${quote(`(${podNames} | string split ' ')`)}`
  const kinds = `complete -c podd -n '__fish_seen_subcommand_from ${ofKinds.join(' ')}' -f -a ${quote(kindWords().join(' '))}`
  return `${[...lines, pods, kinds].join('\n')}\n`
}
