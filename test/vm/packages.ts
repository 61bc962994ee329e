import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Machine } from './machine.ts'
import { check, say } from './say.ts'

const root = join(import.meta.dirname, '../..')
const good = '999.0.0'
const bad = '999.0.1'

/**
 * Makes below $1 the release of this checkout, with its offline bundle, and two later ones of the same program: one that works,
 * and one whose daemon doesn't start.
 */
const makeReleases = `
minisign -G -W -s "$1/release.key" -p "$1/release.pub" >/dev/null
packaging/package.sh --fast --arch amd64 --offline --key "$1/release.key" --out "$1/first"
version=$(sed -n 's/^  "version": "\\(.*\\)",$/\\1/p' package.json)
mv "$1/first/podd_\${version}_amd64.deb" "$1/first/podd.deb"
mv "$1/first/podd_\${version}_linux_amd64.tar.gz" "$1/first/podd.tar.gz"
change() { # PROGRAM VERSION
  sed -i "s/\\bversion=\\\`$version\\\`/version=\\\`$2\\\`/" "$1"/dist/*.js
  [ $2 = ${good} ] || sed -i '1i if (process.argv[2] === "run") process.exit(1)' "$1/dist/main.js"
}
for next in ${good} ${bad}; do
  mkdir "$1/$next"
  dpkg-deb -R "$1/first/podd.deb" "$1/deb"
  sed -i "s/^Version: .*/Version: $next/" "$1/deb/DEBIAN/control"
  change "$1/deb/usr/lib/podd" $next
  dpkg-deb --root-owner-group -Zgzip -z1 --build "$1/deb" "$1/$next/podd_\${next}_amd64.deb" >/dev/null
  mkdir "$1/archive"
  tar -C "$1/archive" -xzf "$1/first/podd.tar.gz"
  mv "$1/archive/podd-$version" "$1/archive/podd-$next"
  change "$1/archive/podd-$next" $next
  (cd "$1/archive/podd-$next" && find . -type f ! -name SHA256SUMS -printf '%P\\n' | xargs -d '\\n' sha256sum >SHA256SUMS)
  tar -C "$1/archive" --owner=0 --group=0 -czf "$1/$next/podd_\${next}_linux_amd64.tar.gz" "podd-$next"
  rm -r "$1/deb" "$1/archive"
  (cd "$1/$next" && sha256sum podd_* >SHA256SUMS)
  minisign -S -s "$1/release.key" -m "$1/$next/SHA256SUMS" -t "podd $next" >/dev/null
done
`

