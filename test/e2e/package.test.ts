import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = new URL('../../', import.meta.url).pathname
const { version }: { readonly version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const arch = process.arch === 'x64' ? 'amd64' : 'arm64'
const debName = `podd_${version}_${arch}.deb`
const archiveName = `podd_${version}_linux_${arch}.tar.gz`

/** Packs a checkout of its own, below `directory`, under an umask. */
function pack(directory: string, umask: string): void {
  const script = [
    'mkdir here; tar -C "$1" -cf - --exclude=./node_modules --exclude=./dist --exclude=./packages --exclude=./.git --exclude=./test . | tar -C here -xf -',
    'ln -s "$1/node_modules" here/node_modules; umask "$2"; cd here',
    'SOURCE_DATE_EPOCH=1700000000 packaging/package.sh --fast --arch "$3" --out ../out --key "$4" </dev/null',
  ].join('\n')
  execFileSync('sh', ['-euc', script, 'sh', root, umask, arch, join(directory, '../release.key')], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

const lines = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')
const hasTools = ['dpkg-deb', 'npm', 'minisign'].every(
  (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0,
)

describe.skipIf(!hasTools)('what npm run package makes', () => {
  let scratch = ''
  const made = (name: string): string => join(scratch, 'a/out', name)
  const unpacked = (path: string): string => join(scratch, 'deb', path)

  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'podd-package-'))
    execFileSync('minisign', [
      '-G',
      '-W',
      '-s',
      join(scratch, 'release.key'),
      '-p',
      join(scratch, 'release.pub'),
    ])
    mkdirSync(join(scratch, 'a'))
    pack(join(scratch, 'a'), '022')
    execFileSync('dpkg-deb', ['-R', made(debName), join(scratch, 'deb')])
  })
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  it('is a package, an archive, a bill of materials and the signed checksums of these', () => {
    expect(readdirSync(join(scratch, 'a/out')).toSorted()).toEqual(
      ['SHA256SUMS', 'SHA256SUMS.minisig', debName, archiveName, `podd_${version}.cdx.json`].toSorted(),
    )
    const sums = lines(readFileSync(made('SHA256SUMS'), 'utf8')).map((line) => line.split('  '))
    expect(sums).toHaveLength(3)
    for (const [sum, name = ''] of sums)
      expect(
        createHash('sha256')
          .update(readFileSync(made(name)))
          .digest('hex'),
      ).toBe(sum)
    const verified = spawnSync('minisign', [
      '-V',
      '-p',
      join(scratch, 'release.pub'),
      '-m',
      made('SHA256SUMS'),
    ])
    expect(verified.status).toBe(0)
  })

  it('names each package of others that it contains in the bill of materials, and has the licences of all', () => {
    const lock: {
      readonly packages: Readonly<
        Record<string, { readonly version: string; readonly dev?: boolean; readonly optional?: boolean }>
      >
    } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
    const contained = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true)
    const nameOf = (path: string): string =>
      path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const bom: { readonly components: readonly { readonly 'bom-ref': string }[] } = JSON.parse(
      readFileSync(made(`podd_${version}.cdx.json`), 'utf8'),
    )
    expect(bom.components.map((component) => component['bom-ref']).toSorted()).toEqual(
      contained.map(([path, entry]) => `${nameOf(path)}@${entry.version}`).toSorted(),
    )
    const notices = execFileSync('gzip', ['-dc', unpacked('usr/share/doc/podd/NOTICES.gz')], {
      encoding: 'utf8',
    })
    const titles = Array.from(
      notices.matchAll(/^-{80}\n\n(\S+) (\S+) \(/gmu),
      ([, name, its]) => `${name}@${its}`,
    )
    const bundled = contained.filter(([, { optional }]) => optional !== true)
    expect(titles).toEqual(
      expect.arrayContaining(bundled.map(([path, entry]) => `${nameOf(path)}@${entry.version}`)),
    )
    expect(titles.filter((title) => title.startsWith('Node.js@'))).toHaveLength(1)
  })

  it('puts the units, the settings, manuals and completions where Debian has them', () => {
    for (const path of [
      'usr/bin/podd',
      'usr/lib/podd/dist/main.js',
      'usr/lib/podd/dist/proto',
      'usr/lib/podd/manifests/hello.yaml',
      'usr/lib/podd/release.pub',
      'usr/lib/systemd/system/podd.service',
      'usr/lib/systemd/system/podd-containerd.service',
      'usr/lib/systemd/system/podd-drain.service',
      'usr/lib/systemd/system/cri-containerd-.scope.d/podd.conf',
      'etc/podd/config.yaml',
      'etc/pods',
      'usr/share/man/man1/podd.1.gz',
      'usr/share/man/man5/podd.yaml.5.gz',
      'usr/share/bash-completion/completions/podd',
      'usr/share/zsh/vendor-completions/_podd',
      'usr/share/fish/vendor_completions.d/podd.fish',
      'usr/share/doc/podd/copyright',
      'usr/share/doc/podd/NOTICES.gz',
      'usr/share/doc/podd/sbom.cdx.json',
    ])
      expect(existsSync(unpacked(path)) ? '' : path).toBe('')
    expect(readFileSync(unpacked('DEBIAN/conffiles'), 'utf8')).toBe('/etc/podd/config.yaml\n')
    expect(readdirSync(join(scratch, 'deb')).toSorted()).toEqual(['DEBIAN', 'etc', 'usr'])
  })

  it('is for root alone to write and for all to read', () => {
    const entries = lines(execFileSync('dpkg-deb', ['-c', made(debName)], { encoding: 'utf8' }))
    const wrong = entries.filter(
      (line) => !/^(?:l|d|-)rw.r.[x-]r.[x-] root\/root |^lrwxrwxrwx root\/root /u.test(line),
    )
    expect(wrong).toEqual([])
  })

  it('has a podd that runs without a checkout and without a Node of the host', () => {
    const env = { PATH: '/usr/bin:/bin' }
    const said = spawnSync(unpacked('usr/bin/podd'), ['version', '--client'], { encoding: 'utf8', env })
    expect(said).toMatchObject({ status: 0, stderr: '' })
    expect(said.stdout).toContain(`podd ${version} `)
  })

  it('has every file to which its README links', () => {
    const readme = unpacked('usr/share/doc/podd/README.md')
    const paths = Array.from(
      readFileSync(readme, 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/gu),
      ([, path = '']) => path,
    )
    expect(
      paths.filter((path) => !existsSync(join(dirname(readme), path.replace(/^LICENSE$/u, 'copyright')))),
    ).toEqual([])
  })

  it('names no registry and no place of the machine that made it', () => {
    const found = spawnSync(
      'grep',
      [
        '-rlE',
        `registry\\.npm|${scratch}|/work/`,
        join(scratch, 'deb'),
        '--exclude=node',
        '--exclude-dir=cache',
      ],
      { encoding: 'utf8' },
    )
    expect(found.stdout).toBe('')
  })

  it('has manuals that man lays out without a complaint', () => {
    for (const page of ['man1/podd.1.gz', 'man5/podd.yaml.5.gz']) {
      const text = execFileSync('gzip', ['-dc', unpacked(`usr/share/man/${page}`)], { encoding: 'utf8' })
      expect(text).toMatch(/^\.TH PODD/u)
      if (!existsSync('/usr/bin/groff')) continue
      const laidOut = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-z'], { input: text, encoding: 'utf8' })
      expect(laidOut.stderr).toBe('')
    }
  })

  it('is smaller than the debugging information of Node alone would leave it', () => {
    expect(statSync(unpacked('usr/lib/podd/node/bin/node')).size).toBeLessThan(125_000_000)
  })

  it('has an archive that installs without npm, and not where one of its files was changed', () => {
    const unpackTo = (name: string): string => {
      mkdirSync(join(scratch, name))
      execFileSync('tar', ['-C', join(scratch, name), '-xzf', made(archiveName)])
      return join(scratch, name, `podd-${version}`)
    }
    const install = (directory: string) =>
      spawnSync(join(directory, 'install.sh'), ['--stage', join(scratch, 'stage')], {
        encoding: 'utf8',
        env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
      })
    const changed = unpackTo('changed')
    appendFileSync(join(changed, 'dist/main.js'), '\n')
    expect(install(changed)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('are not those of the release') as string,
    })
    expect(existsSync(join(scratch, 'stage'))).toBe(false)
    expect(install(unpackTo('whole'))).toMatchObject({ status: 0, stderr: '' })
    expect(existsSync(join(scratch, 'stage/opt/podd/share/man/man1/podd.1.gz'))).toBe(true)
    const said = spawnSync(join(scratch, 'stage/opt/podd/bin/podd'), ['version', '--client'], {
      encoding: 'utf8',
    })
    expect(said.stdout).toContain(`podd ${version} `)
  })

  it('ends the pods when it is removed, and not when it is upgraded', () => {
    const call = (...args: readonly string[]): string => {
      const script = `podd() { echo "podd $*"; }; deb-systemd-invoke() { :; }\n${readFileSync(unpacked('DEBIAN/prerm'), 'utf8').replaceAll('/var/lib/podd', '/')}`
      return execFileSync('bash', ['-c', script, 'prerm', ...args], { encoding: 'utf8' })
    }
    expect(call('remove')).toBe('podd down\n')
    for (const args of [['upgrade', '9'], ['failed-upgrade', '9'], ['deconfigure']])
      expect(call(...args)).toBe('')
  })

  it(
    'is the same, byte for byte, when it is made again elsewhere, under another umask',
    { tags: ['nightly'] },
    () => {
      mkdirSync(join(scratch, 'b'))
      pack(join(scratch, 'b'), '077')
      const digest = (directory: string) =>
        [debName, archiveName, `podd_${version}.cdx.json`].map((name) =>
          createHash('sha256')
            .update(readFileSync(join(scratch, directory, 'out', name)))
            .digest('hex'),
        )
      expect(digest('b')).toEqual(digest('a'))
    },
  )
})
