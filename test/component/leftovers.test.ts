import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { writeTestMarks } from '../support/test-marks.ts'

const script = new URL('../lib/leftovers.sh', import.meta.url).pathname

let directory: string
let marks: string
/** A rig's directory, and one that looks like it and is somebody else's. */
let ours: string
let theirs: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-left-'))
  marks = join(directory, 'marks')
  ours = join(directory, 'podd-e2e-1-ours')
  theirs = join(directory, 'podd-e2e-1-theirs')
  mkdirSync(theirs)
  writeFileSync(marks, '')
  vi.stubEnv('PODD_TEST_MARKS', marks)
  writeTestMarks({ directory: ours, cgroup: '/podd-e2e-ours', names: ['podd-0000ours'] })
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true, force: true })
})

/** What is found after `plant`, a shell script, was run on a host of its own: other links, rules, mounts and cgroups. */
function findAfter(plant: string): readonly string[] {
  const apart = [
    '--user',
    '--map-root-user',
    '--net',
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
  ]
  const words = `
    set -eu
    mount -t tmpfs cgroups /sys/fs/cgroup
    marks=$1 ours=$2 theirs=$3
    # A process under the name of a program, with arguments.
    start() { ( exec -a "$1" sleep 1000 ) >/dev/null 2>&1 & }
    ${plant}
    exec bash "$0" "$marks"`
  const { stdout, stderr, status } = spawnSync(
    'unshare',
    [...apart, 'bash', '-c', words, script, marks, ours, theirs],
    { encoding: 'utf8', env: { ...process.env, PODD_TEST_MARKS: undefined } },
  )
  if (status !== 0) throw new Error(`${status} ${stderr}\n${stdout}`)
  return stdout.split('\n').filter((line) => line !== '')
}

const hasNamespaces = spawnSync('unshare', ['--user', '--map-root-user', '--net', 'ip', 'link']).status === 0
const hasFirewall = spawnSync('iptables', ['--version']).status === 0

describe.skipIf(!hasNamespaces)('test/lib/leftovers.sh', () => {
  it.for<[what: string, plant: string]>([
    ['a process', 'start "containerd --config $theirs/config.toml"'],
    [
      'a container',
      'start "containerd-shim-runc-v2 -namespace k8s.io -address /run/containerd/containerd.sock"',
    ],
    ['a podd', 'start "/opt/podd/main.js run --root-dir /var/lib/podd"'],
    ['a bridge', 'ip link add podd-1111else type bridge; ip link add podd0 type bridge'],
    [
      'firewall rules',
      'iptables -N CNI-abc; iptables -A CNI-abc -m comment --comment "name: podd-1111else" -j ACCEPT',
    ],
    ['a cgroup', 'mkdir -p /sys/fs/cgroup/podd-e2e-else/kubepods /sys/fs/cgroup/kubepods'],
    ['a mount', 'mount -t tmpfs podd-e2e "$theirs"'],
  ])('passes over %s of somebody else', ([, plant], context) => {
    if (plant.includes('iptables') && !hasFirewall) return context.skip('no iptables')
    expect(findAfter(plant)).toEqual([])
  })

  it.for<[what: string, plant: string, found: readonly RegExp[]]>([
    [
      'by its arguments',
      'start "containerd --config $ours/config.toml"',
      [/^process \d+ containerd --config .*ours/u],
    ],
    ['by its environment', 'PODD_TEST_MARKS=$marks start docker-registry', [/^process \d+ docker-registry/u]],
    ['a bridge', 'ip link add podd-0000ours type bridge', [/^link podd-0000ours$/u]],
    [
      'firewall rules',
      'iptables -N CNI-abc; iptables -A CNI-abc -m comment --comment "name: podd-0000ours" -j ACCEPT',
      [/^iptables-save rule -A CNI-abc .*podd-0000ours/u],
    ],
    [
      'a cgroup, in every hierarchy',
      'mkdir -p /sys/fs/cgroup/podd-e2e-ours/kubepods /sys/fs/cgroup/pids/podd-e2e-ours',
      [/^cgroup \/sys\/fs\/cgroup\/pids\/podd-e2e-ours$/u, /^cgroup \/sys\/fs\/cgroup\/podd-e2e-ours$/u],
    ],
    [
      'a mount, and the directory that it is in',
      'mkdir -p "$ours/root"; mount -t tmpfs podd-e2e "$ours/root"',
      [/^mount .*ours\/root$/u, /^path .*ours$/u],
    ],
    [
      'what lies in the directory for temporary files',
      'mkdir -p "$theirs/podd-api-x" "$theirs/v8-cache"; echo "tmp $theirs" >>"$marks"',
      [/^path .*theirs\/podd-api-x$/u],
    ],
  ])('finds what a rig left: %s', ([, plant, found], context) => {
    if (plant.includes('iptables') && !hasFirewall) return context.skip('no iptables')
    expect(findAfter(plant)).toEqual(found.map((line) => expect.stringMatching(line)))
  })
})

