/**
 * node packaging/portable-lock.ts: has npm write package-lock.json for every platform, away from node_modules, beside which it
 * leaves out what isn't there; then takes from optional packages which Node they ask for: an npm that runs on an older Node
 * than the pinned one would leave them out without a word, and the pinned Node is the one that uses them.
 * To be run after package.json was changed; test/unit/portable-lock.test.ts tells when it wasn't.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly integrity?: string
        readonly resolved?: string
        readonly optional?: boolean
        readonly engines?: unknown
        readonly optionalDependencies?: Readonly<Record<string, string>>
      }
    >
  >
}

/** The same lock, whose optional packages run on any Node. */
export function portableLock<L extends Lock>(lock: L): L {
  const packages = Object.entries(lock.packages).map(([path, { engines, ...rest }]) => [
    path,
    rest.optional === true || engines === undefined ? rest : { ...rest, engines },
  ])
  return { ...lock, packages: Object.fromEntries(packages) }
}

if (import.meta.main) {
  const directory = mkdtempSync(join(tmpdir(), 'podd-lock-'))
  try {
    for (const name of ['package.json', '.npmrc']) copyFileSync(name, join(directory, name))
    // What an entry lacks npm doesn't ask for: it is to find the package anew, in the version that the others need.
    const old: Lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
    const whole = Object.entries(old.packages).filter(([path, entry]) => path === '' || entry.integrity)
    const file = join(directory, 'package-lock.json')
    writeFileSync(file, JSON.stringify({ ...old, packages: Object.fromEntries(whole) }))
    execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts', '--loglevel=error'], {
      cwd: directory,
      stdio: 'inherit',
    })
    const lock: Lock = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync('package-lock.json', `${JSON.stringify(portableLock(lock), null, 2)}\n`)
  } finally {
    rmSync(directory, { recursive: true })
  }
}
