import { namesOfKind, servedKinds } from '../api/served-kinds.ts'
import { globalFlags } from './help.ts'
import { UsageError } from './arguments/parse-arguments.ts'
import type { FlagSpec } from './arguments/parse-arguments.ts'
import type { Verb, VerbEntry } from './arguments/verb.ts'

const shells = ['bash', 'zsh', 'fish'] as const
/** Verbs whose first word is a pod, and those whose first word is a kind and whose second a name. */
const ofPods: readonly string[] = ['attach', 'cp', 'debug', 'exec', 'logs', 'port-forward', 'restart']
const ofKinds: readonly string[] = ['delete', 'describe', 'explain', 'get', 'top', 'wait']
/** The command that prints the names of pods; silent where podd doesn't run. */
const podNames = "podd get pods -o 'jsonpath={.items[*].metadata.name}' 2>/dev/null"
const sourceNames = "podd get sources -o name 2>/dev/null | sed 's,^[^/]*/,,'"
const allContainers =
  '{.spec.containers[*].name} {.spec.initContainers[*].name} {.spec.ephemeralContainers[*].name}'

export function createCompletionVerb(verbs: readonly VerbEntry[]): Verb {
  return {
    usage: 'completion bash|zsh|fish',
    help: `Prints what makes a shell complete verbs, flags, kinds and the names of pods, containers, namespaces and other objects. The daemon is asked for those names,
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

/** The flags that take a value in every verb that has them, with their dashes. */
function valuedFlags(verbs: readonly LoadedVerb[]): readonly string[] {
  const specs = [...verbs.flatMap(({ verb }) => flagsOf(verb)), ...globalFlags]
  const isValued = (matches: (flag: FlagSpec) => boolean): boolean =>
    specs.filter(matches).every(({ label }) => label !== undefined)
  const long = specs.map(({ name }) => name).filter((word) => isValued(({ name }) => name === word))
  const short = specs.flatMap(({ short: letter }) => letter ?? [])
  const letters = short.filter((letter) => isValued((flag) => flag.short === letter))
  return unique([...long.map((word) => `--${word}`), ...letters.map((letter) => `-${letter}`)])
}

function flagsOf(verb: Verb): readonly FlagSpec[] {
  return [...verb.flags, ...(verb.actions ?? []).flatMap((action) => action.verb.flags)]
}

function unique(words: readonly string[]): readonly string[] {
  return [...new Set(words)]
}

function bash(verbs: readonly LoadedVerb[]): string {
  const flagWords = ({ verb }: LoadedVerb): string =>
    unique([...flagsOf(verb), ...globalFlags].map(({ name }) => `--${name}`)).join(' ')
  const actions = verbs.filter(({ verb }) => verb.actions !== undefined)
  return `_podd() {
  local cur=\${COMP_WORDS[COMP_CWORD]} flag='' verb='' words='' first='' place=0 i
  local -a at=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    flag=''
    case \${COMP_WORDS[i]} in
      --) return ;;
      ${valuedFlags(verbs).join('|')})
        flag=\${COMP_WORDS[i]}
        i=$((i + 1))
        if [ "\${COMP_WORDS[i]}" = = ]; then i=$((i + 1)); fi
        case $flag in -n|--namespace) if [ $i -lt $COMP_CWORD ]; then at=(-n "\${COMP_WORDS[i]}"); fi ;; esac ;;
      -*|=) ;;
      *)
        if [ -z "$verb" ]; then verb=\${COMP_WORDS[i]}; else place=$((place + 1)); fi
        if [ "$place" -eq 1 ]; then first=\${COMP_WORDS[i]#pod/}; fi ;;
    esac
  done
  if [ $i -eq $COMP_CWORD ]; then flag=''; fi
  if [ "$cur" = = ]; then cur=''; fi
  case $flag in
    -n|--namespace) words=$(podd get namespaces -o 'jsonpath={.items[*].metadata.name}' 2>/dev/null) ;;
    -c|--container|--target)
      words=$(podd get pod "$first" "\${at[@]}" -o 'jsonpath=${allContainers}' 2>/dev/null) ;;
    ?*) return ;;
    *)
      if [ -z "$verb" ]; then
        words='${verbs.map(({ name }) => name).join(' ')}'
      else
        case $cur in
          -*)
            case $verb in
${verbs.map((each) => `              ${each.name}) words='${flagWords(each)}' ;;`).join('\n')}
            esac ;;
          *)
            case $verb in
              ${ofPods.join('|')}) words=$(${podNames.replace('get pods', 'get pods "${at[@]}"')}) ;;
              ${ofKinds.join('|')})
                if [ "$place" -eq 0 ]; then
                  words='${kindWords().join(' ')}'
                  if [ "$verb" = get ]; then words="$words sources"; fi
                elif [ "$first" = sources ]; then words=$(${sourceNames})
                elif [ "$verb" != explain ]; then words=$(podd get "$first" "\${at[@]}" -o 'jsonpath={.items[*].metadata.name}' 2>/dev/null); fi ;;
              hold|resume) words=$(${sourceNames}) ;;
${actions.map(({ name, verb }) => `              ${name}) words='${(verb.actions ?? []).map((action) => action.name).join(' ')}' ;;`).join('\n')}
            esac ;;
        esac
      fi ;;
  esac
  # compgen runs what it finds in words, such as $(...).
  COMPREPLY=($(compgen -W "\${words//[^-A-Za-z0-9._:@=]/ }" -- "$cur"))
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
  const sources = [
    `complete -c podd -n '__fish_seen_subcommand_from get' -f -a sources`,
    `complete -c podd -n '__fish_seen_subcommand_from hold resume' -f -a ${quote(`(${sourceNames})`)}`,
  ]
  const namespaces = `complete -c podd -n 'not __fish_use_subcommand' -s n -l namespace -x -a ${quote("(podd get namespaces -o 'jsonpath={.items[*].metadata.name}' 2>/dev/null | string split ' ')")}`
  const containers = `complete -c podd -n '__fish_seen_subcommand_from ${ofPods.join(' ')}' -s c -l container -x -a ${quote(`(podd get pod (commandline -opc)[3] -o 'jsonpath=${allContainers}' 2>/dev/null | string split -n ' ')`)}`
  return `${[...lines, pods, kinds, ...sources, namespaces, containers].join('\n')}\n`
}
