import { spawnSync } from 'node:child_process'
import type { SpawnSyncReturns } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PretendMachine } from '../support/pretend-machine.ts'

const root = new URL('../../', import.meta.url).pathname

function install(...args: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(join(root, 'install.sh'), args, { encoding: 'utf8', cwd: '/' })
}

/** What is built of podd, in a checkout for tests about what becomes of it: a line each, which takes no time to build. */
const built = [
  'src/main.ts',
  'src/sources/decode-worker.ts',
  'src/host/netns-dial-worker.ts',
  'src/page/main.ts',
]

/** Lines of sh: puts a checkout of `$1` into the directory `here`. */
const checkOut = [
  'mkdir here; tar -C "$1" -cf - --exclude=./node_modules --exclude=./dist --exclude=./.git --exclude=./test . | tar -C here -xf -',
  ...built.map((path) => `echo "console.log('podd 0.0.0')" >here/${path}`),
]

describe('install.sh', () => {
  it.each(['--help', '-h'])('%s tells what it does, and does nothing', (flag) => {
    const { status, stdout } = install(flag)
    expect(status).toBe(0)
    for (const word of ['/opt/podd', '/etc/pods', '--uninstall', '--purge', '--no-hello', '--stage'])
      expect(stdout).toContain(word)
  })

  it.each([[['--instal']], [['--stage']], [['--stage', '/tmp/nowhere', '--purge']]])(
    '%j is wrong usage',
    (args) => {
      const { status, stderr } = install(...args)
      expect(status).toBe(2)
      expect(stderr).not.toBe('')
    },
  )

  it.skipIf(process.getuid?.() !== 0)('says that it needs root', () => {
    const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups', 'bash']
    const script = readFileSync(join(root, 'install.sh'))
    const { status, stderr } = spawnSync('setpriv', [...asNobody, '-s'], {
      input: script,
      encoding: 'utf8',
      cwd: '/',
    })
    expect(status).toBe(1)
    expect(stderr).toBe('install.sh: needs root\n            Run: sudo ./install.sh\n')
  })
})

