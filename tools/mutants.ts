/*
 * node tools/mutants.ts [PATH …] [--sample=N --seed=N] [--component] [--tests=REGEX] [--depth=N] [--workers=N]: plants mutants,
 * one at a time, in the deciders (`src/decide/`, or the files and folders that are named), runs the unit tests that execute
 * it, and names each mutant that no test notices. A mutant is one operator exchanged for another. No file is changed: the
 * tests load a text that has all mutants in it, and each test file runs once with every one of them.
 * `--component` runs component tests too where no unit test notices anything. `--sample` plants so many, drawn at random, the
 * same ones for the same seed. `--tests` takes only test files whose paths match, and `--depth` only those that import the
 * mutated file over so many others (6). What it does meanwhile stands on standard error.
 */
import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseAst } from 'rolldown/parseAst'
import { createVitest } from 'vitest/node'
import type { TestModule, TestSpecification, Vitest } from 'vitest/node'

const root = join(import.meta.dirname, '..')

/** How long a mutant may keep its tests from ending: it may have made a loop endless. */
const longestRunMs = 300_000

const longestTestMs = 20_000

interface Mutant {
  readonly path: string
  readonly line: number
  readonly from: string
  readonly to: string
  readonly start: number
  readonly end: number
  /** The expression that it is in. */
  readonly node: Node
  /** How it becomes one that a test chooses: see `withAll`. */
  readonly kind: 'values' | 'branch' | 'not' | 'condition' | 'call'
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

const calls: ReadonlyMap<string, string> = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['max', 'min'],
  ['min', 'max'],
])

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
      if (isNode(child) && !/^TS(?:Type|Interface|Literal)/u.test(child.type)) yield* nodesOf(child)
}

function parse(text: string): Node {
  const program: unknown = parseAst(text, { lang: 'ts' })
  if (!isNode(program)) throw new Error('no program')
  return program
}

