import { isPodDocument } from '../../pod/objects/document.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'
import { fieldValidationFlag, formatProblemLine, readManifests } from '../local/read-manifests.ts'

export const validateVerb: Verb = {
  usage: 'validate FILE... [--field-validation Strict|Warn]',
  help: `Checks manifests as the daemon does, without a daemon and without running anything. Prints every problem as
PATH:LINE:COLUMN: MESSAGE; the exit code is 1 if there are errors. A directory means its .yaml, .yml and .json
files, - means standard input.`,
  flags: [fieldValidationFlag],
  examples: [
    ['validate /etc/pods', 'all that podd would run'],
    ['validate web.yaml db.yaml', 'some files'],
    ['validate - <web.yaml', 'standard input'],
  ],
  async run(context) {
    const { positionals } = context.args
    if (positionals.length === 0) throw new UsageError('validate which files?', 'podd validate FILE...')
    const { files, documents, problems } = await readManifests(context, positionals)
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
      text: problems.map((problem) => `${formatProblemLine(problem)}\n`).join(''),
      exitCode: errors === 0 ? 0 : 1,
    }
  },
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
