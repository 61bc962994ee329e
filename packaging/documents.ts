/**
 * node packaging/documents.ts DIR: writes what is made for an installation of the tables that make `--help` and docs/OPTIONS.md:
 * podd.1 and podd.yaml.5 below share/man, and NOTICES, the licences of what podd contains of others.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Verb, VerbEntry } from '../src/cli/arguments/verb.ts'
import { globalFlags } from '../src/cli/help.ts'
import { verbs } from '../src/cli/verbs.ts'
import type { FlagSpec } from '../src/cli/arguments/parse-arguments.ts'
import { listOptions } from '../src/config/options.ts'
import { defaultConfigPath } from '../src/config/places.ts'
import type { Lock } from './portable-lock.ts'

interface Package {
  readonly version: string
  readonly license?: string
}

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const { version }: Package = JSON.parse(read('package.json'))

/** Text for roff: nothing of it is a request, and hyphens are those that can be copied. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(
      /[^\n -~]/gu,
      (letter) => `\\[u${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replaceAll(/^(?=[.'])/gmu, '\\&')
}

/** Paragraphs; indented lines stay as they are. */
function paragraphs(text: string): readonly string[] {
  return text.split(/\n\n+/u).flatMap((paragraph) => {
    const isLaidOut = /^\s/mu.test(paragraph)
    return isLaidOut ? ['.PP', '.nf', roff(paragraph), '.fi'] : ['.PP', roff(paragraph)]
  })
}

function term(name: string, text: string): readonly string[] {
  return ['.TP', `\\fB${roff(name)}\\fR`, roff(text.replaceAll('\n', ' '))]
}

function head(name: string, section: number, title: string): readonly string[] {
  return [`.TH ${name.toUpperCase()} ${section} "" "podd ${version}" "${title}"`, '.ad l']
}

function flagTerm({ name, short, label, doc }: FlagSpec): readonly string[] {
  const long = label === undefined ? `--${name}` : `--${name} ${label}`
  return term(short === undefined ? long : `-${short}, ${long}`, doc)
}

function verbSection(
  { usage, help, flags, actions = [], more, examples }: Verb,
  words = '',
): readonly string[] {
  return [
    `.SS "podd ${roff(words === '' || usage.startsWith(words) ? usage : `${words} ${usage}`).replaceAll('"', '\\(dq')}"`,
    ...paragraphs(help),
    ...flags.flatMap(flagTerm),
    ...(more === undefined
      ? []
      : ['.PP', roff(`${more.title}:`), ...more.rows.flatMap(([name, doc]) => term(name, doc))]),
    ...examples.flatMap(([command, does]) => term(`podd ${command}`, does === '' ? 'as it stands' : does)),
    ...actions.flatMap(({ name, verb }) => verbSection(verb, `${usage.split(' ')[0]} ${name}`)),
  ]
}

/** The manual of the command, in roff. */
export async function commandManual(entries: readonly VerbEntry[]): Promise<string> {
  const loaded = await Promise.all(entries.map((entry) => entry.load()))
  return [
    ...head('podd', 1, 'User Commands'),
    '.SH NAME',
    'podd \\- run Kubernetes Pods on one Linux host with no control plane',
    '.SH SYNOPSIS',
    '\\fBpodd\\fR \\fIVERB\\fR [\\fIARGUMENTS\\fR]',
    '.SH DESCRIPTION',
    'podd runs the Pods whose manifests are in /etc/pods. The daemon is \\fBpodd run\\fR, which systemd starts; the other verbs ask it.',
    '.SH OPTIONS',
    ...globalFlags.flatMap(flagTerm),
    '.SH VERBS',
    ...loaded.flatMap((verb) => verbSection(verb)),
    '.SH FILES',
    ...term(defaultConfigPath, 'The settings; see podd.yaml(5).'),
    ...term('/etc/pods', 'The manifests.'),
    ...term('/var/lib/podd', 'What podd remembers, images and volumes.'),
    '.SH EXIT STATUS',
    '0 done, 1 it failed, 2 wrong usage.',
    '.SH SEE ALSO',
    'podd.yaml(5)',
    '',
  ].join('\n')
}

/** The manual of the settings, in roff. */
export function settingsManual(): string {
  const fields = listOptions().flatMap(([, { field, flag, type, default: value, defaultText, doc }]) => {
    const shown = defaultText ?? type.format(value)
    const facts = [
      ...(flag === undefined ? [] : [`As a flag: --${flag}.`]),
      `By default ${shown === '' ? 'none' : shown}.`,
    ]
    return term(`${field}: ${type.label}`, `${doc} ${facts.join(' ')}`)
  })
  return [
    ...head('podd.yaml', 5, 'File Formats'),
    '.SH NAME',
    'podd.yaml \\- the settings of podd',
    '.SH SYNOPSIS',
    roff(defaultConfigPath),
    '.SH DESCRIPTION',
    'One document of YAML or JSON, with \\fBapiVersion: podd.dev/v1\\fR and \\fBkind: PoddConfiguration\\fR. A flag of \\fBpodd run\\fR wins over its field.',
    '.SH FIELDS',
    ...fields,
    '.SH SEE ALSO',
    'podd(1)',
    '',
  ].join('\n')
}

/** The licence of each package of others that is bundled, and of Node. */
function notices(): string {
  const lock: Lock & { packages: Record<string, { dev?: boolean }> } = JSON.parse(read('package-lock.json'))
  const bundled = Object.entries(lock.packages)
    .filter(([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true)
    .map(([path]) => path)
  const node = `node_modules/node-linux-${process.arch}`
  const sections = [...bundled, node].toSorted().map((path) => {
    const { version: itsVersion, license }: Package = JSON.parse(read(`${path}/package.json`))
    const files = readdirSync(join(root, path)).filter((name) =>
      /^(licen[cs]e|notice|copying)\b/iu.test(name),
    )
    const name =
      path === node ? 'Node.js' : path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const title = `${name} ${itsVersion} (${license ?? 'see below'})`
    return [title].concat(files.toSorted().map((file) => read(`${path}/${file}`).trim())).join('\n\n')
  })
  const line = `\n\n${'-'.repeat(80)}\n\n`
  const busybox =
    'busybox, in busybox-image.tar, is a program of its own under the GNU General Public License, version 2, as Debian builds it; its source is the source package busybox of the same version.'
  return `podd ${version} contains:${line}${[...sections, busybox].join(line)}\n`
}

if (import.meta.main) {
  const [directory] = process.argv.slice(2)
  if (directory === undefined || !existsSync(directory)) {
    console.error('usage: node packaging/documents.ts DIR')
    process.exit(2)
  }
  writeFileSync(join(directory, 'share/man/man1/podd.1'), await commandManual(verbs))
  writeFileSync(join(directory, 'share/man/man5/podd.yaml.5'), settingsManual())
  writeFileSync(join(directory, 'NOTICES'), notices())
}