/** The mutants of a file, in its order. */
function computeMutants(path: string): readonly Mutant[] {
  const text = readFileSync(path, 'utf8')
  const mutants: Mutant[] = []
  const add = (kind: Mutant['kind'], node: Node, start: number, end: number, to: string): void => {
    const line = text.slice(0, start).split('\n').length
    mutants.push({ path, line, from: text.slice(start, end), to, start, end, node, kind })
  }
  for (const node of nodesOf(parse(text))) {
    const { left, right, operator, argument, test, property } = node
    if (
      (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') &&
      isNode(left) &&
      isNode(right)
    ) {
      const other = exchanges[String(operator)]
      const at = text.indexOf(String(operator), left.end)
      const isText = operator === '+' && /['"`]/u.test(text.slice(left.start, right.end))
      const kind = node.type === 'LogicalExpression' ? 'branch' : 'values'
      if (other !== undefined && at < right.start && !isText)
        add(kind, node, at, at + String(operator).length, other)
    }
    if (node.type === 'UnaryExpression' && operator === '!' && isNode(argument))
      add('not', node, node.start, node.start + 1, '')
    if ((node.type === 'IfStatement' || node.type === 'ConditionalExpression') && isNode(test))
      if (test.type !== 'BinaryExpression' && test.type !== 'UnaryExpression')
        add('condition', test, test.start, test.end, `!(${text.slice(test.start, test.end)})`)
    if (node.type === 'Literal' && typeof node['value'] === 'boolean')
      add('condition', node, node.start, node.end, String(!node['value']))
    if (node.type === 'MemberExpression' && isNode(property)) {
      const other = calls.get(text.slice(property.start, property.end))
      if (other !== undefined && node['computed'] !== true)
        add('call', node, property.start, property.end, other)
    }
  }
  return mutants.toSorted((one, next) => one.start - next.start)
}

/** More than there are, in any number of files. */
const maxMutants = 100_000

/** How many mutated operators a test may evaluate. */
const maxCalls = 20_000_000

const noMutant = `{ current: undefined, calls: 0, reached: new Uint8Array(${maxMutants}) }`

interface Edit {
  readonly start: number
  readonly end: number
  readonly to: string
  /** Of two edits at one place the one with the lower rank comes first. */
  readonly rank: number
}

/**
 * A text that has all mutants in it, each in effect while `globalThis.mutants.current` is its number. It notes the numbers of
 * those that it reaches.
 */
function withAll(text: string, mutants: ReadonlyMap<number, Mutant>): string {
  const edits = [...mutants].flatMap(([number, { node, kind, from, to, start, end }]): readonly Edit[] => {
    // The longer of two expressions is the outer one, and of one expression the first mutant.
    const rank = (node.end - node.start) * maxMutants - number
    const isOn = `isMutant$(${number})`
    const value = `mutant$${number}`
    const around = (before: string, after: string): readonly Edit[] => [
      { start: node.start, end: node.start, to: before, rank: -rank },
      { start: node.end, end: node.end, to: after, rank },
    ]
    const at = (other: string): Edit => ({ start, end, to: other, rank: 0 })
    switch (kind) {
      case 'values':
        return around(`calculate$(${isOn} ? '${to}' : '${from}', `, ')').concat(at(','))
      case 'branch':
        return around(`((${value} = `, `) : ${value})`).concat(
          at(`, (${value} ? true : false) === (${isOn} ? '${to}' : '${from}').startsWith('&')) ? (`),
        )
      case 'not':
        return around(`(${value} = (`, `), ${isOn} ? ${value} : !${value})`).concat(at(''))
      case 'condition':
        return around(`(${isOn} === !(`, '))')
      case 'call':
        return [at(`[${isOn} ? '${to}' : '${from}']`)]
    }
  })
  let all = ''
  let from = 0
  for (const edit of edits.toSorted((one, next) => one.start - next.start || one.rank - next.rank)) {
    const between = text.slice(from, edit.start)
    all += (edit.to.startsWith('[') ? between.replace(/(\?\.)?\.?$/u, '$1') : between) + edit.to
    from = edit.end
  }
  return `${all}${text.slice(from)}
var mutants$, ${[...mutants.keys()].map((number) => `mutant$${number}`).join(', ')}
function isMutant$(number) {
  mutants$ ??= globalThis.mutants ??= ${noMutant}
  mutants$.reached[number] = 1
  // A mutant may have made a loop endless.
  if (++mutants$.calls > ${maxCalls}) throw new Error('a loop has no end')
  return mutants$.current === number
}
function calculate$(operator, left, right) {
  switch (operator) {
    case '===': return left === right
    case '!==': return left !== right
    case '<': return left < right
    case '<=': return left <= right
    case '>': return left > right
    case '>=': return left >= right
    case '+': return left + right
    case '-': return left - right
    case '*': return left * right
    case '/': return left / right
  }
}
`
}

const names = { suite: 'mutant', none: 'without a mutant' } as const

/**
 * A test file that has its tests run without a mutant, once with each of these, and without one again. It tells which mutants it
 * reaches, and which when it is loaded, where none is in effect yet.
 */
function repeatTests(text: string, numbers: readonly number[]): string {
  const { body } = parse(text)
  const imports = (Array.isArray(body) ? body : []).filter(
    (each): each is Node => isNode(each) && each.type === 'ImportDeclaration',
  )
  let rest = ''
  let from = 0
  for (const { start, end } of imports) {
    rest += text.slice(from, start)
    from = end
  }
  rest += text.slice(from)
  const asyncWord = /^await /mu.test(rest) ? 'async ' : ''
  return `${imports.map(({ start, end }) => text.slice(start, end)).join('\n')}
import * as vitest$ from 'vitest'
import { writeSync as writeSync$ } from 'node:fs'
globalThis.mutants ??= ${noMutant}
const reached$ = () => [...globalThis.mutants.reached.entries()].flatMap(([number, isReached]) => (isReached ? [number] : []))
const loaded$ = reached$()
const tests$ = ${asyncWord}() => {
${rest}
}
for (const number of [undefined, ${numbers.map((number) => `${number}, `).join('')}undefined])
  vitest$.describe(number === undefined ? '${names.none}' : '${names.suite} ' + number, ${asyncWord}() => {
    let failed = false
    const begin = () => {
      writeSync$(1, 'begin ' + (number ?? -1) + '\\n')
      globalThis.mutants.current = number
      globalThis.mutants.calls = 0
    }
    const end = () => { globalThis.mutants.current = undefined }
    vitest$.beforeAll(begin)
    vitest$.beforeEach(({ skip }) => {
      if (failed) skip()
      globalThis.mutants.calls = 0
    })
    vitest$.afterEach(({ task }) => { failed ||= task.result?.state === 'fail' && number !== undefined })
    vitest$.afterAll(end)
    begin()
    try {
      ${asyncWord === '' ? '' : 'await '}tests$()
    } catch (error) {
      vitest$.it('is collected', () => { throw error })
    } finally {
      end()
    }
  })
vitest$.afterAll(({}, suite) => {
  suite.file.meta.mutants = { loaded: loaded$, reached: reached$() }
})
`
}

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** By file, those that import it and aren't types alone. */
function readImporters(): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>()
  for (const path of globSync(['src/**/*.ts', 'tools/**/*.ts', 'test/**/*.ts'], { cwd: root })) {
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

/** The tests that reach a file over at most so many others, each with that number. */
function relatedTests(
  importers: ReadonlyMap<string, readonly string[]>,
  path: string,
  depth: number,
): ReadonlyMap<string, number> {
  const seen = new Map([[path, 0]])
  let level: readonly string[] = [path]
  for (let at = 0; at <= depth; at += 1) {
    level = [...new Set(level.flatMap((each) => importers.get(each) ?? []))].filter((each) => !seen.has(each))
    for (const each of level) seen.set(each, at)
  }
  return new Map([...seen].filter(([each]) => each.endsWith('.test.ts')))
}

interface Planted {
  /** By file. */
  texts: ReadonlyMap<string, string>
  /** The mutants with which the tests of a file are repeated; undefined: these run once, as they are. */
  repeated: readonly number[] | undefined
}

async function openVitest(planted: Planted, { workers, component }: Options): Promise<Vitest> {
  return createVitest(
    'test',
    {
      config: false,
      root,
      include: [`test/${component ? '{unit,component}' : 'unit'}/**/*.test.ts`],
      watch: false,
      pool: 'threads',
      maxWorkers: workers,
      // A mutant is no other file.
      fsModuleCache: false,
      reporters: [{}],
      testTimeout: longestTestMs,
      hookTimeout: longestTestMs,
    },
    {
      plugins: [
        {
          name: 'mutant',
          enforce: 'pre',
          transform: (code, id) => {
            const text = planted.texts.get(id)
            if (text !== undefined) return text
            const isRepeated = planted.repeated !== undefined && id.endsWith('.test.ts')
            return isRepeated ? repeatTests(code, planted.repeated ?? []) : undefined
          },
        },
      ],
    },
  )
}

async function run(vitest: Vitest, specs: readonly TestSpecification[]) {
  for (const { moduleId } of specs) vitest.invalidateFile(moduleId)
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications([...specs])
  // It gives those of earlier runs too.
  const ids = new Set(specs.map(({ moduleId }) => moduleId))
  const modules = testModules.filter(({ moduleId }) => ids.has(moduleId))
  const failed = modules.filter((module) => !module.ok())
  return { modules, hasFailed: unhandledErrors.length > 0 || failed.length > 0 }
}

const slowMs = 3000

/** How many tests pass; undefined where one fails. */
function countPasses({ modules, hasFailed }: Awaited<ReturnType<typeof run>>): number | undefined {
  if (hasFailed) return undefined
  return modules.reduce((sum, { children }) => sum + Array.from(children.allTests('passed')).length, 0)
}

/** What a test file reaches of the mutants. */
interface Reach {
  readonly spec: TestSpecification
  readonly reached: ReadonlySet<number>
  /** Those that it reaches when it is loaded: each of these takes effect only where the file is loaded with it. */
  readonly loaded: ReadonlySet<number>
  /** Whether its tests can be repeated in one process. */
  readonly isRepeatable: boolean
  readonly isSlow: boolean
}

function readReach(spec: TestSpecification, module: TestModule): Reach {
  const meta: { readonly mutants?: unknown } & object = module.meta()
  const { mutants } = meta
  const read = (key: 'loaded' | 'reached'): ReadonlySet<number> => {
    const value: unknown = isRecord(mutants) ? mutants[key] : undefined
    return new Set(Array.isArray(value) ? value.filter((each) => typeof each === 'number') : [])
  }
  const isSlow = module.diagnostic().duration > slowMs
  return { spec, reached: read('reached'), loaded: read('loaded'), isRepeatable: module.ok(), isSlow }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** The mutants that the repeated tests of a file notice; undefined where they fail without one. */
function readKilled(module: TestModule): ReadonlySet<number> | undefined {
  const killed = new Set<number>()
  for (const suite of module.children.suites()) {
    const hasFailed = suite.state() === 'failed'
    if (!hasFailed) continue
    const number = Number(suite.name.slice(names.suite.length))
    if (suite.name === names.none || Number.isNaN(number)) return undefined
    killed.add(number)
  }
  return module.errors().length > 0 ? undefined : killed
}

/** How many of the nearest test files run with a mutant that takes effect when its file is loaded. */
const maxAlone = 10

/** Plants these mutants, and prints a line for each: its number, and whether it survived. */
async function plant(mutants: ReadonlyMap<number, Mutant>, options: Options): Promise<void> {
  const byPath = Map.groupBy(mutants, ([, { path }]) => path)
  const planted: Planted = {
    texts: new Map(
      [...byPath].map(([path, each]) => [path, withAll(readFileSync(path, 'utf8'), new Map(each))]),
    ),
    repeated: [],
  }
  const vitest = await openVitest(planted, options)
  const importers = readImporters()
  const distances = new Map(
    [...byPath.keys()].map((path) => [path, relatedTests(importers, path, options.depth)]),
  )
  const alive = new Set(mutants.keys())
  const tell = (word: 'begin' | 'killed' | 'survived', number: number): void => {
    process.stdout.write(`${word} ${number}\n`)
    if (word === 'killed') alive.delete(number)
  }
  const distanceOf = (number: number, spec: TestSpecification): number | undefined =>
    distances.get(mutants.get(number)?.path ?? '')?.get(spec.moduleId)

  /** Has these test files run with all mutants at once, and gives what each reaches. */
  const repeat = async (specs: readonly TestSpecification[]): Promise<readonly Reach[]> => {
    planted.repeated = []
    const { modules } = await run(vitest, specs)
    const reaches = specs.flatMap((spec) => {
      const module = modules.find(({ moduleId }) => moduleId === spec.moduleId)
      return module === undefined ? [] : readReach(spec, module)
    })
    // First those that take little time, the nearest first: they leave few mutants to the others.
    const steps = reaches
      .flatMap((reach) => [...Array(options.depth + 1).keys()].map((distance) => ({ reach, distance })))
      .toSorted(
        (one, next) => Number(one.reach.isSlow) - Number(next.reach.isSlow) || one.distance - next.distance,
      )
    for (const { reach, distance } of steps) {
      const { spec, reached, loaded, isRepeatable } = reach
      planted.repeated = [...alive].filter(
        (number) => reached.has(number) && !loaded.has(number) && distanceOf(number, spec) === distance,
      )
      if (!isRepeatable || planted.repeated.length === 0) continue
      const [module] = (await run(vitest, [spec])).modules
      const killed = (module && readKilled(module)) ?? []
      for (const number of killed) tell('killed', number)
      const shown = relative(root, spec.moduleId)
      process.stdout.write(`note ${shown} ran with ${planted.repeated.length} mutants; ${alive.size} live\n`)
    }
    return reaches
  }

  const specs = (await vitest.globTestSpecifications()).filter(
    ({ moduleId }) =>
      options.tests.test(relative(root, moduleId)) &&
      [...distances.values()].some((each) => each.has(moduleId)),
  )
  const isComponent = ({ moduleId }: TestSpecification): boolean => moduleId.includes('/test/component/')
  const unit = await repeat(specs.filter((spec) => !isComponent(spec)))
  const isAlive = ({ moduleId }: TestSpecification): boolean =>
    [...alive].some((number) => distances.get(mutants.get(number)?.path ?? '')?.has(moduleId))
  const component = options.component
    ? await repeat(specs.filter((spec) => isComponent(spec) && isAlive(spec)))
    : []
  planted.repeated = undefined
  const setTexts = (texts: Planted['texts']): void => {
    planted.texts = texts
    for (const path of byPath.keys()) vitest.invalidateFile(path)
  }
  const plain = new Map<string, number | undefined>()
  /** How many tests of a file pass without a mutant; undefined where one fails. */
  const countPlain = async (spec: TestSpecification): Promise<number | undefined> => {
    if (plain.has(spec.moduleId)) return plain.get(spec.moduleId)
    setTexts(new Map())
    const passes = countPasses(await run(vitest, [spec]))
    plain.set(spec.moduleId, passes)
    return passes
  }
  for (const number of Array.from(alive)) {
    const mutant = mutants.get(number)
    if (mutant === undefined) continue
    const { path, start, end, to } = mutant
    const text = readFileSync(path, 'utf8')
    const alone = [...unit, ...component]
      .filter(({ reached, loaded, isRepeatable }) => (isRepeatable ? loaded : reached).has(number))
      .map(({ spec }) => ({ spec, distance: distanceOf(number, spec) ?? Infinity }))
      .toSorted((one, next) => one.distance - next.distance)
    let survived = true
    for (const { spec } of alone.slice(0, maxAlone)) {
      if (!survived) break
      const expected = await countPlain(spec)
      if (expected === undefined) continue
      tell('begin', number)
      setTexts(new Map([[path, text.slice(0, start) + to + text.slice(end)]]))
      survived = countPasses(await run(vitest, [spec])) === expected
    }
    tell(survived ? 'survived' : 'killed', number)
  }
  await vitest.close()
  // Failed tests are what is wanted.
  process.exit(0)
}

interface Options {
  readonly tests: RegExp
  readonly depth: number
  readonly workers: number
  readonly component: boolean
}

/** `0-4,7` */
function toRanges(numbers: readonly number[]): string {
  const ranges: { first: number; last: number }[] = []
  for (const number of numbers) {
    const open = ranges.at(-1)
    if (open !== undefined && open.last === number - 1) open.last = number
    else ranges.push({ first: number, last: number })
  }
  return ranges.map(({ first, last }) => `${first}-${last}`).join(',')
}

function fromRanges(text: string): readonly number[] {
  return text.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, at) => first + at)
  })
}

