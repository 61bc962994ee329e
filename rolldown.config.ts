import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { defineConfig } from 'rolldown'
import type { Plugin, PluginContext, RolldownOptions } from 'rolldown'

/** Modules of Node that few calls need, and which load much: each is loaded when one of its exports is first used. */
const seldomNeeded = ['node:https', 'node:zlib']

/**
 * Node's own modules as modules of the bundle, without an import: an import reads every export, and some of those load much
 * more of Node when they are read, some 10 ms for each call of the command line. They are CommonJS, of which the bundle
 * reads an export where it is used.
 */
const builtinsWithoutImport: Plugin = {
  name: 'builtins-without-import',
  resolveId(id, importer) {
    if (!isBuiltin(id)) return undefined
    // rolldown's own code, which has what makes modules of CommonJS.
    if (importer?.startsWith('\0rolldown/') === true) return undefined
    return `\0${id.startsWith('node:') ? id : `node:${id}`}`
  },
  load(id) {
    if (!id.startsWith('\0node:')) return undefined
    const name = id.slice(1)
    const module = `process.getBuiltinModule("${name}")`
    if (!seldomNeeded.includes(name)) return `module.exports = ${module}`
    const getters = Object.keys(process.getBuiltinModule(name) ?? {}).map(
      (key) => `get ${key}() { return ${module}.${key} }`,
    )
    return `module.exports = { ${getters.join(', ')} }`
  },
}

/**
 * What packages load and podd never uses, each as the value that stands in for it: pino's threads for transports, with Node's
 * module of threads, and the arithmetic of 64-bit integers that protobufjs and proto-loader take where there is one, for which
 * V8's WebAssembly is started. podd's messages have numbers.
 */
const unused: readonly {
  readonly id: string
  /** Of whose imports; of all where it isn't given. */
  readonly importer?: RegExp
  readonly value: string
}[] = [
  { id: 'thread-stream', value: 'undefined' },
  { id: 'worker_threads', importer: /\/pino\//u, value: '{ isMainThread: true }' },
  { id: 'long', value: 'undefined' },
]

const withoutUnused: Plugin = {
  name: 'without-unused',
  resolveId(id, importer = '') {
    const index = unused.findIndex((each) => each.id === id && (each.importer?.test(importer) ?? true))
    return index < 0 ? undefined : `\0unused:${index}`
  },
  load(id) {
    const found = id.startsWith('\0unused:') ? unused[Number(id.slice('\0unused:'.length))] : undefined
    return found && `module.exports = ${found.value}`
  },
}

/** What podd takes of undici, each with what it needs itself: the whole of it, with fetch and caches, is 4 MiB more. */
const undiciParts = { Agent: 'agent', Client: 'client', Pool: 'pool', ProxyAgent: 'proxy-agent' }

const partsOfUndici: Plugin = {
  name: 'parts-of-undici',
  resolveId: (id) => (id === 'undici' ? '\0parts-of-undici' : undefined),
  load(id) {
    if (id !== '\0parts-of-undici') return undefined
    const part = (file: string): string =>
      `require(${JSON.stringify(`${import.meta.dirname}/node_modules/undici/lib/${file}.js`)})`
    const getters = Object.entries(undiciParts).map(
      ([name, file]) => `get ${name}() { return ${part(`dispatcher/${file}`)} }`,
    )
    // As undici's own index has it: `request` and its like.
    return `Object.assign(${part('dispatcher/dispatcher')}.prototype, ${part('api/index')})
module.exports = { ${getters.join(', ')} }`
  },
}

/** What `podd get` needs: the modules that the command line and this verb import. They are one file, and nothing else is in it. */
const getRoots = ['src/cli/run-cli.ts', 'src/base/umask.ts', 'src/cli/verbs/get.ts']
let neededByGet: Set<string> | undefined

function isNeededByGet(id: string, context: Pick<PluginContext, 'getModuleInfo'>): boolean {
  if (neededByGet === undefined) {
    const needed = new Set<string>()
    const add = (each: string): void => {
      if (needed.has(each)) return
      needed.add(each)
      for (const imported of context.getModuleInfo(each)?.importedIds ?? []) add(imported)
    }
    for (const root of getRoots) add(`${import.meta.dirname}/${root}`)
    neededByGet = needed
  }
  return neededByGet.has(id)
}

/** Without a word about it Node reads a file first, and then once more, to know that it is a module. */
const declaresModules: Plugin = {
  name: 'declares-modules',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'package.json', source: '{ "type": "module" }\n' })
  },
}

/**
 * One self-contained directory: main.js, lazily loaded chunks beside it (a CLI call loads its verb only), the files of
 * worker threads and processes, and the wire definitions, which package.json's build copies to dist/proto.
 *
 * V8 keeps the text of what is loaded: it is made short, and without a character for which each would take two bytes.
 * The names of functions and classes are kept for stack traces.
 */
const program = defineConfig({
  input: {
    main: 'src/main.ts',
    'decode-worker': 'src/sources/decode-worker.ts',
    'netns-dial-worker': 'src/host/netns-dial-worker.ts',
  },
  platform: 'node',
  plugins: [withoutUnused, partsOfUndici, builtinsWithoutImport, declaresModules],
  output: {
    dir: 'dist',
    format: 'esm',
    cleanDir: true,
    chunkFileNames: '[name]-[hash].js',
    comments: { legal: true, annotation: false, jsdoc: false },
    minify: {
      compress: { keepNames: { function: true, class: true } },
      mangle: { toplevel: false, keepNames: true },
      codegen: { removeWhitespace: true, asciiOnly: true },
    },
    codeSplitting: {
      groups: [
        { name: 'node', test: /^\0node:/u },
        // Reading one file costs less than reading twenty.
        { debugName: 'cli', name: (id, context) => (isNeededByGet(id, context) ? 'cli' : null) },
        { name: 'base', test: /\/src\/(?:base\/(?!logger)|pod\/values\/(?!hash))/u, minShareCount: 2 },
        // The daemon needs these as well, but not the definitions of protobuf, which typed clients alone speak.
        { name: 'api', test: /\/src\/(?:api\/(?!read-protobuf|kubernetes)|cli\/arguments)/u },
      ],
    },
  },
})

const pageFiles = ['icon.svg', 'index.html', 'page.css']

const emitsPageFiles: Plugin = {
  name: 'emits-page-files',
  generateBundle() {
    for (const fileName of pageFiles)
      this.emitFile({ type: 'asset', fileName, source: readFileSync(`src/page/${fileName}`) })
  },
}

/** The status page: one script for browsers, and the files beside it as they are. */
export function pageOptions(dir: string) {
  return {
    input: { page: 'src/page/main.ts' },
    platform: 'browser',
    plugins: [emitsPageFiles],
    output: { dir, format: 'esm', cleanDir: true, entryFileNames: '[name].js', minify: true },
  } as const satisfies RolldownOptions
}

export default [program, defineConfig(pageOptions('dist/page'))]
