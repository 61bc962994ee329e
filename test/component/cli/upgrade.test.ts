import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { parseSigningKey } from '../../../src/base/minisign.ts'
import type { VerbContext } from '../../../src/cli/arguments/verb.ts'
import {
  findInstallation,
  judgeChange,
  keepInstalled,
  putBack,
  readReleaseKeys,
  refuseOtherVersion,
  repack,
  takeRelease,
  versionOfRelease,
} from '../../../src/cli/local/upgrade.ts'
import type { RunningPods } from '../../../src/cli/local/upgrade.ts'
import { callCli } from '../../support/cli-rig.ts'
import { makeSigner } from '../../support/minisign.ts'

const name = 'podd_9.9.9_amd64.deb'
const content = 'a package\n'
const sumOf = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('podd upgrade takes a release', () => {
  let scratch = ''
  let server: Server
  let url = ''
  const signer = makeSigner()
  const [key] = [parseSigningKey(signer.publicKey)].flatMap((each) => each ?? [])
  const at = (path: string): string => join(scratch, path)
  const context = { env: {}, clock: systemClock, signal: new AbortController().signal } as VerbContext
  const take = (from: string): Promise<string> => takeRelease(from, key ? [key] : [], at('taken'), context)

  /** A release beside its checksums and their signature. */
  const put = (files: Readonly<Record<string, string>> = {}): void => {
    const sums = `${sumOf(content)}  ${name}\n${sumOf('x')}  podd_9.9.9_arm64.deb\n`
    const all = { [name]: content, SHA256SUMS: sums, 'SHA256SUMS.minisig': signer.sign(sums), ...files }
    for (const [file, text] of Object.entries(all)) writeFileSync(at(`release/${file}`), text)
  }

  beforeEach(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'podd-upgrade-'))
    mkdirSync(at('release'))
    put()
    server = createServer((request, response) => {
      const path = request.url ?? '/'
      if (path.startsWith('/moved/')) response.writeHead(302, { location: path.slice('/moved'.length) }).end()
      else if (existsSync(at(`release${path}`))) response.end(readFileSync(at(`release${path}`)))
      else response.writeHead(404).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
    rmSync(scratch, { recursive: true, force: true })
  })

  it.each([
    ['a file', () => at(`release/${name}`)],
    ['a URL', () => `${url}/${name}`],
    ['a URL that leads elsewhere', () => `${url}/moved/${name}`],
  ])('from %s, where nobody else can change it before it is installed', async (_, from) => {
    const taken = await take(from())
    expect(taken).toBe(at(`taken/${name}`))
    expect(readFileSync(taken, 'utf8')).toBe(content)
  })

  it.each([
    ['was changed', { [name]: 'another\n' }, 'is not what SHA256SUMS says'],
    [
      'has checksums that were changed',
      { SHA256SUMS: `${sumOf('another\n')}  ${name}\n`, [name]: 'another\n' },
      'does not belong to this content',
    ],
    [
      'is signed by another key',
      { 'SHA256SUMS.minisig': makeSigner().sign('x') },
      'which is not trusted here',
    ],
    ['has no signature', { 'SHA256SUMS.minisig': '' }, 'is no signature of minisign'],
  ])('unless it %s', async (_, files, message) => {
    put(files)
    for (const from of [at(`release/${name}`), `${url}/${name}`]) {
      await expect(take(from)).rejects.toMatchObject({
        code: 'UPGRADE_REFUSED',
        message: expect.stringContaining(message) as string,
      })
      expect(existsSync(at(`taken/${name}`))).toBe(false)
    }
  })

  it('unless its checksum is not among those that were signed', async () => {
    writeFileSync(at('release/podd_8.0.0_amd64.deb'), content)
    await expect(take(at('release/podd_8.0.0_amd64.deb'))).rejects.toMatchObject({ code: 'UPGRADE_REFUSED' })
  })

  it('by the key that came with the installed one, or by those that are named', async () => {
    writeFileSync(at('release.pub'), `untrusted comment: a key\n${signer.publicKey}\n`)
    const installed = { kind: 'archive', root: scratch } as const
    expect(await readReleaseKeys(installed, [])).toEqual([key])
    expect(await readReleaseKeys({ ...installed, root: at('none') }, [signer.publicKey])).toEqual([key])
    await expect(readReleaseKeys({ ...installed, root: at('none') }, [])).rejects.toMatchObject({
      hint: "name the release's public key: --key FILE.pub",
    })
  })
})