describe.skipIf(!hasNamespaces || !hasFirewall)('test/lib/sweep.ts', () => {
  const everything = `
    start "containerd --config $ours/config.toml"
    PODD_TEST_MARKS=$marks start docker-registry
    start "containerd --config $theirs/config.toml"
    stranger=$!
    ip link add podd-0000ours type bridge
    ip link add podd-1111else type bridge
    iptables -I FORWARD -i podd-0000ours -j ACCEPT
    iptables -I FORWARD -i podd-1111else -j ACCEPT
    mkdir -p /sys/fs/cgroup/podd-e2e-ours/kubepods /sys/fs/cgroup/pids/podd-e2e-ours /sys/fs/cgroup/podd-e2e-else
    mkdir -p "$ours/root" "$theirs/root"
    mount -t tmpfs podd-e2e "$ours/root"
    mount -t tmpfs podd-e2e "$theirs/root"
    cp "$marks" "$marks.kept"`
  const sweep = `"${process.execPath}" "${new URL('../lib/sweep.ts', import.meta.url).pathname}" "$marks" 2>&1`

  it('removes all that bears a mark, and nothing of somebody else, and names what it removes', () => {
    const lines = findAfter(`${everything}
    ${sweep}
    marks=$marks.kept
    # What is still there of somebody else.
    kill -0 $stranger; mountpoint -q "$theirs/root"; ls -d /sys/fs/cgroup/podd-e2e-else
    ip -o link show podd-1111else | cut -d: -f2; iptables -S FORWARD`)
    const [first, ...rest] = lines
    expect(first).toBe('The tests left, and it is being removed:')
    const told = rest.filter((line) => line.includes('ours'))
    for (const kind of ['process', 'mount', 'link', 'iptables-save rule', 'cgroup', 'path'])
      expect(told.join('\n')).toMatch(new RegExp(`^${kind} `, 'mu'))
    expect(rest.filter((line) => !told.includes(line))).toEqual([
      expect.stringMatching(/^process \d+ docker-registry/u),
      '/sys/fs/cgroup/podd-e2e-else',
      ' podd-1111else',
      '-P FORWARD ACCEPT',
      '-A FORWARD -i podd-1111else -j ACCEPT',
    ])
  })

  it('removes the marks once nothing is left, and says nothing where nothing was', () => {
    expect(findAfter(`${sweep}; [ ! -e "$marks" ]`)).toEqual([])
  })
})

it('has rigs write down what they are known by, each mark in a line', () => {
  expect(readFileSync(marks, 'utf8')).toBe(`directory ${ours}\ncgroup /podd-e2e-ours\nname podd-0000ours\n`)
  vi.stubEnv('PODD_TEST_MARKS', undefined)
  writeTestMarks({ directory: theirs })
  expect(readFileSync(marks, 'utf8')).not.toContain('theirs')
})
