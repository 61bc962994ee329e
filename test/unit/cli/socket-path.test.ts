import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findSocket } from '../../../src/cli/arguments/socket-path.ts'

let directory = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-socket-'))
  const config = 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\nrunDir: /run/other\n'
  writeFileSync(join(directory, 'config.yaml'), config)
  writeFileSync(join(directory, 'plain.yaml'), config.replace(/runDir.*\n/u, ''))
})

afterEach(() => rmSync(directory, { recursive: true }))

it.each<readonly [what: string, flags: Readonly<Record<string, string>>, env: string, expected: string]>([
  ['the one that is named', { socket: '/s', 'run-dir': '/r' }, '/env', '/s'],
  ['the environment’s', { 'run-dir': '/r' }, '/env', '/env'],
  ['that of the run directory', { 'run-dir': '/r', config: 'config.yaml' }, '', '/r/podd.sock'],
  ['that of the config file', { config: 'config.yaml' }, '', '/run/other/podd.sock'],
  ['the usual one', { config: 'plain.yaml' }, '', '/usual/run/podd.sock'],
  ['that of the usual config file', {}, '', '/run/other/podd.sock'],
])('the socket to talk to is %s', async (_, flags, env, expected) => {
  const usual = { configPath: join(directory, 'config.yaml'), runDir: '/usual/run' }
  const value = (name: string): string | undefined =>
    name === 'config' && flags[name] !== undefined ? join(directory, flags[name]) : flags[name]
  expect(await findSocket({ value }, { env: { PODD_SOCKET: env }, usual })).toBe(expected)
})
