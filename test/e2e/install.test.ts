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
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = new URL('../../', import.meta.url).pathname

function install(...args: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(join(root, 'install.sh'), args, { encoding: 'utf8', cwd: '/' })
}

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
      'opt/podd/busybox-image.tar',
      'etc/podd/config.yaml',
      'etc/pods/hello.yaml',
      'etc/systemd/system/podd.service',
      'etc/systemd/system/podd-containerd.service',
    ])
      expect(existsSync(at(path)) ? '' : path).toBe('')
    expect(readlinkSync(at('usr/local/bin/podd'))).toBe('/opt/podd/bin/podd')
    expect(statSync(at('opt/podd')).mode & 0o022).toBe(0)
  })

  it('gives a podd that needs neither a checkout nor a Node of the host', () => {
    const version = podd('version')
    expect(version.status).toBe(0)
    expect(version.stdout).toContain('Node.js')
    expect(podd('validate', at('etc/pods/hello.yaml'))).toMatchObject({ status: 0 })
  })

  it('says what went wrong and leaves nothing, when it can not finish', () => {
    const { status, stderr } = install('--stage', '/proc/nowhere')
    expect(status).toBe(1)
    expect(stderr).toContain('/proc/nowhere')
  })

  it('replaces the program and keeps settings, the second time', () => {
    appendFileSync(at('etc/podd/config.yaml'), 'maxPods: 5\n')
    appendFileSync(at('opt/podd/dist/main.js'), 'broken(')
    expect(install('--stage', stage, '--no-hello').status).toBe(0)
    expect(readFileSync(at('etc/podd/config.yaml'), 'utf8')).toContain('maxPods: 5')
    expect(podd('version').status).toBe(0)
    expect(existsSync(at('opt/podd.old'))).toBe(false)
    expect(existsSync(at('opt/podd.new'))).toBe(false)
  })
})