describe('podd upgrade', () => {
  it.each([
    ['package', 'x64', name, '9.9.9'],
    ['archive', 'arm64', 'podd_1.2.3-rc.1_linux_arm64.tar.gz', '1.2.3-rc.1'],
  ] as const)('takes for a podd that came as %s on %s the release %s', (kind, arch, release, version) => {
    expect(versionOfRelease(`/some/${release}`, { kind, root: '/' }, arch)).toBe(version)
  })

  it.each([
    ['package', 'arm64', name],
    ['archive', 'x64', name],
    ['package', 'x64', 'podd_1.2.3_linux_amd64.tar.gz'],
  ] as const)('refuses for a podd that came as %s on %s the release %s', (kind, arch, release) => {
    expect(() => versionOfRelease(release, { kind, root: '/' }, arch)).toThrow('is no release for this podd')
  })

  it('knows by its place how podd was installed', () => {
    expect(findInstallation('/usr/lib/podd').kind).toBe('package')
    expect(findInstallation('/opt/podd').kind).toBe('archive')
    expect(() => findInstallation('/home/me/podd')).toThrow('runs from /home/me/podd')
  })

  it.each([[[]], [['--from', 'x', '--rollback']], [['x']]])('%j is wrong usage', async (args) => {
    expect(await callCli(['upgrade', ...args])).toMatchObject({ exitCode: 2 })
  })

  it('changes nothing where podd runs from a checkout', async () => {
    const { exitCode, stderr } = await callCli(['upgrade', '--from', basename(name)])
    expect(exitCode).toBe(1)
    expect(stderr).toContain('this podd is not an installed one')
  })
})

describe('a new podd is as good as the one before', () => {
  const pods = (...each: readonly (readonly [uid: string, ...ids: string[]])[]): RunningPods =>
    new Map(each.map(([uid, ...containerIds]) => [uid, { name: `default/${uid}`, containerIds }]))
  const before = pods(['a', '1', '2'], ['b', '3'], ['done'])
  const well = { version: '2', isHealthy: true, pods: before }

  it('when it is the one that was asked for, with a runtime, and has each container that was ready', () => {
    expect(judgeChange(before, well, '2')).toBeUndefined()
    expect(
      judgeChange(before, { ...well, pods: pods(['a', '1', '2'], ['b', '3'], ['done'], ['new']) }, '2'),
    ).toBeUndefined()
    expect(judgeChange(pods(), { ...well, pods: pods() }, '2')).toBeUndefined()
    // A pod that had completed may have gone meanwhile.
    expect(judgeChange(before, { ...well, pods: pods(['a', '1', '2'], ['b', '3']) }, '2')).toBeUndefined()
  })

  it.each([
    ['another podd answers', { ...well, version: '1' }, 'podd 1 answers, not 2'],
    ['it has no runtime', { ...well, isHealthy: false }, 'its runtime is not healthy'],
    [
      'a container is another one',
      { ...well, pods: pods(['a', '1', '9'], ['b', '3'], ['done']) },
      '1 of 3 pods are not adopted, such as default/a',
    ],
    [
      'a pod is not there',
      { ...well, pods: pods(['a', '1', '2'], ['done']) },
      '1 of 3 pods are not adopted, such as default/b',
    ],
  ])('but not when %s', (_, after, wrong) => {
    expect(judgeChange(before, after, '2')).toBe(wrong)
  })
})

describe('podd upgrade of an archive that install.sh could not finish', () => {
  let scratch = ''
  let root = ''
  beforeEach(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'podd-archive-'))
    root = join(scratch, 'podd')
    makeProgram(root, 'before')
    await keepInstalled({ kind: 'archive', root })
  })
  afterEach(() => rmSync(scratch, { recursive: true, force: true }))

  /** A program whose install.sh goes back by exchanging it with the previous one. */
  const makeProgram = (path: string, name: string): void => {
    mkdirSync(path)
    writeFileSync(join(path, 'name'), name)
    const exchange = 'mv "$1.previous" "$1.new"; mv "$1" "$1.previous"; mv "$1.new" "$1"'
    const install = `#!/bin/bash\nset -e -- "\${0%/*}" "$@"; [ "$2" = --rollback ]; ${exchange}; echo >"$1/exchanged"\n`
    writeFileSync(join(path, 'install.sh'), install, { mode: 0o755 })
  }

  it.each<[when: string, isExchanged: boolean, leave: () => void]>([
    ['after the new one was in its place', true, () => makeProgram(root, 'new')],
    ['between two renames', false, () => {}],
    ['before it began', false, () => renameSync(`${root}.previous`, root)],
    [
      'and put the version before back, with one that is still older',
      false,
      () => {
        renameSync(`${root}.previous`, root)
        makeProgram(`${root}.previous`, 'older')
      },
    ],
  ])('ends with the version before: %s', async (_, isExchanged, leave) => {
    renameSync(root, `${root}.previous`)
    leave()
    const hasOlder =
      existsSync(`${root}.previous/name`) && readFileSync(`${root}.previous/name`, 'utf8') === 'older'
    await putBack(root)
    expect(readFileSync(join(root, 'name'), 'utf8')).toBe('before')
    expect(existsSync(join(root, 'exchanged'))).toBe(isExchanged)
    expect(existsSync(`${root}.previous`)).toBe(hasOlder)
    // The next upgrade marks it again.
    expect(readdirSync(root).filter((file) => file.startsWith('.'))).toEqual([])
  })
})