describe('install.sh --stage', () => {
  let stage = ''
  let result: SpawnSyncReturns<string>
  const at = (path: string): string => join(stage, path)
  const podd = (...args: readonly string[]): SpawnSyncReturns<string> =>
    spawnSync(at('opt/podd/bin/podd'), args, { encoding: 'utf8', cwd: '/', env: { PATH: '/usr/bin:/bin' } })

  beforeAll(() => {
    stage = mkdtempSync(join(tmpdir(), 'podd-stage-'))
    result = install('--stage', stage)
  })
  afterAll(() => rmSync(stage, { recursive: true, force: true }))

  it('lays everything out', () => {
    expect(result).toMatchObject({ status: 0, stderr: '' })
    for (const path of [
      'opt/podd/dist/main.js',
      'opt/podd/node/bin/node',
      'opt/podd/LICENSE',
      'opt/podd/NOTICES',
      'opt/podd/docs/OPERATIONS.md',
      'opt/podd/share/man/man1/podd.1.gz',
      'opt/podd/share/completions/podd.bash',
      'opt/podd/busybox-image.tar',
      'etc/podd/config.yaml',
      'etc/pods/hello.yaml',
      'etc/systemd/system/podd.service',
      'etc/systemd/system/podd-containerd.service',
      'etc/systemd/system/podd-drain.service',
      'etc/systemd/system/cri-containerd-.scope.d/podd.conf',
    ])
      expect(existsSync(at(path)) ? '' : path).toBe('')
    expect(readlinkSync(at('usr/local/bin/podd'))).toBe('/opt/podd/bin/podd')
    expect(statSync(at('opt/podd')).mode & 0o022).toBe(0)
  })

  it.each([
    ['000', 'a+w'],
    ['077', 'go-rwx'],
  ])(
    'is for root alone to write and for all to read, under umask %s and from a checkout made under it',
    (umask, checkoutMode) => {
      const directory = mkdtempSync(join(tmpdir(), 'podd-checkout-'))
      try {
        const script = [
          ...checkOut,
          `chmod -R ${checkoutMode} here; ln -s "$1/node_modules" here/node_modules`,
          `umask ${umask}; here/install.sh --stage stage`,
        ].join('\n')
        const done = spawnSync('sh', ['-euc', script, 'sh', root], { encoding: 'utf8', cwd: directory })
        expect(done).toMatchObject({ status: 0, stderr: '' })
        const wrong = spawnSync(
          'find',
          ['stage', '!', '-type', 'l', '(', '-perm', '/022', '-o', '!', '-perm', '-444', ')'],
          { encoding: 'utf8', cwd: directory },
        )
        expect(wrong.stdout).toBe('')
      } finally {
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )

  it('gives a podd that needs neither a checkout nor a Node of the host', () => {
    const version = podd('version')
    expect(version.status).toBe(0)
    expect(version.stdout).toContain('Node.js')
    expect(podd('validate', at('etc/pods/hello.yaml'))).toMatchObject({ status: 0 })
  })

  /** Installs from a checkout that is built at once. */
  const installQuickly = (...args: readonly string[]): SpawnSyncReturns<string> => {
    const directory = mkdtempSync(join(tmpdir(), 'podd-checkout-'))
    try {
      const script = [...checkOut, 'ln -s "$1/node_modules" here/node_modules', 'shift; here/install.sh "$@"']
      return spawnSync('sh', ['-euc', script.join('\n'), 'sh', root, ...args], {
        encoding: 'utf8',
        cwd: directory,
      })
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  it('says what went wrong and leaves nothing, when it can not finish', () => {
    const { status, stderr } = installQuickly('--stage', '/proc/nowhere')
    expect(status).toBe(1)
    expect(stderr).toContain('/proc/nowhere')
  })

  it('replaces the program and keeps settings, the second time', () => {
    appendFileSync(at('etc/podd/config.yaml'), 'maxPods: 5\n')
    appendFileSync(at('opt/podd/dist/main.js'), 'broken(')
    expect(installQuickly('--stage', stage, '--no-hello').status).toBe(0)
    expect(readFileSync(at('etc/podd/config.yaml'), 'utf8')).toContain('maxPods: 5')
    expect(podd('version').status).toBe(0)
    expect(existsSync(at('opt/podd.old'))).toBe(false)
    expect(existsSync(at('opt/podd.new'))).toBe(false)
  })
})

describe.skipIf(process.getuid?.() !== 0)('install.sh on a machine', () => {
  let machine: PretendMachine
  beforeEach(() => {
    machine = new PretendMachine()
  })
  afterEach(() => machine[Symbol.dispose]())

  const done = { status: 0, stderr: '' }
  /** Prints its process, and fails where it doesn't run. */
  const daemon = "pgrep -f '^/opt/podd/node/bin/node '"
  const hello = '/etc/pods/hello.yaml'
  const policy = '/usr/sbin/policy-rc.d'
  const example = readFileSync(join(root, 'manifests/hello.yaml'), 'utf8')
  const settings = (...lines: readonly string[]): string =>
    ['apiVersion: podd.dev/v1', 'kind: PoddConfiguration', ...lines, ''].join('\n')
  const isGone = (): boolean =>
    ['/opt/podd', '/usr/local/bin/podd', '/run/podd'].every((path) => !machine.has(path))
  const calls = (program: string): readonly string[] =>
    machine.takeCalls().filter((call) => call.startsWith(`${program} `))

  describe('installing', () => {
    beforeEach(() => machine.write('/pods', 'hello   1/1   Running   0   1s\n'))

    it('starts podd, places an example and shows it', () => {
      const { stdout, ...rest } = machine.run(`install; ${daemon} >/daemon`)
      expect(rest).toMatchObject(done)
      expect(stdout).toContain('curl http://127.0.0.1:8080/')
      expect(machine.read(hello)).toBe(example)
      expect(machine.read('/daemon')).not.toBe('')
      expect(machine.takeCalls()).toContain('podd images import /opt/podd/busybox-image.tar')
    })

    it("never touches a manifest that is there, be it the example's namesake", () => {
      machine.write(hello, 'mine\n')
      expect(machine.run('install')).toMatchObject(done)
      expect(machine.read(hello)).toBe('mine\n')
      expect(
        machine.run('install --stage /stage; echo mine >/stage/etc/pods/hello.yaml; install --stage /stage'),
      ).toMatchObject(done)
      expect(machine.read('/stage/etc/pods/hello.yaml')).toBe('mine\n')
    })

    it('places no example where podd would not read it', () => {
      machine.write('/etc/podd/config.yaml', settings('staticPodPath: /srv/pods'))
      expect(machine.run('install')).toMatchObject(done)
      expect(machine.has(hello)).toBe(false)
    })

    it('does not wait, on an upgrade, for an example that was changed', () => {
      expect(machine.run('install')).toMatchObject(done)
      machine.write(hello, example.replace('name: hello', 'name: shop'))
      machine.write('/pods', 'shop   0/1   CrashLoopBackOff   9   1h\n')
      const { stdout, ...rest } = machine.run('install')
      expect(rest).toMatchObject(done)
      expect(stdout).toContain('CrashLoopBackOff')
      expect(stdout).not.toContain('curl')
    })

    it('keeps one older part of the log of a podd that systemd does not start', () => {
      machine.write('/var/log/podd.log', 'x'.repeat(11 * 1024 ** 2))
      expect(machine.run('install')).toMatchObject(done)
      expect(machine.read('/var/log/podd.log.1')).toHaveLength(11 * 1024 ** 2)
      expect(machine.read('/var/log/podd.log')).toBe('')
    })

    it.each(['', '/', '//', '/tmp/..', '--no-hello'])('takes no --stage %j', (directory) => {
      expect(machine.run(`install --stage '${directory}'`)).toMatchObject({ status: 2 })
      expect(machine.has('/opt/podd')).toBe(false)
      expect(machine.takeCalls()).toEqual([])
    })

    it("takes a --stage from the caller's directory on", () => {
      expect(machine.run('mkdir /here; cd /here; install --stage out')).toMatchObject(done)
      expect(machine.has('/here/out/opt/podd/dist/main.js')).toBe(true)
      expect(machine.has('/out')).toBe(false)
    })
  })

  describe('installing packages', () => {
    // The host's own may be in /usr/bin.
    beforeEach(() => machine.run('mkdir /only; ln -s /usr/bin/* /only; rm -f /only/runc /stand-ins/runc'))
    const withoutRunc = 'PATH=/stand-ins:/only'

    it('lets no service start meanwhile, and no longer', () => {
      machine.write('/apt', `cp -p ${policy} /policy`)
      expect(machine.run(`${withoutRunc}; install --no-hello`)).toMatchObject({ status: 0 })
      expect(machine.read('/policy')).toMatch(/\nexit 101\n$/u)
      expect(machine.has(policy)).toBe(false)
      expect(machine.read('/etc/podd/.installed-packages')).toBe('runc\n')
    })

    it.each(['HUP', 'INT', 'TERM'])('cleans up after SIG%s, and knows what came', (signal) => {
      machine.write('/apt', `kill -${signal} $PPID; exit 1`)
      expect(machine.run(`${withoutRunc}; install --no-hello`).status).toBeGreaterThan(128)
      expect(machine.has(policy)).toBe(false)
      expect(machine.read('/etc/podd/.installed-packages')).toBe('runc\n')
    })

    it('knows what came although apt failed', () => {
      machine.write('/apt', 'exit 100')
      const { status, stderr } = machine.run(`${withoutRunc}; install --no-hello`)
      expect(status).toBe(1)
      expect(stderr).toContain('the packages could not be installed')
      expect(machine.has(policy)).toBe(false)
      expect(machine.read('/etc/podd/.installed-packages')).toContain('runc\n')
    })

    it('blames no package on podd that something else installed meanwhile', () => {
      machine.write('/apt', 'echo foreign >>/packages')
      expect(machine.run(`${withoutRunc}; install --no-hello`)).toMatchObject({ status: 0 })
      expect(machine.read('/etc/podd/.installed-packages')).toBe('runc\n')
    })

    it('clears, the next time, what it left when it was killed', () => {
      machine.write('/apt', 'kill -KILL $PPID; sleep 0.2')
      machine.run(`${withoutRunc}; install --no-hello`)
      expect(machine.has(policy)).toBe(true)
      machine.write('/apt', '')
      expect(machine.run('install --no-hello')).toMatchObject({ status: 0 })
      expect(machine.has(policy)).toBe(false)
    })

    it("leaves the administrator's own policy", () => {
      machine.write(policy, '#!/bin/sh\nexit 101\n')
      expect(machine.run(`${withoutRunc}; install --no-hello`)).toMatchObject({ status: 0 })
      expect(machine.read(policy)).toBe('#!/bin/sh\nexit 101\n')
    })
  })

  describe('going back', () => {
    it('changes the version with the one before, and again', () => {
      machine.run('install --no-hello; touch /opt/podd/mark; install --no-hello')
      expect(machine.has('/opt/podd/mark')).toBe(false)
      expect(machine.run(`install --rollback; ${daemon} >/daemon`)).toMatchObject({ status: 0, stderr: '' })
      expect(machine.has('/opt/podd/mark')).toBe(true)
      expect(machine.read('/daemon')).not.toBe('')
      expect(machine.run('install --rollback')).toMatchObject({ status: 0 })
      expect(machine.has('/opt/podd/mark')).toBe(false)
      expect(machine.has('/opt/podd.previous/mark')).toBe(true)
    })

    it('says so where there is no version before, and changes nothing', () => {
      machine.run('install --no-hello')
      const { status, stderr } = machine.run('install --rollback')
      expect(status).toBe(1)
      expect(stderr).toContain('there is no version before')
      expect(machine.has('/opt/podd/bin/podd')).toBe(true)
    })

    it('keeps the version before the last one where the newest can not be put in place', () => {
      machine.run('install --no-hello; touch /opt/podd/one; install --no-hello; touch /opt/podd/two')
      machine.write('/sync', 'case $* in */usr/local/bin*) exit 1 ;; esac\n')
      expect(machine.run('install --no-hello').status).toBe(1)
      expect(machine.has('/opt/podd/two')).toBe(true)
      expect(machine.has('/opt/podd.previous/one')).toBe(true)
    })

    it('lets no other install.sh begin before it is over', () => {
      machine.run('install --no-hello')
      const second =
        '*"/opt/podd /etc/podd"*) /clone/install.sh --no-hello >/second 2>&1; echo "$?" >>/second ;;'
      machine.write('/sync', `case $* in */usr/local/bin*) exit 1 ;; ${second} esac\n`)
      expect(machine.run('install --no-hello').status).toBe(1)
      expect(machine.read('/second')).toBe('install.sh: another install.sh is running\n1\n')
      machine.write('/sync', '')
      expect(machine.run('install --no-hello')).toMatchObject({ status: 0 })
    })
  })

  it.each([
    ['', ''],
    [
      ", and leaves Debian's link to manuals whole",
      'mkdir -p /usr/local/share/man; ln -s share/man /usr/local/man; ',
    ],
  ])('has manuals and completions where programs look for them, and takes these away%s', (_, prepare) => {
    const { stdout } = machine.run(
      `${prepare}install --no-hello >/dev/null; find /usr/local -type l ! -name man -printf "%P %l\\n" | sort`,
    )
    expect(stdout.split('\n')).toEqual([
      'bin/podd /opt/podd/bin/podd',
      'share/bash-completion/completions/podd /opt/podd/share/completions/podd.bash',
      'share/fish/vendor_completions.d/podd.fish /opt/podd/share/completions/podd.fish',
      'share/man/man1/podd.1.gz /opt/podd/share/man/man1/podd.1.gz',
      'share/man/man5/podd.yaml.5.gz /opt/podd/share/man/man5/podd.yaml.5.gz',
      'share/zsh/site-functions/_podd /opt/podd/share/completions/podd.zsh',
      '',
    ])
    expect(machine.run('install --purge >/dev/null; find /usr/local -mindepth 2').stdout).toBe(
      '/usr/local/share/man\n',
    )
    expect(machine.run('find /usr/local -xtype l').stdout).toBe('')
  })

  it('does not touch a podd that is installed as a package', () => {
    machine.write('/packages', 'bash\npodd\n')
    const { status, stderr } = machine.run('install --no-hello')
    expect(status).toBe(1)
    expect(stderr).toContain('podd is installed here as a package')
  })

  describe('a power cut', () => {
    it('takes nothing that was installed: it is on the disk before it is used, and in the end', () => {
      expect(machine.run('install --no-hello')).toMatchObject({ status: 0 })
      const calls = machine.takeCalls().filter((call) => /^(sync|podd run)/u.test(call))
      expect(calls.filter((call) => call !== 'podd run')).toEqual([
        'sync --file-system /opt/podd.new',
        expect.stringMatching(/^sync --file-system \/opt\/podd \/usr\/local\/bin \/etc\/podd /u),
        'sync --file-system /opt/podd /etc/pods',
      ])
      // In the background: it may be late, never early.
      expect(calls.indexOf('podd run')).toBeGreaterThan(1)
    })

    it('leaves the version before where the disk takes no new one', () => {
      machine.run('install --no-hello')
      machine.write('/opt/podd/mark', '')
      machine.write('/sync-fails', '')
      const { status, stderr } = machine.run('install --no-hello')
      expect(status).toBe(1)
      expect(stderr).toContain('the disk does not take what was installed')
      expect(machine.has('/opt/podd/mark')).toBe(true)
      expect(machine.has('/opt/podd.new')).toBe(false)
    })
  })

  describe('uninstalling', () => {
    beforeEach(() => {
      machine.run('install --no-hello')
      machine.write('/var/lib/podd/pods/a-uid/etc-hosts', '')
      machine.takeCalls()
    })

    it('leaves manifests, settings and data', () => {
      machine.write('/etc/podd/config.yaml', settings('maxPods: 5'))
      machine.write('/etc/pods/web.yaml', '')
      const { stdout, ...rest } = machine.run('install --uninstall')
      expect(rest).toMatchObject(done)
      expect(stdout).toMatch(
        /What stays:\n {2}\/etc\/pods\/web.yaml\n {2}\/etc\/podd\/config.yaml\n {2}\/var\/lib\/podd\ninstall.sh --purge removes these too.\n$/u,
      )
      expect(isGone()).toBe(true)
    })

    it('keeps the data of claims in a purge, says where it is, and removes the rest of the state', () => {
      machine.write('/var/lib/podd/claims/default/data/file', 'work')
      machine.write('/var/lib/podd/records/c-uid.json', '')
      const { stdout, ...rest } = machine.run('install --purge')
      expect(rest).toMatchObject(done)
      expect(stdout).toMatch(
        /What stays:\n {2}\/var\/lib\/podd\nThe data of .* is in \/var\/lib\/podd\/claims; /u,
      )
      expect(machine.read('/var/lib/podd/claims/default/data/file')).toBe('work')
      expect(machine.has('/var/lib/podd/records')).toBe(false)
    })

    it.each(['install --purge', 'install --uninstall; install --purge'])('removes them with `%s`', (line) => {
      machine.write(
        '/etc/podd/config.yaml',
        settings('maxPods: 5', '# rootDir: /data', 'staticPodPath: "/etc/pods/" # here'),
      )
      for (const path of [
        '/etc/pods/web.yaml',
        '/var/log/pods/default_web_a-uid/0.log',
        '/var/log/pods/default_x_b-uid/0.log',
        '/var/log/pods/default_y_*/0.log',
        '/var/lib/podd/records/c-uid.json',
        '/var/log/pods/default_job_c-uid/main/0.log',
        '/var/lib/podd/records/d-uid.json.unreadable',
        '/var/log/pods/default_job_d-uid/main/0.log',
      ])
        machine.write(path, '')
      machine.write('/var/log/pods/default_past_e-uid/.podd-owner', '/var/lib/podd')
      machine.write('/var/log/pods/default_other_f-uid/.podd-owner', '/data/podd')
      const { stdout, ...rest } = machine.run(line)
      expect(rest).toMatchObject(done)
      expect(stdout).toMatch(/podd is gone\n$/u)
      expect(isGone()).toBe(true)
      const logs = ['web_a-uid', 'job_c-uid', 'job_d-uid', 'past_e-uid']
      for (const path of [
        '/etc/podd',
        '/etc/pods',
        '/var/lib/podd',
        ...logs.map((name) => `/var/log/pods/default_${name}`),
      ])
        expect(machine.has(path) ? path : '').toBe('')
      for (const name of ['x_b-uid', 'y_*', 'other_f-uid'])
        expect(machine.has(`/var/log/pods/default_${name}`) ? '' : name).toBe('')
    })

    it.each([
      ['--purge', '  --all   Also removes\n', 'podd down --all'],
      ['--purge', '  --allowed-unsafe-sysctls NAME,…\n', 'podd down'],
      ['--uninstall', '  --all   Also removes\n', 'podd down'],
    ])(
      '%s ends the pods, completed ones too where all goes, with a podd that knows %j',
      (flag, help, call) => {
        machine.write('/down-knows', help)
        expect(machine.run(`install ${flag}`)).toMatchObject(done)
        expect(calls('podd').filter((each) => !each.endsWith('--help'))).toEqual([call])
      },
    )

    it.each([
      ['YAML', settings('rootDir: /data/podd/ # a disk', "staticPodPath: '/srv/my pods'")],
      ['JSON', JSON.stringify({ staticPodPath: '/srv/my pods', rootDir: '/data/podd' }, undefined, 1)],
    ])('purges nothing of what the settings have elsewhere, written as %s, and says so', (_, text) => {
      machine.write('/etc/podd/config.yaml', text)
      for (const path of ['/etc/pods/else.txt', '/srv/my pods/web.yaml', '/data/podd/x'])
        machine.write(path, '')
      const { stdout, ...rest } = machine.run('install --purge')
      expect(rest).toMatchObject(done)
      for (const path of [
        '/etc/pods/else.txt',
        '/etc/podd/config.yaml',
        '/var/lib/podd',
        '/srv/my pods',
        '/data/podd',
      ])
        expect(stdout).toContain(`  ${path}\n`)
      expect(machine.has('/etc/pods/else.txt')).toBe(true)
      expect(machine.has('/var/lib/podd/pods')).toBe(true)
      expect(isGone()).toBe(true)
    })

    it('takes nothing of a machine without podd', () => {
      machine.run('install --purge')
      machine.write('/etc/pods/else.txt', '')
      const { stdout } = machine.run('install --purge')
      expect(stdout).toBe('podd is not installed here\n')
      expect(machine.has('/etc/pods/else.txt')).toBe(true)
    })

    it.each(['/var/lib/podd/pods/a-uid/volume-subpaths/v/main/0', '/run/podd/some where', '/etc/pods'])(
      'removes nothing while something is mounted at %s',
      (place) => {
        machine.write('/precious/file', '')
        const mount = `mkdir -p '${place}'; mount --bind /precious '${place}'`
        const { status, stderr } = machine.run(`${mount}; install --purge`)
        expect({ status, stderr }).toMatchObject({
          status: 1,
          stderr: expect.stringContaining(place) as string,
        })
        expect(machine.has('/precious/file')).toBe(true)
        expect(machine.has('/opt/podd/bin/podd')).toBe(true)
        expect(machine.run('install --purge')).toMatchObject(done)
        expect(machine.has('/precious/file')).toBe(true)
      },
    )

    it.each(['--uninstall', '--purge'])('does not %s over a containerd that nobody can end', (flag) => {
      machine.write('/run/podd/containerd/containerd.sock', '')
      expect(machine.run(`rm /opt/podd/bin/podd; install ${flag}`)).toMatchObject({ status: 1 })
      expect(machine.has('/run/podd/containerd/containerd.sock')).toBe(true)
      expect(machine.run('install')).toMatchObject({ status: 0 })
      machine.run('rm -r /run/podd/containerd')
      expect(machine.run(`install ${flag}`)).toMatchObject(done)
    })

    it('lets podd run on when it could not end the pods', () => {
      machine.write('/down-fails', '')
      const untilRunning = `until ${daemon} >/daemon; do sleep 0.05; done`
      const { status } = machine.run(
        `setsid /opt/podd/bin/podd run & ${untilRunning}; install --uninstall || { ${untilRunning}; exit 7; }`,
      )
      expect(status).toBe(7)
      expect(machine.read('/daemon')).not.toBe('')
      expect(calls('podd')).toEqual(['podd run', 'podd down', 'podd run'])
      expect(machine.run('install --uninstall').status).toBe(1)
      expect(calls('podd')).toEqual(['podd down'])
    })

    it.each([
      ['active', ['stop podd.service', 'restart podd.service']],
      ['activating', ['stop podd.service', 'restart podd.service']],
      ['inactive', ['stop podd.service']],
    ])('leaves the service, which is %s, as it was when it could not end the pods', (state, expected) => {
      machine.write('/down-fails', '')
      machine.write('/podd-is', state)
      expect(machine.run('mkdir -p /run/systemd/system; install --uninstall').status).toBe(1)
      const told = calls('systemctl').map((call) => call.replace(/^systemctl (--quiet )?/u, ''))
      expect(told.filter((call) => call !== 'is-active podd.service')).toEqual(expected)
    })

    it('disables the service once the pods have ended', () => {
      machine.write('/podd-is', 'active')
      expect(machine.run('mkdir -p /run/systemd/system; install --uninstall')).toMatchObject(done)
      const told = machine.takeCalls()
      const first = (word: string): number => told.findIndex((call) => call.includes(word))
      expect(first('podd down')).toBeGreaterThan(-1)
      expect(first(' disable ')).toBeGreaterThan(first('podd down'))
    })
  })
})
