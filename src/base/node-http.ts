/**
 * Node's HTTP, without its import: an ES module's `import 'node:http'` evaluates every export, some of which load
 * Node's whole fetch, for about 45 ms and several MiB (Node 26).
 */
export const nodeHttp = process.getBuiltinModule('node:http')
