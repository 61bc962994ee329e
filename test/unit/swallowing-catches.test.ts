import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { describe, expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../../src')

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

interface Span {
  readonly start: number
  readonly end: number
}

/** A handler of errors: what it does with one, and the statement that it belongs to. */
interface Handler {
  readonly body: Node
  readonly param: Node | undefined
  readonly statement: Node
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value && 'end' in value
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flat().filter(isNode)
}

function field(node: Node, name: string): unknown {
  return Object.entries(node).find(([key]) => key === name)?.[1]
}

function nodeIn(node: Node, name: string): Node | undefined {
  const value = field(node, name)
  return isNode(value) ? value : undefined
}

function contains(node: Node, matches: (inner: Node) => boolean): boolean {
  return matches(node) || childrenOf(node).some((child) => contains(child, matches))
}

/** The functions that are given to `.catch(…)`, or as the second one to `.then(…, …)`. */
function rejectionHandler(call: Node): Node | undefined {
  const callee = call.type === 'CallExpression' ? nodeIn(call, 'callee') : undefined
  if (callee?.type !== 'MemberExpression') return undefined
  const property = nodeIn(callee, 'property')
  const method = property === undefined ? undefined : field(property, 'name')
  const given = [field(call, 'arguments')].flat().filter(isNode)
  const handler = method === 'catch' ? given[0] : method === 'then' ? given[1] : undefined
  return handler?.type === 'ArrowFunctionExpression' || handler?.type === 'FunctionExpression'
    ? handler
    : undefined
}

/** What a comment above may explain; a block is no more than its statements. */
const statements = /^(?!Block).*Statement$|Declaration$|^(?:PropertyDefinition|Property)$/u

function handlersOf(node: Node, statement: Node = node): readonly Handler[] {
  const own = statements.test(node.type) ? node : statement
  const found: Handler[] = []
  const clause = node.type === 'TryStatement' ? nodeIn(node, 'handler') : undefined
  const body = clause === undefined ? undefined : nodeIn(clause, 'body')
  if (clause !== undefined && body !== undefined) {
    found.push({ body, param: nodeIn(clause, 'param'), statement: node })
  }
  const handler = rejectionHandler(node)
  const handling = handler === undefined ? undefined : nodeIn(handler, 'body')
  if (handler !== undefined && handling !== undefined) {
    found.push({ body: handling, param: [field(handler, 'params')].flat().find(isNode), statement: own })
  }
  return [...found, ...childrenOf(node).flatMap((child) => handlersOf(child, own))]
}

const logs = new Set(['debug', 'info', 'warn', 'error', 'fatal'])

/** Whether it uses the error, throws another one, or logs. */
function isHandling({ body, param }: Handler): boolean {
  const name = param === undefined ? undefined : field(param, 'name')
  return contains(body, (node) => {
    if (node.type === 'ThrowStatement') return true
    if (node.type === 'Identifier') return name !== undefined && field(node, 'name') === name
    const callee = node.type === 'CallExpression' ? nodeIn(node, 'callee') : undefined
    const property = callee === undefined ? undefined : nodeIn(callee, 'property')
    return property !== undefined && logs.has(String(field(property, 'name')))
  })
}

/** The lines, as `path:line`, of handlers in `text` that swallow errors and do not say why. */
function findSilent(path: string, text: string): readonly string[] {
  const { program, comments, errors } = parseSync(path, text)
  if (errors.length > 0 || !isNode(program)) throw new Error(`${path} cannot be parsed`)
  const lineOf = (offset: number): number => text.slice(0, offset).split('\n').length
  const isExplained = ({ body, statement }: Handler): boolean =>
    comments.some((comment: Span) => {
      const isWithin = comment.start >= body.start && comment.end <= body.end
      const isAbove =
        comment.end <= body.start &&
        [lineOf(statement.start), lineOf(body.start)].includes(lineOf(comment.end) + 1)
      return isWithin || isAbove
    })
  return handlersOf(program)
    .filter((handler) => !isHandling(handler) && !isExplained(handler))
    .map(({ body }) => `${path}:${lineOf(body.start)}`)
}

/** Text with one handler, and whether it is silent. */
const handlers: readonly (readonly [string, string, boolean])[] = [
  ['an empty catch', 'try { a() } catch {}', true],
  ['a catch that gives a default', 'try { a() } catch { b = 1 }', true],
  ['a catch that ignores its error', 'try { a() } catch (error) { b() }', true],
  ['a rejection that is dropped', 'void a().catch(() => undefined)', true],
  ['a rejection that is ignored', 'a().catch((error) => {})', true],
  ['a rejection that becomes a value', 'const b = await a().catch(() => [])', true],
  ['a second argument of then', 'a().then(() => true, () => false)', true],
  ['a function expression', 'a().catch(function () {})', true],
  ['a comment further above', '// Harmless.\n\ntry { a() } catch {}', true],
  ['a comment of another statement', '// Another.\nb()\na().catch(() => {})', true],
  ['a comment above the function', '// It fails.\nfunction f() {\n  try { a() } catch {}\n}', true],
  [
    'a comment above another property',
    'const o = {\n  // Of b.\n  b,\n  a: () => c().catch(() => {}),\n}',
    true,
  ],
  ['a comment in the catch', 'try { a() } catch {\n  // Gone already.\n}', false],
  ['a comment above the try', '// Gone already.\ntry { a() } catch {}', false],
  ['a comment above the statement', '// Gone already.\nawait a().catch(() => {})', false],
  ['a comment above the handler', 'a().then(\n  b,\n  // Gone already.\n  () => {},\n)', false],
  ['a comment above the property', 'const o = {\n  // Gone.\n  a: () => c().catch(() => {}),\n}', false],
  ['an error that is used', 'try { a() } catch (error) { b(error) }', false],
  ['another error', "try { a() } catch { throw new Error('b') }", false],
  ['a line in the log', "try { a() } catch { logger.warn({}, 'b') }", false],
  ['a function with a name', 'a().catch(ignore)', false],
  ['a rejection that is returned', 'a().catch((error) => error)', false],
]

describe('a handler that swallows errors', () => {
  test.each(handlers)('is found or not: %s', (_title, text, isSilent) => {
    expect(findSilent('planted.ts', text)).toHaveLength(isSilent ? 1 : 0)
  })

  test('says why, all over src', () => {
    const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.ts'),
    )
    expect(paths.length).toBeGreaterThan(300)
    const silent = paths.flatMap((path) => {
      const text = readFileSync(join(src, path), 'utf8')
      return text.includes('catch') || text.includes('.then(') ? findSilent(path, text) : []
    })
    expect(silent).toEqual([])
  })
})