const podCount = 10
const manifests = Array.from({ length: podCount }, (_, index) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod-${index}` },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: 'localhost/podd-busybox:1',
          imagePullPolicy: 'Never',
          command: ['sleep', '1000000'],
        },
      ],
    },
  }),
)

/** What a purge has to leave as it was; the distribution's containerd leaves directories of its own. */
const snapshot = `{ dpkg-query -W -f '\${db:Status-Abbrev} \${Package}\\n' | grep ^i; find /etc /opt /usr -xdev ! -name 'ld.so.cache' ! -path '/etc/alternatives*' ! -path '*/.pwd.lock' ! -path '/etc/cni*';
  ps -e -o comm= | grep -v '^kworker' | grep -E 'podd|containerd|node|pause|sleep|httpd|catatonit'; findmnt -rn -o TARGET | grep -v /run/user; ip -o link | cut -d: -f2; ls /var/lib /var/log /run | grep -E 'podd|^pods$|^containers$'; } | sort -u; true`

const patienceMs = 1_200_000

/** On a machine of its own, podd from the offline bundle, as a package by apt, and from an archive, each to its purge. */
export async function packages(machine: Machine): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'podd-vm-packages-'))
  try {
    say('packages: making three releases')
    execFileSync('bash', ['-euc', makeReleases, 'bash', scratch], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const files = ['first', good, bad].flatMap((name) =>
      readdirSync(join(scratch, name)).map((file) => `${name}/${file}`),
    )
    await machine.run(
      'mkdir -p /root/releases && tar -C /root/releases -xf -',
      execFileSync('tar', ['-C', scratch, '-cf', '-', ...files], { maxBuffer: 2 ** 30 }),
    )
    // The bundle is of the host's own release of the distribution.
    if (process.env['PODD_VM_SUITE'] === undefined) await use(machine, 'bundle')
    await use(machine, 'package')
    await use(machine, 'archive')
    await machine.run('rm -rf /root/releases')
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Where podd came from. */
type Origin = 'bundle' | 'package' | 'archive'

const installCommands: Readonly<Record<Origin, string>> = {
  bundle:
    'cd /root/releases/first && tar -xf podd-offline_*.tar && unshare --net ./podd-offline_*/install.sh',
  package:
    'apt-get -qq update && apt-get -qq -y --no-install-recommends install /root/releases/first/podd.deb',
  archive: 'cd /root/releases/first && tar -xzf podd.tar.gz && ./podd-[0-9]*/install.sh',
}

/** Leaves manifests, settings, and the packages that came with podd. */
const removeCommands: Readonly<Record<Origin, string>> = {
  bundle: 'apt-get -qq -y remove podd',
  package: 'apt-get -qq -y remove podd',
  archive: '/root/releases/first/podd-[0-9]*/install.sh --uninstall',
}

const purgeCommands: Readonly<Record<Origin, string>> = {
  bundle: 'apt-get -qq -y purge podd',
  package: 'apt-get -qq -y purge podd',
  archive: '/root/releases/first/podd-[0-9]*/install.sh --purge',
}

/** Installs podd from there, upgrades it under pods that run, and removes it again. */
async function use(machine: Machine, origin: Origin): Promise<void> {
  const run = (command: string): Promise<string> => machine.run(command, undefined, patienceMs)
  const tell = (what: string): void => say(`${origin}: ${what}`)
  const versionNow = async (): Promise<string> =>
    (await run('curl -s --unix-socket /run/podd/podd.sock http://podd/podd/v1/status')).match(
      /"version":"([^"]*)"/u,
    )?.[1] ?? ''
  const ids = async (): Promise<string> =>
    (await run("podd get pods -o 'jsonpath={.items[*].status.containerStatuses[*].containerID}'"))
      .split(' ')
      .toSorted()
      .join('\n')
  const releaseOf = (version: string): string =>
    `/root/releases/${version}/podd_${version}_${origin === 'archive' ? 'linux_amd64.tar.gz' : 'amd64.deb'}`

  const before = await run(snapshot)
  const beganMs = performance.now()
  await run(installCommands[origin])
  await machine.until('podd', async () => ((await versionNow()) === '' ? undefined : true), patienceMs)
  tell(`installed in ${Math.round((performance.now() - beganMs) / 1000)} s`)
  const first = await versionNow()

  if (origin !== 'archive')
    await run(
      'podd images import /usr/lib/podd/busybox-image.tar && cp /usr/lib/podd/manifests/hello.yaml /etc/pods/',
    )
  for (const [index, manifest] of manifests.entries())
    await machine.write(`/etc/pods/pod-${index}.json`, manifest)
  await machine.until(
    'all pods',
    async () =>
      (await ids()).split('\n').length === podCount + 1 &&
      (await run('podd wait --all --for=condition=Ready --timeout 10s')) !== ''
        ? true
        : undefined,
    patienceMs,
  )
  check((await run('curl -s http://127.0.0.1:8080/')) !== '', 'the example answers')
  const running = await ids()
  tell(`${podCount + 1} pods run, and the example answers`)

  const upgraded = await run(`podd upgrade --from ${releaseOf(good)}`)
  check((await versionNow()) === good, `the later version runs after the upgrade:\n${upgraded}`)
  check((await ids()) === running, 'the containers are the same after an upgrade')
  tell('upgraded, the same containers')

  const failed = await run(`podd upgrade --from ${releaseOf(bad)} 2>&1 || echo failed`)
  check(failed.endsWith('failed\n'), `an upgrade to a podd that does not start fails:\n${failed}`)
  check((await versionNow()) === good, `podd goes back by itself:\n${failed}`)
  check((await ids()) === running, 'the containers are the same after podd went back')
  tell('a podd that does not start was taken back, the same containers')

  await run('podd upgrade --rollback')
  check((await versionNow()) === first, 'the version before runs after podd upgrade --rollback')
  check((await ids()) === running, 'the containers are the same after a rollback')
  tell('rolled back, the same containers')

  await run(removeCommands[origin])
  const left = await run("ps -e -o args= | grep -E '[p]odd|[c]ontainerd-shim|sleep [1]000000' || true")
  check(left === '', `a removal ends the pods and containerd:\n${left}`)
  const rules = await run('iptables-save; ip6tables-save; nft list ruleset 2>/dev/null || true')
  check(
    !/^-A|^:\S+ -|^\s+chain (?:CNI|PODD)/mu.test(rules),
    `a removal leaves no rules and chains:\n${rules}`,
  )
  check((await run('ls /etc/pods')).includes('pod-0.json'), 'a removal keeps the manifests')
  await run(`${purgeCommands[origin]} && apt-get -qq -y autoremove --purge`)
  const missingIn = (text: string, other: string): readonly string[] =>
    other.split('\n').filter((line) => !text.split('\n').includes(line))
  // Of what came with podd, apt keeps what other packages recommend or suggest.
  const automatic = (await run('apt-mark showauto')).split('\n')
  const kept = missingIn(before, await run(snapshot))
    .flatMap((line) => /^ii +(\S+)$/u.exec(line)?.[1] ?? [])
    .filter((name) => automatic.includes(name))
  if (kept.length > 0) await run(`apt-get -qq -y purge ${kept.join(' ')}`)
  const after = await run(snapshot)
  const added = missingIn(before, after)
  const gone = missingIn(after, before)
  check(
    added.length + gone.length === 0,
    `a purge leaves the machine as it was: added ${added.join(', ')}; gone ${gone.join(', ')}`,
  )
  tell('removed and purged, the machine is as it was')
}
