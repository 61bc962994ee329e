import { ignoredKubeletFields } from '../src/config/read-config-file.ts'
import type { Option } from '../src/config/option-type.ts'
import { listOptions } from '../src/config/options.ts'
import { defaultConfigPath } from '../src/config/places.ts'

const example = `apiVersion: podd.dev/v1
kind: PoddConfiguration
staticPodPath: /etc/pods
maxPods: 40
crashLoopBackOff:
  maxContainerRestartPeriod: 1m
`

/** The text of docs/OPTIONS.md, made of the table of options. */
export function optionsDoc(): string {
  const rows = listOptions().map(([, option]) => optionRow(option))
  return `# Options

<!-- Made from src/config/options.ts by \`npm run generate\`. -->

Settings come from the flags of \`podd run\`, then from the config file, then from the defaults. The file is
\`--config FILE\`, or \`${defaultConfigPath}\` where it exists:

\`\`\`yaml
${example}\`\`\`

Fields that podd shares with the kubelet bear the kubelet's names, and a KubeletConfiguration
(\`kubelet.config.k8s.io/v1beta1\`) is accepted as it is: as the whole file, or as one YAML document beside a
PoddConfiguration with podd's own settings. In it, a zero value (\`0s\`, \`""\`, \`0\`) means unset, as for the
kubelet. An unknown field or a wrong value is an error that names its line; a field of the kubelet without effect
here is a warning.

Durations are written as Go writes them: \`500ms\`, \`20s\`, \`1m30s\`, \`2h\`. \`podd run --help\` lists the same settings.

| Field | Flag | Value | Default | Origin | What it does |
|---|---|---|---|---|---|
${rows.join('\n')}

## Fields of KubeletConfiguration without effect

${ignoredLists().join('\n')}
`
}

function optionRow(option: Option<unknown>): string {
  const shown = option.type.format(option.default)
  const cells = [
    `\`${option.field}\``,
    option.flag === undefined ? '' : `\`--${option.flag}\``,
    `\`${option.type.label}\``,
    option.defaultText ?? (shown === '' ? 'none' : `\`${shown}\``),
    option.owner === 'kubelet' ? 'kubelet' : 'podd',
    option.doc,
  ]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

/** One line for each reason, with the fields that share it. */
function ignoredLists(): readonly string[] {
  const byReason = Map.groupBy([...ignoredKubeletFields], ([, reason]) => reason)
  return [...byReason].map(([reason, fields]) => {
    const names = fields.map(([name]) => `\`${name}\``).join(', ')
    return `- ${reason}: ${names}`
  })
}