/** Has another process plant mutants, for one may never end. Gives the numbers of those that survived. */
async function plantApart(
  numbers: readonly number[],
  places: readonly string[],
  { tests, depth, workers, component }: Options,
): Promise<ReadonlySet<number>> {
  const survived = new Set<number>()
  let rest = numbers
  while (rest.length > 0) {
    let begun: number | undefined
    const flags = [
      `--numbers=${toRanges(rest)}`,
      `--depth=${depth}`,
      `--workers=${workers}`,
      `--tests=${tests.source}`,
    ]
    if (component) flags.push('--component')
    const child = spawn(process.execPath, [import.meta.filename, ...flags, ...places], {
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
        if (word === 'note') process.stderr.write(`${line.slice('note '.length)}\n`)
        if (word !== 'survived' && word !== 'killed') continue
        rest = rest.filter((each) => each !== Number(number))
        if (word === 'survived') survived.add(Number(number))
      }
    })
    const code = await new Promise<number | null>((settle) => child.once('close', settle))
    clearTimeout(timer)
    if (code === 0) return survived
    if (begun === undefined || begun < 0) throw new Error(`it ended, where no mutant was: ${errors}`)
    // It ended its process, or kept it from ending.
    rest = rest.filter((each) => each !== begun)
  }
  return survived
}

