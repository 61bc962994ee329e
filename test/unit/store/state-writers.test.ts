import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { versionedFiles } from '../../support/state-files.ts'
import { textFiles } from '../../support/text-state-files.ts'

const root = join(import.meta.dirname, '../../..')

/** A call that writes a file. */
const writes =
  /\b(?:(?:writeFileAtomic(?:Sync)?|writeFile(?:Sync)?|appendFile(?:Sync)?|createWriteStream|smallFile|overwriteFile|replaceStateSync)\(|open(?:Sync)?\([^()]*'(?:a|ax|w|wx|r\+)')/u

/** The state files that a file of the source writes, as the lists of state files name them; or why it writes none. */
const writers: Readonly<Record<string, readonly string[] | string>> = {
  'src/base/atomic-file.ts': 'what the others write with',
  'src/base/state-file.ts': 'what the others write with',
  'src/store/state-report.ts': 'what the others write with',
  'src/cli/verbs/apply.ts': 'a manifest of the user’s, which a source reads',
  'src/cli/verbs/support-bundle.ts': 'for people',
  'src/cli/local/upgrade.ts': 'a release of podd, which is verified after it was written',
  'src/cli/verbs/move-images.ts': 'for people; an archive that is imported and removed',
  'src/runtime/embedded-images.ts': ['containerd/unpacking.json'],
  'src/runtime/network/cni-results.ts': 'in the run directory, which no power cut outlives',
  'src/runtime/network/pod-bridge.ts': 'settings of the kernel',
  'src/runtime/network/pod-network.ts': ['containerd/pod-network.json', 'containerd/cni/10-podd.conflist'],
  'src/runtime/containerd/process.ts': 'containerd’s log; tries whether there is room',
  'src/runtime/containerd/version.ts': 'in the run directory, which no power cut outlives',
  'src/runtime/embedded-setup.ts': 'written again by each start',
  'src/control/assemble.ts': ['image-archives.json', 'image-uses.json', 'jobs.json'],
  'src/control/node/drain.ts': ['draining'],
  'src/control/node/logs.ts': ['pod-logs.json'],
  'src/control/serving/event-recorder.ts': ['events.json'],
  'src/daemon/crash-guard.ts': 'crash reports are for people: podd lists them by their names',
  'src/daemon/create-sources.ts': ['holds.json', 'signatures.json', 'trial.json'],
  'src/host/cgroups/files.ts': 'settings of the kernel',
  'src/host/cgroups/layout.ts': ['cgroups.json'],
  'src/logs/container-log-directories.ts': ['logs/default_p_u/.podd-owner', 'logs/default_p_u/.podd-removed'],
  'src/logs/rotate-log.ts': 'a container’s log, under another name until it is whole',
  // The server's certificate is read and written by the same code, and made again by a start that has none.
  'src/server/access/own-authority.ts': ['tls/ca.pem'],
  'src/server/http/listen.ts': 'nothing is written to the lock',
  'src/sources/kustomization.ts':
    'copies for the program that builds it, in /run; what a killed podd left is removed',
  'src/sources/written/api-objects.ts': ['api/configmap.default.c.json'],
  'src/store/last-good.ts': ['sources/file.json', 'sources/worked/file.json', 'sources/held/file.json'],
  'src/store/pod-records.ts': ['records/u.json', 'ended-by-down.json'],
  'src/store/pull-records.ts': ['image-pulls/pulled/', 'image-pulls/pulling/'],
  'src/store/revisions.ts': ['revisions/'],
  'src/volumes/atomic-writer.ts': 'a volume, which is written again where it differs',
  'src/volumes/sub-path.ts': 'an empty file',
  'src/volumes/claims.ts': ['claims/default/.source-data'],
  'src/volumes/volume-plugins.ts': 'an empty file',
  'src/volumes/pod-directory.ts': ['pods/u/user-range'],
}

it('each file of the source that writes files says which state files these are, or that they are none', () => {
  const found = globSync('src/**/*.ts', { cwd: root }).filter(
    (path) => !path.startsWith('src/page/') && writes.test(readFileSync(join(root, path), 'utf8')),
  )
  expect(found.toSorted()).toEqual(Object.keys(writers).toSorted())
})

it('each state file is cut at every byte by a test, and is written by some file of the source', () => {
  const named = Object.values(writers).flatMap((answer) => (typeof answer === 'string' ? [] : answer))
  const listed = [...versionedFiles, ...textFiles].map(({ path }) => path)
  const isOf = (path: string, name: string): boolean =>
    name.endsWith('/') ? path.startsWith(name) : path === name
  expect(named.filter((name) => !listed.some((path) => isOf(path, name)))).toEqual([])
  expect(listed.filter((path) => !named.some((name) => isOf(path, name)))).toEqual([])
})
