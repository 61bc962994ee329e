/*
 * node tools/mutants.ts [PATH …] [--every=N] [--depth=N]: plants mutants, one at a time, in the deciders (`src/decide/`, or
 * the files and folders that are named), has the unit tests that reach the file run, and names each mutant that no test
 * notices. A mutant is one operator exchanged for another. No file is changed: the tests load the mutant in its place.
 * `--every` plants each Nth one only; `--depth` takes only tests that import the file over so many others (4).
 */
import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseAst } from 'rolldown/parseAst'
import { createVitest } from 'vitest/node'
import type { TestSpecification, Vitest } from 'vitest/node'

const root = join(import.meta.dirname, '..')

/** How long a mutant may keep its tests from ending: it may have made a loop endless. */
const longestRunMs = 120_000

interface Mutant {
  readonly line: number
  readonly from: string
  readonly to: string
  readonly start: number
  readonly end: number
}

/** Each is right in some case that a test should know of. */
const exchanges: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
}

const calls: Readonly<Record<string, string>> = { some: 'every', every: 'some', max: 'min', min: 'max' }

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

/** All nodes below this one that are code; types aren't. */
function* nodesOf(node: Node): Generator<Node> {
  yield node
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (isNode(child) && !child.type.startsWith('TSType') && !child.type.startsWith('TSInterface'))
        yield* nodesOf(child)
}

