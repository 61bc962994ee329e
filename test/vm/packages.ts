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
 * Makes below $1 the release of this checkout with its offline bundle, and two later ones of the same program: one that works,
 * and one whose daemon doesn't start.
 */
const makeReleases = `
minisign -G -W -s "$1/release.key" -p "$1/release.pub" >/dev/null
packaging/package.sh --fast --arch amd64 --offline --key "$1/release.key" --out "$1/first"
version=$(sed -n 's/^  "version": "\\(.*\\)",$/\\1/p' package.json)
for next in ${good} ${bad}; do
  dpkg-deb -R "$1/first/podd_\${version}_amd64.deb" "$1/deb"
  sed -i "s/^Version: .*/Version: $next/" "$1/deb/DEBIAN/control"
  sed -i "s/\\bversion=\\\`$version\\\`/version=\\\`$next\\\`/" "$1"/deb/usr/lib/podd/dist/*.js
  [ $next = ${good} ] || sed -i '1i if (process.argv[2] === "run") process.exit(1)' "$1/deb/usr/lib/podd/dist/main.js"
  mkdir "$1/$next"
  dpkg-deb --root-owner-group -Zgzip -z1 --build "$1/deb" "$1/$next/podd_\${next}_amd64.deb" >/dev/null
  rm -r "$1/deb"
  (cd "$1/$next" && sha256sum podd_* >SHA256SUMS)
  minisign -S -s "$1/release.key" -m "$1/$next/SHA256SUMS" -t "podd $next" >/dev/null
done
rm "$1/first/"*.deb "$1/first/"*.tar.gz
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
const snapshot = `{ dpkg-query -W -f '\${db:Status-Abbrev} \${Package}\\n' | grep ^i; find /etc /opt /usr/local -xdev ! -name 'ld.so.cache' ! -path '/etc/alternatives*' ! -path '*/.pwd.lock' ! -path '/etc/cni*';
  ps -e -o comm= | grep -E 'podd|containerd|node|pause|sleep|httpd|catatonit'; findmnt -rn -o TARGET | grep -v /run/user; ip -o link | cut -d: -f2; ls /var/lib /var/log /run | grep -E 'podd|^pods$|^containers$'; } | sort -u; true`

const patienceMs = 1_200_000

/** podd as a Debian package on a machine of its own: from the offline bundle to the purge. */
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
    await use(machine)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function use(machine: Machine): Promise<void> {
  const run = (command: string): Promise<string> => machine.run(command, undefined, patienceMs)
  const versionNow = async (): Promise<string> =>
    (await run('curl -s --unix-socket /run/podd/podd.sock http://podd/podd/v1/status')).match(
      /"version":"([^"]*)"/u,
    )?.[1] ?? ''
  const ids = async (): Promise<string> =>
    (await run("podd get pods -o 'jsonpath={.items[*].status.containerStatuses[*].containerID}'"))
      .split(' ')
      .toSorted()
      .join('\n')

  const before = await run(snapshot)
  const began = performance.now()
  await run(
    'cd /root/releases/first && tar -xf podd-offline_*.tar && unshare --net ./podd-offline_*/install.sh',
  )
  await machine.until('podd', async () => ((await versionNow()) === '' ? undefined : true), patienceMs)
  say(
    `packages: installed from the bundle without a network in ${Math.round((performance.now() - began) / 1000)} s`,
  )
  const first = await versionNow()

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
  say(`packages: ${podCount + 1} pods run, and the example answers`)

  await run(`podd upgrade --from /root/releases/${good}/podd_${good}_amd64.deb`)
  check((await versionNow()) === good, 'the later version runs after the upgrade')
  check((await ids()) === running, 'the containers are the same after an upgrade')
  say('packages: upgraded, the same containers')

  const failed = await run(
    `podd upgrade --from /root/releases/${bad}/podd_${bad}_amd64.deb 2>&1 || echo failed`,
  )
  check(failed.endsWith('failed\n'), `an upgrade to a podd that does not start fails:\n${failed}`)
  check((await versionNow()) === good, `podd goes back by itself:\n${failed}`)
  check((await ids()) === running, 'the containers are the same after podd went back')
  say('packages: a podd that does not start was taken back, the same containers')

  await run('podd upgrade --rollback')
  check((await versionNow()) === first, 'the version before runs after podd upgrade --rollback')
  check((await ids()) === running, 'the containers are the same after a rollback')
  say('packages: rolled back, the same containers')

  await run('apt-get -qq -y remove podd')
  const left = await run("ps -e -o args= | grep -E '[p]odd|[c]ontainerd-shim|sleep [1]000000' || true")
  check(left === '', `a removal ends the pods and containerd:\n${left}`)
  check((await run('ls /etc/pods')).includes('hello.yaml'), 'a removal keeps the manifests')
  await run('apt-get -qq -y purge podd && apt-get -qq -y autoremove --purge && rm -rf /root/releases')
  const after = await run(snapshot)
  const missingIn = (text: string, other: string): readonly string[] =>
    other.split('\n').filter((line) => !text.split('\n').includes(line))
  const added = missingIn(before, after)
  const gone = missingIn(after, before)
  check(
    added.length + gone.length === 0,
    `a purge leaves the machine as it was: added ${added.join(', ')}; gone ${gone.join(', ')}`,
  )
  say('packages: removed and purged, the machine is as it was')
}