/** The numbers of so many mutants, drawn at random. */
function drawSample(count: number, sample: number, seed: number): readonly number[] {
  const random = seededRandom(seed)
  return Array.from({ length: count }, (_, number) => ({ number, rank: random() }))
    .toSorted((one, next) => one.rank - next.rank)
    .slice(0, sample)
    .map(({ number }) => number)
    .toSorted((one, next) => one - next)
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      sample: { type: 'string' },
      seed: { type: 'string', default: '1' },
      depth: { type: 'string', default: '6' },
      workers: { type: 'string', default: '2' },
      component: { type: 'boolean', default: false },
      tests: { type: 'string', default: '' },
      numbers: { type: 'string' },
    },
  })
  const options = {
    tests: new RegExp(values.tests, 'u'),
    depth: Number(values.depth),
    workers: Number(values.workers),
    component: values.component,
  }
  const places = positionals.length === 0 ? ['src/decide'] : positionals
  const mutants = places
    .flatMap((place) =>
      place.endsWith('.ts') ? [resolve(place)] : globSync(`${resolve(place)}/**/*.ts`).toSorted(),
    )
    .flatMap((path) => computeMutants(path))
  const select = (numbers: readonly number[]): ReadonlyMap<number, Mutant> =>
    new Map(
      numbers.flatMap((number) => {
        const mutant = mutants[number]
        return mutant === undefined ? [] : [[number, mutant] as const]
      }),
    )
  if (values.numbers !== undefined) return plant(select(fromRanges(values.numbers)), options)
  const numbers =
    values.sample === undefined
      ? [...mutants.keys()]
      : drawSample(mutants.length, Number(values.sample), Number(values.seed))
  const survived = await plantApart(numbers, places, options)
  for (const { path, line, from, to } of select([...survived].toSorted((one, next) => one - next)).values())
    process.stdout.write(`${relative(root, path)}:${line}: ${from} became ${to || 'nothing'}\n`)
  process.stdout.write(
    `${numbers.length} planted, ${numbers.length - survived.size} killed, ${survived.size} survived\n`,
  )
  process.exitCode = survived.size === 0 ? 0 : 1
}

await main()
