import type { FaultReason, FieldPath, FieldProblem } from '../schema/field-path.ts'

/**
 * Merges the schema's problems with those of validation, without the ones that only follow from the former: where a
 * field can't be read, validation sees a replacement.
 * @param meant the fields that unknown ones were probably meant for
 */
export function mergeProblems(
  checked: readonly FieldProblem[],
  meant: readonly FieldPath[],
  validated: readonly FieldProblem[],
): readonly FieldProblem[] {
  const errors = checked.filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return [...checked, ...validated]
  const named = checked.map((problem) => asApiNames(problem))
  // A field that podd refuses can be read, and may have further problems.
  const unread = errors.filter(({ reason }) => reason !== 'RefusedHere')
  const faulty = new Set([...unread.map(({ path }) => path), ...meant].map((path) => key(path)))
  const parentsOf = (problems: readonly FieldProblem[]): ReadonlySet<string> =>
    new Set(problems.map(({ path }) => key(path.slice(0, -1))))
  const parents = parentsOf(errors)
  const unreadParents = parentsOf(unread)
  const isUnread = errors.some(
    ({ reason }) => reason === 'FieldValueTypeInvalid' || reason === 'UnknownField',
  )
  const isConsequence = ({ path, near, reason, isWhole }: FieldProblem): boolean => {
    if (isWhole === true) return false
    if (reason === 'FieldValueNotFound' && isUnread) return true
    if (unreadParents.has(key(path))) return true
    if (reason === 'FieldValueRequired' && parents.has(key(path))) return true
    if (path.at(-2) === 'appArmorProfile' && faulty.has(key([...path.slice(0, -1), 'type']))) return true
    return [path, near ?? []].some((own) => own.some((_, index) => faulty.has(key(own.slice(0, index + 1)))))
  }
  const wholes = new Set(
    validated.filter(({ isWhole }) => isWhole).map(({ path, near }) => key(near ?? path)),
  )
  const isUnseen = ({ path, reason }: FieldProblem): boolean =>
    aboutValues.has(reason) && path.some((_, index) => wholes.has(key(path.slice(0, index))))
  const all = [
    ...named.filter((problem) => wholes.size === 0 || !isUnseen(problem)),
    ...validated.filter((problem) => !isConsequence(problem)),
  ]
  // The template of the name has the problem.
  return errors.some(({ path }) => key(path) === key(generateName))
    ? all.filter((problem) => !isMissingName(problem))
    : all
}

/** Fields that the API server reports without the index of their item. */
const unindexed: ReadonlySet<string | number | undefined> = new Set(['mountPropagation', 'recursiveReadOnly'])
const aboutValues: ReadonlySet<FaultReason | undefined> = new Set([
  'FieldValueRequired',
  'FieldValueNotSupported',
])

/** The problem with the field's name in the API server's validation. */
function asApiNames(problem: FieldProblem): FieldProblem {
  const { path } = problem
  if (!aboutValues.has(problem.reason)) return problem
  if (unindexed.has(path.at(-1))) {
    return { ...problem, path: path.filter((_, index) => index !== path.length - 2), near: path }
  }
  const items = path.indexOf('items')
  if (path[items - 1] !== 'downwardAPI') return problem
  return { ...problem, path: [...path.slice(0, items), ...path.slice(items + 2)], near: path }
}

const generateName = ['metadata', 'generateName']

function isMissingName({ path, reason }: FieldProblem): boolean {
  return reason === 'FieldValueRequired' && path.length === 2 && path[0] === 'metadata' && path[1] === 'name'
}

function key(path: FieldPath): string {
  return JSON.stringify(path)
}
