import { isPodDocument } from '../../pod/objects/document.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { configFlag } from '../arguments/socket-path.ts'
import type { Verb } from '../arguments/verb.ts'
import {
  fieldValidationFlag,
  filenameFlag,
  formatProblemLine,
  keyFlag,
  kustomizeFlag,
  readManifests,
  recursiveFlag,
  substituteFlag,
  verifyFlag,
} from '../local/read-manifests.ts'
import { formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'
import { counted } from '../output/table.ts'

export const validateVerb: Verb = {
  usage:
    'validate [-f] FILE... [-k DIRECTORY] [-R] [-o json|yaml] [--field-validation Strict|Warn] [--verify] [--key KEY|FILE]',
  help: `Checks manifests as the daemon does, without running anything. It needs no daemon; with --substitute it asks the
one that runs for the name of the node, where a manifest has \${NODE_NAME}. Prints every problem as
PATH:LINE:COLUMN: MESSAGE; the exit code is 1 if there are errors. With -o json, each has its place, field and reason. A
directory means its .yaml, .yml and .json files, - means standard input; URLs are asked as the daemon asks them.
With a config file it also says what its rules forbid: unknown classes, sysctls, pod security; without one, that is a
warning. With --host, or where --config names the file, it judges this host too, beside the pods of the configured directories:
host ports that are held, resources that are lacking.`,
  flags: [
    filenameFlag,
    kustomizeFlag,
    recursiveFlag,
    fieldValidationFlag,
    substituteFlag,
    verifyFlag,
    keyFlag,
    { name: 'host', doc: 'Judges the ports and the room of this host too, with its config.' },
    configFlag,
    reportFlag('a line for each problem'),
  ],
  examples: [
    ['validate /etc/pods', 'all that podd would run'],
    ['validate web.yaml db.yaml', 'some files'],
    ['validate https://fleet.example/pods.yaml', 'what a URL answers'],
    ['validate - <web.yaml', 'standard input'],
    ['validate -k overlays/plant', 'what a kustomization makes'],
    ['validate web.yaml --key minisign.pub', 'its signature in web.yaml.minisig, too'],
    ['validate web.yaml --host', 'whether it may run here, beside what does'],
    ['validate web.yaml -o json', 'for other programs'],
  ],
  async run(context) {
    const paths = [...context.args.positionals, ...context.args.values('filename')]
    if (paths.length === 0 && !context.args.has('kustomize'))
      throw new UsageError('validate which files?', 'podd validate FILE...')
    const format = readReportFormat(context.args)
    const { files, documents, problems: found } = await readManifests(context, paths)
    // The daemon's admission is loaded only where needed.
    const { admitManifests } = await import('../local/admit-manifests.ts')
    const problems = [...found, ...(await admitManifests(context, files))]
    const errors = problems.filter(({ severity }) => severity === 'error').length
    const warnings = problems.length - errors
    const pods = documents.filter((document) => isPodDocument(document)).length
    const objects = documents.length - pods
    const summary = [
      counted(pods, 'valid pod'),
      ...(objects === 0 ? [] : [counted(objects, 'other valid object')]),
      counted(errors, 'error'),
      ...(warnings === 0 ? [] : [counted(warnings, 'warning')]),
    ].join(', ')
    context.notify(`${summary} in ${counted(files.length, 'file')}`)
    return {
      kind: 'text',
      text: await formatReport(format, 'ManifestReport', { pods, objects, problems }, () =>
        problems.map((problem) => `${formatProblemLine(problem)}\n`).join(''),
      ),
      exitCode: errors === 0 ? 0 : 1,
    }
  },
}