const canInstall = process.getuid?.() === 0 && existsSync('/usr/bin/dpkg-deb')

describe('podd upgrade --rollback of a package', () => {
  let scratch = ''
  beforeEach(() => {
    scratch = mkdtempSync(join(tmpdir(), 'podd-repack-'))
  })
  afterEach(() => rmSync(scratch, { recursive: true, force: true }))

  it.skipIf(!canInstall)('and upgrades after it leave the settings as the user has them', () => {
    const root = join(scratch, 'root')
    const settings = join(root, 'etc/podd/config.yaml')
    const bash = (script: string, ...args: readonly string[]): string => {
      // dpkg of a system of its own, below the root.
      const own = `dpkg() { command dpkg --root='${root}' --log=/dev/null --force-confold "$@"; }
dpkg-query() { command dpkg-query --admindir='${root}/var/lib/dpkg' "$@"; }
${script}`
      const options = ['-euo', 'pipefail', '-c', own, 'bash', ...args]
      return execFileSync('/bin/bash', options, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    }
    const repackTo = (to: string): void => {
      const script = repack.replaceAll('/var/lib/dpkg', `${root}/var/lib/dpkg`)
      bash(script.replace('tar -C / ', `tar -C '${root}' `), to)
    }
    const makeRelease = (version: string): string => {
      const tree = join(scratch, version)
      for (const directory of ['DEBIAN', 'etc/podd']) mkdirSync(join(tree, directory), { recursive: true })
      writeFileSync(join(tree, 'etc/podd/config.yaml'), `# default of ${version}\n`)
      writeFileSync(join(tree, 'DEBIAN/conffiles'), '/etc/podd/config.yaml\n')
      const control = `Package: podd\nVersion: ${version}\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n`
      writeFileSync(join(tree, 'DEBIAN/control'), control)
      bash('dpkg-deb --root-owner-group --build "$1" "$1.deb"', tree)
      return `${tree}.deb`
    }
    const install = (release: string): void => void bash('dpkg -i "$1"', release)
    const kept = (): string =>
      bash('dpkg-deb -c "$1" | grep -c config.yaml || true', join(scratch, 'kept.deb'))

    for (const directory of ['info', 'updates'])
      mkdirSync(join(root, 'var/lib/dpkg', directory), { recursive: true })
    writeFileSync(join(root, 'var/lib/dpkg/status'), '')
    const [one, two, three] = ['1', '2', '3'].map(makeRelease) as [string, string, string]
    install(one)
    writeFileSync(settings, 'user: 1\n')
    repackTo(join(scratch, 'kept.deb'))
    expect(kept()).toBe('0\n')
    install(two)
    install(join(scratch, 'kept.deb'))
    expect(readFileSync(settings, 'utf8')).toBe('user: 1\n')

    // The package that is installed now has no settings of its own, and dpkg lists them as its files.
    repackTo(join(scratch, 'kept.deb'))
    expect(kept()).toBe('0\n')
    install(two)
    writeFileSync(settings, 'user: 2\n')
    install(join(scratch, 'kept.deb'))
    expect(readFileSync(settings, 'utf8')).toBe('user: 2\n')
    install(three)
    expect(readFileSync(settings, 'utf8')).toBe('user: 2\n')

    rmSync(settings)
    repackTo(join(scratch, 'kept.deb'))
    expect(kept()).toBe('0\n')
  })

  it('is refused where another version was installed since the kept one was replaced', async () => {
    const record = join(scratch, 'replaced-by')
    await refuseOtherVersion(record, '2')
    writeFileSync(record, '2\n')
    await refuseOtherVersion(record, '2')
    await expect(refuseOtherVersion(record, '3')).rejects.toMatchObject({
      code: 'UPGRADE_REFUSED',
      message: 'the version that is kept is the one before podd 2, and podd 3 was installed since',
    })
  })
})
