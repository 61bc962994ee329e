import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/** Files planted in an empty house: [path, text, the rule it breaks]. */
const violations: readonly (readonly [string, string, string])[] = [
  ['src/decide/calls-up.ts', importOf('../control/loop.ts'), 'no-restricted-imports'],
  ['src/base/calls-up.ts', importOf('../pod/ids.ts'), 'no-restricted-imports'],
  ['src/grpc/calls-up.ts', importOf('../api/routes.ts'), 'no-restricted-imports'],
  ['src/store/calls-up.ts', importOf('../runtime/cri-client.ts'), 'no-restricted-imports'],
  ['src/server/calls-up.ts', importOf('../daemon/run-daemon.ts'), 'no-restricted-imports'],
  ['src/daemon/calls-main.ts', importOf('../main.ts'), 'no-restricted-imports'],
  ['src/translate/types-up.ts', typeImportOf('../server/api.ts'), 'no-restricted-imports'],
  ['src/volumes/calls-sideways.ts', importOf('../logs/reader.ts'), 'no-restricted-imports'],
  ['src/probes/calls-sideways.ts', importOf('../runtime/cri-client.ts'), 'no-restricted-imports'],
  ['src/control/calls-sideways.ts', importOf('../server/api.ts'), 'no-restricted-imports'],
  ['src/logs/passes-on.ts', `export { planted } from '../images/tar.ts'\n`, 'no-restricted-imports'],
  ['src/control/pod/calls-up.ts', importOf('../desired/desired-pods.ts'), 'no-restricted-imports'],
  ['src/control/pod/calls-the-top.ts', importOf('../pod-system.ts'), 'no-restricted-imports'],
  ['src/control/node/calls-sideways.ts', importOf('../desired/desired-pods.ts'), 'no-restricted-imports'],
  ['src/control/pod/calls-out.ts', importOf('../../server/api.ts'), 'no-restricted-imports'],
  ['src/control/images/calls-up.ts', importOf('../pod/host.ts'), 'no-restricted-imports'],
  ['src/control/serving/calls-up.ts', importOf('../images/image-puller.ts'), 'no-restricted-imports'],
  ['src/control/desired/goes-round.ts', importOf('../../control/pod/worker.ts'), 'no-restricted-imports'],
  ['src/control/runtime/calls-up.ts', importOf('../serving/usage.ts'), 'no-restricted-imports'],
  ['src/control/node/waits.ts', importOf('node:timers/promises'), 'no-restricted-imports'],
  ['src/server/requests/calls-up.ts', importOf('../resources/list.ts'), 'no-restricted-imports'],
  ['src/server/streams/calls-sideways.ts', importOf('../http/http-listener.ts'), 'no-restricted-imports'],
  ['src/server/access/calls-up.ts', importOf('../resources/list.ts'), 'no-restricted-imports'],
  ['src/server/routes/calls-up.ts', importOf('../streams/pod-streams.ts'), 'no-restricted-imports'],
  ['src/server/http/calls-the-top.ts', importOf('../create-handler.ts'), 'no-restricted-imports'],
  ['src/cli/output/calls-up.ts', importOf('../verbs/get.ts'), 'no-restricted-imports'],
  ['src/cli/local/calls-up.ts', importOf('../verbs/images.ts'), 'no-restricted-imports'],
  ['src/cli/verbs/calls-the-top.ts', importOf('../run-cli.ts'), 'no-restricted-imports'],
  ['src/cli/verbs/calls-out.ts', importOf('../../daemon/run-daemon.ts'), 'no-restricted-imports'],
  ['src/cli/client/calls-the-top.ts', importOf('../run-cli.ts'), 'no-restricted-imports'],
  ['src/runtime/containerd/calls-up.ts', importOf('../network/pod-network.ts'), 'no-restricted-imports'],
  ['src/runtime/network/calls-the-top.ts', importOf('../embedded-containerd.ts'), 'no-restricted-imports'],
  ['src/decide/images/calls-up.ts', importOf('../sources/diff-pod.ts'), 'no-restricted-imports'],
  ['src/decide/plan/calls-up.ts', importOf('../status/derive-status.ts'), 'no-restricted-imports'],
  ['src/decide/plan/calls-out.ts', importOf('../../translate/identity.ts'), 'no-restricted-imports'],
  ['src/host/in-the-room.ts', importOf('./facts/host-info.ts'), 'no-restricted-imports'],
  ['src/host/cgroups/calls-up.ts', importOf('../facts/host-info.ts'), 'no-restricted-imports'],
  ['src/pod/schema/calls-up.ts', importOf('../decode/decode-pod.ts'), 'no-restricted-imports'],
  [
    'src/sources/http/calls-sideways.ts',
    importOf('../directory/directory-source.ts'),
    'no-restricted-imports',
  ],
  ['src/sources/in-the-room.ts', importOf('./http/http-get.ts'), 'no-restricted-imports'],
  ['src/pod/validation/calls-up.ts', importOf('../objects/document.ts'), 'no-restricted-imports'],
  ['src/pod/values/calls-up.ts', importOf('../schema/types.ts'), 'no-restricted-imports'],
  ['src/decide/reads-the-clock.ts', valueOf('Date.now()'), 'no-restricted-properties'],
  ['src/runtime/reads-another-clock.ts', valueOf('performance.now()'), 'no-restricted-properties'],
  ['src/control/throws-dice.ts', valueOf('Math.random()'), 'no-restricted-properties'],
  ['src/sources/waits.ts', valueOf('setTimeout(String, 1)'), 'no-restricted-globals'],
  ['src/host/ticks.ts', valueOf('setInterval(String, 1)'), 'no-restricted-globals'],
  ['src/store/imports-timers.ts', importOf('timers'), 'no-restricted-imports'],
  ['src/cli/has-a-default.ts', 'export default 1\n', 'no-default-export'],
  ['src/pod/hen.ts', typeImportOf('./egg.ts'), 'no-cycle'],
  ['src/pod/egg.ts', typeImportOf('./hen.ts'), 'no-cycle'],
]

