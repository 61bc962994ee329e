import { basename } from 'node:path'
import { textList } from './list-types.ts'
import type { OptionType } from './option-type.ts'
import { option } from './option.ts'

const programs = textList('PROGRAM', (item) => {
  if (item.includes('/') && !item.startsWith('/')) return 'must be the name of a program or an absolute path'
  // The handler of a RuntimeClass (`pkg/apis/node/validation/validation.go`, 1.36).
  return /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/u.test(basename(item))
    ? undefined
    : 'must be a program whose name has only lowercase letters, digits and dashes'
})

/** At least one; no two of a name, since each is a handler of that name. */
const ociPrograms: OptionType<readonly string[]> = {
  ...programs,
  fromText: (text) => withoutTwins(programs.fromText(text)),
  fromFile: (json) => withoutTwins(programs.fromFile(json)),
}

function withoutTwins(
  read: ReturnType<OptionType<readonly string[]>['fromText']>,
): ReturnType<OptionType<readonly string[]>['fromText']> {
  if (read.kind === 'bad') return read
  const names = read.value.map((program) => basename(program))
  const twin = names.find((name, index) => names.indexOf(name) !== index)
  if (names.length === 0) return { kind: 'bad', message: 'must name at least one program' }
  return twin === undefined ? read : { kind: 'bad', message: `must not name ${twin} twice` }
}

/** Which programs run containers; a part of the table in options.ts. */
export const ociRuntimeOptions = {
  ociRuntimes: option({
    field: 'ociRuntimes',
    flag: 'oci-runtimes',
    type: ociPrograms,
    default: ['runc'],
    owner: 'podd',
    secret: false,
    doc: 'The OCI runtimes of the embedded containerd, by name or by path: `runc`, `crun`, or another program with the arguments of runc. Each is the handler of its name for RuntimeClasses; the first runs the pods without a RuntimeClass. A change takes effect for new containers. containerd 2 needs crun 1.14.3.',
  }),
} as const