/** The mutants of a text, in its order. */
function computeMutants(text: string): readonly Mutant[] {
  const program: unknown = parseAst(text, { lang: 'ts' })
  if (!isNode(program)) throw new Error('no program')
  const mutants: Mutant[] = []
  const add = (start: number, end: number, to: string): void => {
    const line = text.slice(0, start).split('\n').length
    mutants.push({ line, from: text.slice(start, end), to, start, end })
  }
  for (const node of nodesOf(program)) {
    const { left, right, operator, argument, test, property } = node
    if (
      (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') &&
      isNode(left) &&
      isNode(right)
    ) {
      const other = exchanges[String(operator)]
      const at = text.indexOf(String(operator), left.end)
      const isText = operator === '+' && /['"`]/u.test(text.slice(left.start, right.end))
      if (other !== undefined && at < right.start && !isText) add(at, at + String(operator).length, other)
    }
    if (node.type === 'UnaryExpression' && operator === '!' && isNode(argument))
      add(node.start, node.start + 1, '')
    if ((node.type === 'IfStatement' || node.type === 'ConditionalExpression') && isNode(test))
      if (test.type !== 'BinaryExpression' && test.type !== 'UnaryExpression')
        add(test.start, test.end, `!(${text.slice(test.start, test.end)})`)
    if (node.type === 'Literal' && typeof node['value'] === 'boolean')
      add(node.start, node.end, String(!node['value']))
    if (node.type === 'MemberExpression' && isNode(property)) {
      const other = calls[text.slice(property.start, property.end)]
      if (other !== undefined) add(property.start, property.end, other)
    }
  }
  return mutants.toSorted((one, next) => one.start - next.start)
}

/** By file, those that import it and aren't types alone. */
function readImporters(): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>()
  for (const path of globSync(['src/**/*.ts', 'test/unit/**/*.ts', 'test/support/**/*.ts'], { cwd: root })) {
    const from = join(root, path)
    const text = readFileSync(from, 'utf8')
    for (const [, isType, target = ''] of text.matchAll(
      /^(?:import|export)( type)? [^']*?from '(\.[^']+)'/gmu,
    )) {
      if (isType !== undefined) continue
      const to = resolve(dirname(from), target)
      importers.set(to, [...(importers.get(to) ?? []), from])
    }
  }
  return importers
}

/** The tests that reach a file over at most so many others, the nearest first. */
function relatedTests(
  importers: ReadonlyMap<string, readonly string[]>,
  path: string,
  depth: number,
): readonly string[] {
  const seen = new Set([path])
  let level: readonly string[] = [path]
  for (let at = 0; at <= depth; at += 1) {
    level = level.flatMap((each) => importers.get(each) ?? []).filter((each) => !seen.has(each))
    for (const each of level) seen.add(each)
  }
  return [...seen].filter((each) => each.endsWith('.test.ts'))
}

interface Planted {
  path: string
  text: string
}

async function openVitest(planted: Planted): Promise<Vitest> {
  return createVitest(
    'test',
    {
      config: false,
      root,
      include: ['test/unit/**/*.test.ts'],
      watch: false,
      pool: 'threads',
      maxWorkers: 2,
      bail: 1,
      // A mutant is no other file.
      fsModuleCache: false,
      reporters: [{}],
      testTimeout: 30_000,
    },
    {
      plugins: [
        {
          name: 'mutant',
          enforce: 'pre',
          transform: (_code, id) => (id === planted.path ? planted.text : undefined),
        },
      ],
    },
  )
}

/** How many of these tests pass; undefined where one fails. */
async function countPasses(vitest: Vitest, specs: readonly TestSpecification[]): Promise<number | undefined> {
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications([...specs])
  // It gives those of earlier runs too.
  const ids = new Set(specs.map(({ moduleId }) => moduleId))
  const modules = testModules.filter(({ moduleId }) => ids.has(moduleId))
  if (unhandledErrors.length > 0 || modules.some((module) => !module.ok())) return undefined
  return modules.reduce((sum, { children }) => sum + [...children.allTests('passed')].length, 0)
}

const mostTries = 5

/**
 * Whether a mutant leaves all these tests as they are. The end that a second failure puts to a run may reach the next run, which
 * then skips tests and fails none: such a run says nothing.
 * @param expected how many pass without it
 */
async function survives(
  vitest: Vitest,
  specs: readonly TestSpecification[],
  expected: number,
): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    const count = await countPasses(vitest, specs)
    if (count === undefined || count === expected) return count !== undefined
    if (tries === mostTries) throw new Error(`${count} of ${expected} tests pass, and none fails`)
  }
}

const nearest = 3

/**
 * Plants the mutants of one file, beginning with the one of this number, and prints a line for each: its number, and whether it
 * survived.
 */
async function plant(path: string, from: number, { every, depth }: Options): Promise<void> {
  const text = readFileSync(path, 'utf8')
  const planted: Planted = { path, text }
  const vitest = await openVitest(planted)
  const specs = new Map((await vitest.globTestSpecifications()).map((spec) => [spec.moduleId, spec]))
  const related = relatedTests(readImporters(), path, depth).flatMap((test) => specs.get(test) ?? [])
  const parts: { readonly specs: readonly TestSpecification[]; readonly expected: number }[] = []
  for (const part of [related.slice(0, nearest), related.slice(nearest)]) {
    if (part.length === 0) continue
    const expected = await countPasses(vitest, part)
    if (expected === undefined) throw new Error('its tests fail as it is')
    parts.push({ specs: part, expected })
  }
  for (const [index, { start, end, to }] of computeMutants(text).entries()) {
    if (index < from || index % every !== 0) continue
    process.stdout.write(`begin ${index}\n`)
    planted.text = text.slice(0, start) + to + text.slice(end)
    vitest.invalidateFile(path)
    let survived = true
    for (const part of parts) survived &&= await survives(vitest, part.specs, part.expected)
    process.stdout.write(`${survived ? 'survived' : 'killed'} ${index}\n`)
  }
  await vitest.close()
  // Failed tests are what is wanted.
  process.exit(0)
}

interface Options {
  readonly every: number
  readonly depth: number
}

/** Has another process plant the mutants of a file, for one may never end. Gives the numbers of those that survived. */
async function plantApart(
  path: string,
  options: Options,
): Promise<{ killed: number; survived: readonly number[] }> {
  const survived: number[] = []
  let killed = 0
  let next = 0
  for (;;) {
    let begun: number | undefined
    const flags = [`--only=${next}`, `--every=${options.every}`, `--depth=${options.depth}`]
    const child = spawn(process.execPath, [import.meta.filename, ...flags, path], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    let errors = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
    let timer = setTimeout(() => child.kill('SIGKILL'), longestRunMs)
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      clearTimeout(timer)
      timer = setTimeout(() => child.kill('SIGKILL'), longestRunMs)
      const lines = (said + chunk).split('\n')
      said = lines.pop() ?? ''
      for (const line of lines) {
        const [word, number] = line.split(' ')
        if (word === 'begin') begun = Number(number)
        if (word !== 'survived' && word !== 'killed') continue
        if (word === 'survived') survived.push(Number(number))
        else killed += 1
        begun = undefined
      }
    })
    const code = await new Promise<number | null>((settle) => child.once('close', settle))
    clearTimeout(timer)
    if (code === 0) return { killed, survived }
    if (begun === undefined) throw new Error(`${relative(root, path)}: ${errors}`)
    // It ended its process, or kept it from ending.
    killed += 1
    next = begun + 1
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      every: { type: 'string', default: '1' },
      depth: { type: 'string', default: '4' },
      only: { type: 'string' },
    },
  })
  const options = { every: Number(values.every), depth: Number(values.depth) }
  const [named] = positionals
  if (values.only !== undefined && named !== undefined)
    return plant(resolve(named), Number(values.only), options)
  const places = positionals.length === 0 ? ['src/decide'] : positionals
  const paths = places.flatMap((place) =>
    place.endsWith('.ts') ? [resolve(place)] : globSync(`${resolve(place)}/**/*.ts`).toSorted(),
  )
  let planted = 0
  let survivors = 0
  for (const path of paths) {
    const text = readFileSync(path, 'utf8')
    const mutants = computeMutants(text)
    if (mutants.length === 0) continue
    const { killed, survived } = await plantApart(path, options)
    planted += killed + survived.length
    survivors += survived.length
    const shown = relative(root, path)
    process.stdout.write(`${shown}: ${killed + survived.length} planted, ${survived.length} survived\n`)
    for (const index of survived) {
      const mutant = mutants[index]
      if (mutant === undefined) continue
      const to = mutant.to === '' ? 'nothing' : mutant.to
      process.stdout.write(`  ${shown}:${mutant.line}: ${mutant.from} became ${to}\n`)
    }
  }
  process.stdout.write(`${planted} planted, ${planted - survivors} killed, ${survivors} survived\n`)
  process.exitCode = survivors === 0 ? 0 : 1
}

await main()
