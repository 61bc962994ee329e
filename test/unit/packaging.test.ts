import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfigFile } from '../../src/config/read-config-file.ts'
import { completeConfig, listOptions } from '../../src/config/options.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'

const { rootDir, runDir, staticPodPath } = completeConfig({})
const places = containerdPlaces(rootDir, runDir)

function unit(name: string): string {
  return readFileSync(`packaging/${name}.service`, 'utf8')
}

test("containerd's unit has the name and the config that podd starts it by", () => {
  expect(unit(places.unitName)).toContain(`\nExecStart=containerd --config ${places.configPath}\n`)
  expect(unit(places.unitName)).toContain(`\nConditionPathExists=${places.configPath}\n`)
})

test.each(['podd', places.unitName])(
  '%s.service leaves the pods alone when it ends, and always comes back',
  (name) => {
    expect(unit(name)).toContain('\nKillMode=process\n')
    expect(unit(name)).toContain('\nRestart=always\n')
    expect(unit(name)).toContain('\nStartLimitIntervalSec=0\n')
  },
)

test("podd's unit restarts a podd that gives no sign of life, whose process takes no other signal", () => {
  const podd = unit('podd')
  expect(podd).toContain('\nType=notify\nNotifyAccess=all\n')
  expect(podd).toMatch(/\nWatchdogSec=\d+min\n/u)
  expect(podd).toContain('\nWatchdogSignal=SIGKILL\n')
})

test('a shutdown of the host ends the pods before podd, and nothing else does', () => {
  expect(unit('podd')).toContain('\nWants=podd-drain.service\n')
  const drain = unit('podd-drain')
  expect(drain).toMatch(new RegExp(`\nAfter=podd.service ${places.unitName}.service `, 'u'))
  expect(drain).toContain('\nRemainAfterExit=yes\n')
  // systemd-notify, a process of its own, has systemd wait.
  expect(drain).toContain('\nNotifyAccess=all\n')
  // It must stay when podd is stopped or upgraded.
  expect(drain).not.toMatch(/^(Requires|BindsTo|PartOf|Requisite|StopPropagatedFrom)=/mu)
  const [, stop = ''] = /\nExecStop=\/bin\/sh -c '(.*)'\n/u.exec(drain) ?? []
  const stopWhile = (state: string, jobs: string): string => {
    const systemctl = `systemctl() { case "$*" in *list-jobs*shutdown.target) echo '${jobs}';; *) echo ${state};; esac; }`
    const script = `${systemctl}; ${stop.replace('exec podd', 'echo')}`
    return execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' })
  }
  const queued = '1234 shutdown.target start waiting'
  expect(stopWhile('stopping', queued)).toBe('drain\n')
  // The boot has not finished.
  for (const state of ['initializing', 'starting']) expect(stopWhile(state, queued)).toBe('drain\n')
  for (const state of ['running', 'degraded', 'maintenance', 'starting']) {
    for (const jobs of ['', 'No jobs listed.', '1234 shutdown.target stop waiting'])
      expect(stopWhile(state, jobs)).toBe('')
  }
})

test('a shutdown stops no container before the pods have ended in order', () => {
  const scope = readFileSync('packaging/container-scope.conf', 'utf8')
  expect(scope).toMatch(/^\[Unit\]\nBefore=podd-drain.service\n$/mu)
  // A drop-in for all units of a prefix stands in a directory of that prefix.
  expect(readFileSync('install.sh', 'utf8')).toContain("scopes='cri-containerd-.scope crio-.scope'")
})

test('the installed config is valid and says what is the default anyway', async () => {
  const { values, problems } = await readConfigFile(
    readFileSync('packaging/config.yaml', 'utf8'),
    'config.yaml',
  )
  expect(problems).toEqual([])
  expect(values).toEqual({ staticPodPath })
})

