/**
 * node packaging/portable-lock.ts: makes package-lock.json serve every npm and Node that a clone may meet.
 * To be run after `npm install`; test/unit/portable-lock.test.ts tells when it wasn't.
 *
 * - Every optional package of another platform gets an entry, also where the registry that npm asked has
 *   none of it: npm 11 refuses `npm ci` otherwise. It is never installed here.
 * - Optional packages ask for no version of Node: an npm that runs on an older Node than the pinned one
 *   would leave them out without a word, and the pinned Node is the one that uses them.
 */
import { readFileSync, writeFileSync } from 'node:fs'

interface LockEntry {
  readonly version?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly engines?: unknown
  readonly os?: readonly string[] | string
  readonly cpu?: readonly string[] | string
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>
}

const systems = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
]
const processors = [
  'arm',
  'arm64',
  'ia32',
  'loong64',
  'mips64el',
  'ppc64',
  'riscv64',
  's390x',
  'wasm32',
  'x64',
]

/** The same lock, with what the head of this file says. */
export function portableLock<L extends Lock>(lock: L): L {
  const packages: Record<string, LockEntry> = { ...lock.packages }
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const found = resolve(packages, path, name)
      // A range is met by what npm chose; an exact version only by itself.
      if (found !== undefined && (packages[found]?.version === version || !/^\d/.test(version))) continue
      const place = found === undefined ? `node_modules/${name}` : `${path}/node_modules/${name}`
      packages[place] = {
        version,
        ...(entry.dev === true ? { dev: true } : {}),
        ...platformOf(name),
        optional: true,
      }
    }
  }
  for (const [path, entry] of Object.entries(packages)) {
    const { engines, ...rest } = entry
    if (entry.optional === true && engines !== undefined) packages[path] = rest
  }
  return { ...lock, packages }
}

/** Where Node would find `name` from the package at `path`. */
function resolve(packages: Lock['packages'], path: string, name: string): string | undefined {
  for (
    let directory = path;
    ;
    directory = directory.slice(0, Math.max(0, directory.lastIndexOf('node_modules/') - 1))
  ) {
    const place = `${directory === '' ? '' : `${directory}/`}node_modules/${name}`
    if (place in packages) return place
    if (directory === '') return undefined
  }
}

/** What a package is for, by the convention of its name (`binding-linux-arm64-musl`). */
function platformOf(name: string): Pick<LockEntry, 'os' | 'cpu'> {
  const words = name.split(/[-/]/)
  const os = words.find((word) => systems.includes(word))
  const cpu = words.find((word) => processors.includes(word))
  return { ...(os === undefined ? {} : { os: [os] }), ...(cpu === undefined ? {} : { cpu: [cpu] }) }
}

if (import.meta.main) {
  const lock: Lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  writeFileSync('package-lock.json', `${JSON.stringify(portableLock(lock), null, 2)}\n`)
}