/** And what is allowed: [path, text]. */
const allowed: readonly (readonly [string, string])[] = [
  ['src/control/calls-down.ts', importOf('../decide/calls-within.ts')],
  ['src/cli/calls-down.ts', importOf('../base/clock.ts')],
  ['src/control/calls-within.ts', importOf('./desired/calls-down.ts')],
  ['src/control/desired/calls-down.ts', importOf('../pod/calls-down.ts')],
  ['src/control/pod/calls-down.ts', importOf('../../decide/plan/compute.ts')],
  ['src/decide/sources/calls-out.ts', importOf('../../pod/state/pod-record.ts')],
  ['src/host/facts/calls-the-room.ts', importOf('../mounts.ts')],
  ['src/decide/calls-within.ts', importOf('./other.ts')],
  ['src/base/clock.ts', valueOf('[Date.now(), performance.now(), setTimeout(String, 1)]')],
  ['src/base/timers.ts', importOf('node:timers/promises')],
  ['src/cli/shows-timers.ts', importOf('./timers.ts')],
  ['test/unit/waits.ts', valueOf('setTimeout(String, 1)')],
  ['src/cli/verbs/calls-down.ts', importOf('../client/client.ts')],
]

function importOf(path: string): string {
  return `import { planted } from '${path}'\n\nexport const used = planted\n`
}

function typeImportOf(path: string): string {
  return `import type { Planted } from '${path}'\n\nexport type Used = Planted\n`
}

function valueOf(expression: string): string {
  return `export const used: unknown = ${expression}\n`
}

interface Report {
  readonly diagnostics: readonly { readonly filename: string; readonly code: string }[]
}

describe('the floors', () => {
  let house = ''
  let status: number | null = null
  const broken = new Map<string, string[]>()

  beforeAll(() => {
    house = mkdtempSync(join(tmpdir(), 'podd-floors-'))
    copyFileSync(join(root, 'oxlint.config.ts'), join(house, 'oxlint.config.ts'))
    copyFileSync(join(root, 'package.json'), join(house, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(house, 'node_modules'))
    for (const [path, text] of [...violations, ...allowed]) {
      mkdirSync(dirname(join(house, path)), { recursive: true })
      writeFileSync(join(house, path), text)
    }
    const oxlint = join(root, 'node_modules/oxlint/bin/oxlint')
    const run = spawnSync(process.execPath, [oxlint, '--deny-warnings', '--format=json'], {
      cwd: house,
      encoding: 'utf8',
    })
    status = run.status
    const report = JSON.parse(run.stdout) as Report
    for (const { filename, code } of report.diagnostics) {
      const rule = code.replace(/^.*\(|\)$/g, '')
      broken.set(filename, [...(broken.get(filename) ?? []), rule])
    }
  })

  afterAll(() => {
    rmSync(house, { recursive: true, force: true })
  })

  test('lint fails on a house with violations', () => {
    expect(status).toBe(1)
  })

  test.each(violations)('refuses %s', (path, _text, rule) => {
    expect(broken.get(path)).toEqual([rule])
  })

  test.each(allowed)('allows %s', (path) => {
    expect(broken.has(path)).toBe(false)
  })

  test('every room of src stands on a floor, and every room within a room', () => {
    const config = readFileSync(join(root, 'oxlint.config.ts'), 'utf8')
    const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    )
    const inner = rooms.flatMap(({ name }) => {
      const room = join(root, 'src', name)
      return readdirSync(room, { withFileTypes: true, recursive: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => relative(room, join(entry.parentPath, entry.name)))
    })
    const named = [...rooms.map(({ name }) => name), ...inner]
    expect(named.filter((name) => !config.includes(`'${name}'`))).toEqual([])
  })
})