test('what the installed config has as comments is valid too', async () => {
  const text = readFileSync('packaging/config.yaml', 'utf8').replaceAll(/^# (?= *[a-zA-Z]+:( |$))/gm, '')
  const { values, problems } = await readConfigFile(text, 'config.yaml')
  expect(problems).toEqual([])
  expect(Object.keys(values).sort()).toEqual([
    'podCidrs',
    'staticPodPath',
    'staticPodUrl',
    'staticPodUrlHeader',
  ])
})

test('a purge knows the usual places', () => {
  const [, list = ''] =
    /^ {2}done <<'END'.*\n([^]*?)\nEND$/m.exec(readFileSync('packaging/remove.sh', 'utf8')) ?? []
  const usual = list.split('\n').map((line) => line.split(' '))
  const fields = usual.map(([field]) => field)
  const defaults = listOptions().flatMap(([, option]) =>
    fields.includes(option.field) ? [[option.field, option.default]] : [],
  )
  expect(fields).toHaveLength(5)
  expect(Object.fromEntries(defaults)).toEqual(Object.fromEntries(usual))
})

/** The package's removal and purge in directories below `root`; returns what the purge says. */
function purgePackage(root: string, settings: string): string {
  const places = [
    'etc/podd',
    'etc/pods',
    'var/lib/podd',
    'var/log/pods',
    'var/log/containers',
    'usr/lib/podd',
  ]
  for (const place of places) mkdirSync(join(root, place), { recursive: true })
  const text = readFileSync('packaging/debian/postrm', 'utf8')
    .replace('@remove.sh@', () => readFileSync('packaging/remove.sh', 'utf8'))
    // The places of this host, but not the usual ones that settings are compared with.
    .replaceAll(
      /(?<![\w.])\/(?:etc|run|usr|var)\/(?:cache|containers|lib|log|podd|pods|systemd)/g,
      (place) => root + place,
    )
    .replaceAll(new RegExp(`^(\\w+Dir|staticPodPath) ${root}`, 'gm'), '$1 ')
  const script = `exec 2>&1; deb-systemd-helper() { :; }; systemctl() { :; }\n${text}`
  const postrm = (action: string): string =>
    execFileSync('/bin/bash', ['-ec', script, 'postrm', action], { encoding: 'utf8' })
  writeFileSync(join(root, 'etc/podd/config.yaml'), settings)
  postrm('remove')
  rmSync(join(root, 'etc/podd/config.yaml'))
  return postrm('purge')
}

test.each([
  ['keeps what they moved, and a copy that tells of it', 'rootDir: /data/podd\n', true],
  ['removes what is in the usual places', 'logLevel: debug\n', false],
])('a purge of the package, for which dpkg removed the settings, %s', (_, settings, isKept) => {
  const root = mkdtempSync(join(tmpdir(), 'podd-purge-'))
  try {
    purgePackage(root, settings)
    expect(existsSync(join(root, 'var/lib/podd'))).toBe(isKept)
    expect(existsSync(join(root, 'etc/podd/config.yaml.removed'))).toBe(isKept)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})

test("a purge of the package keeps the data of claims, says where it is, and removes the rest of podd's state", () => {
  const root = mkdtempSync(join(tmpdir(), 'podd-purge-'))
  const state = join(root, 'var/lib/podd')
  try {
    mkdirSync(join(state, 'claims/default/data'), { recursive: true })
    mkdirSync(join(state, 'containerd'))
    writeFileSync(join(state, 'claims/default/data/file'), 'work')
    expect(purgePackage(root, '')).toContain(`is kept in ${state}/claims; remove it by hand`)
    expect(readdirSync(state)).toEqual(['claims'])
    expect(readFileSync(join(state, 'claims/default/data/file'), 'utf8')).toBe('work')
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})

const apart = ['--user', '--map-root-user', '--mount']
const hasNamespaces = spawnSync('unshare', [...apart, 'mount', '-t', 'tmpfs', 'none', '/run']).status === 0

/** What systemctl is asked by runs of the offline installer; the first of them comes as far as to unpack containerd. */
function installOffline(hasContainerd: boolean): string {
  const directory = mkdtempSync(join(tmpdir(), 'podd-offline-'))
  const tools = join(directory, 'tools')
  mkdirSync(tools)
  const tool = (name: string, script: string): void =>
    writeFileSync(join(tools, name), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  try {
    const needed = ['bash', 'id', 'sha256sum', 'dirname', 'mktemp', 'mkdir', 'rm', 'ln', 'ls', 'chmod']
    execFileSync('bash', ['-c', 'ln -s $(type -P "${@:2}") "$1"', 'bash', tools, ...needed])
    if (hasContainerd) tool('containerd', '')
    tool('systemctl', 'echo "$@" >>asked')
    const unpack = ': >"$TOOLS/containerd"; chmod 755 "$TOOLS/containerd"; : >"$TOOLS/unpacked"'
    tool(
      'apt-get',
      `case "$*" in *' install podd') [ -e "$TOOLS/unpacked" ] || { ${unpack}; exit 100; } ;; esac`,
    )
    writeFileSync(join(directory, 'install.sh'), readFileSync('packaging/install-offline.sh'))
    writeFileSync(join(directory, 'asked'), '')
    execFileSync('bash', ['-c', 'sha256sum install.sh >SHA256SUMS'], { cwd: directory })
    const runs = 'PATH=$TOOLS; ! bash ./install.sh && bash ./install.sh && bash ./install.sh'
    const mounts = 'mount -t tmpfs none /run && mount -t tmpfs none /var/lib && mkdir -p /run/systemd/system'
    const env = { ...process.env, TOOLS: tools }
    execFileSync('unshare', [...apart, 'bash', '-c', `${mounts} && ${runs}`], { cwd: directory, env })
    return readFileSync(join(directory, 'asked'), 'utf8')
  } finally {
    rmSync(directory, { recursive: true })
  }
}

test.skipIf(!hasNamespaces)(
  'the offline installer disables the service of a containerd that came with it, once, also where its first run failed',
  () => {
    expect(installOffline(false)).toBe('--quiet disable --now containerd.service\n')
    expect(installOffline(true)).toBe('')
  },
)

/**
 * What systemctl is asked by two runs of install.sh, of which the first one's packages fail and leave containerd in `state`;
 * and which packages came by their account.
 */
function installTwice(before: string, state: string): { readonly asked: string; readonly came: string } {
  const directory = mkdtempSync(join(tmpdir(), 'podd-packages-'))
  const script = `
    work=$PWD packages_record=$PWD/record run=1
    say() { printf '%s\\n' "$*"; }
    step() { :; }
    quietly() { "$@" >/dev/null; }
    fail() { exit 1; }
    has_systemd() { true; }
    systemctl() { echo "$@" >>asked; }
    dpkg-query() {
      case "\${4-} $(cat state)" in
        'containerd '*) cat state ;;
        ' unpacked') echo 'unpacked containerd' ;;
        ' '*) echo 'installed bash' ;;
      esac
    }
    apt-get() {
      case "$*" in
        -s*) [ "$(cat state)" = installed ] || echo 'Conf containerd (1.0 here [all])' ;;
        *update) ;;
        *) if [ $run = 1 ]; then echo "$STATE" >state; return 100; else echo installed >state; fi ;;
      esac
    }
    . "$CHECKOUT/packaging/distribution.sh"
    policy=$PWD/policy
    missing_packages() { echo catatonit; [ -s state ] || echo containerd; }
    : >asked
    printf %s "$BEFORE" >state
    (install_packages) && exit 1
    end_package_run
    run=2
    install_packages
    end_package_run`
  try {
    const env = { ...process.env, CHECKOUT: process.cwd(), BEFORE: before, STATE: state }
    execFileSync('bash', ['-euc', script.trim()], { cwd: directory, env })
    const record = join(directory, 'record')
    return {
      asked: readFileSync(join(directory, 'asked'), 'utf8'),
      came: existsSync(record) ? readFileSync(record, 'utf8') : '',
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

test.each(['installed', 'unpacked'])(
  'install.sh disables the service of a containerd that came with it, once, also where its first run failed and left it %s',
  (state) => {
    expect(installTwice('', state)).toEqual({
      asked: '--quiet disable --now containerd.service\n',
      came: 'containerd\n',
    })
  },
)

test('install.sh whose packages failed leaves the service of a containerd that was there before', () => {
  expect(installTwice('installed', 'installed')).toEqual({ asked: '', came: '' })
})

test('install.sh leaves the service of a containerd that somebody else left unpacked, and does not call it its own', () => {
  expect(installTwice('unpacked', 'unpacked')).toEqual({ asked: '', came: '' })
})

/** The sources that apt has when package.sh takes a package of `arch` on amd64, if not the machine's own. */
function sourcesOf(arch: string, release: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'podd-sources-'))
  const text = readFileSync('packaging/package.sh', 'utf8')
  const functions = ['apt_of', 'other_archive'].map(
    (name) => new RegExp(`^${name}\\(\\) [{(].*\\n[^]*?^[})]\\n`, 'mu').exec(text)?.[0] ?? '',
  )
  const script = `
    cache=$PWD
    dpkg() { echo amd64; }
    apt-get() { case "$*" in *"SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=- update") cat sources.list ;; esac; }
    ${functions.join('').replace('/etc/os-release', './os-release')}
    apt_of "$ARCH" update`
  try {
    writeFileSync(join(directory, 'os-release'), release)
    return execFileSync('bash', ['-euc', script], {
      cwd: directory,
      env: { ...process.env, ARCH: arch },
      encoding: 'utf8',
    })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

test("packages of another architecture come from the server that has them, where Ubuntu's own hasn't", () => {
  const ubuntu = 'ID=ubuntu\nVERSION_CODENAME=noble\n'
  const ports = ['', '-updates', '-security'].map(
    (pocket) => `deb http://ports.ubuntu.com/ubuntu-ports noble${pocket} main universe\n`,
  )
  expect(sourcesOf('arm64', ubuntu)).toBe(ports.join(''))
  expect(sourcesOf('amd64', ubuntu)).toBe('')
  expect(sourcesOf('arm64', 'ID=debian\nVERSION_CODENAME=trixie\n')).toBe('')
})
