import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { shell } from '../support/podd-program.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { hasRegistry, TestRegistry } from '../support/private-registry.ts'
import { shellPod } from '../support/shell-pods.ts'

const program = '/usr/bin/minisign'
const hasMinisign = existsSync(program)

/** Of the config, which is written before the rig knows its directory. */
const places = mkdtempSync('/tmp/podd-trust-')
const signed = join(places, 'signed')
const verifiers = join(places, 'verifiers')
const port = await freePort()
mkdirSync(signed)
mkdirSync(verifiers)
afterAll(() => rmSync(places, { recursive: true, force: true }))

const keyPath = (key: string): string => join(places, `${key}.key`)

/** Makes a key pair; gives the public key as the docs say it is written into the config. */
function makeKey(key: string): string {
  execFileSync(program, ['-G', '-W', '-p', join(places, `${key}.pub`), '-s', keyPath(key)])
  return readFileSync(join(places, `${key}.pub`), 'utf8').split('\n')[1] ?? ''
}

/** The text of the signature of a text under a name; with minisign's own comment, where no time is given. */
function sign(key: string, name: string, text: string, seconds?: number): string {
  const directory = mkdtempSync(join(places, 'sign-'))
  const path = join(directory, name)
  writeFileSync(path, text)
  const comment = seconds === undefined ? [] : ['-t', `timestamp:${seconds}\tfile:${name}\thashed`]
  execFileSync(program, ['-S', '-s', keyPath(key), ...comment, '-m', path])
  return readFileSync(`${path}.minisig`, 'utf8')
}

/** Puts a file in place at once. */
function put(directory: string, name: string, text: string): void {
  writeFileSync(join(places, 'put'), text)
  renameSync(join(places, 'put'), join(directory, name))
}

const podText = (podd: PoddRig, name: string, value: string): string =>
  `${JSON.stringify(
    shellPod(name, podd.shared, 'say $V; stay', { container: { env: [{ name: 'V', value }] } }),
  )}\n`

async function until(podd: PoddRig, name: string, ...words: readonly string[]): Promise<void> {
  await podd.until(
    `${words.join(' ')} of ${name}`,
    async () =>
      podd
        .lines(name)
        .map((line) => line.replace(/^\S+ /u, ''))
        .join(' ') === words.join(' '),
  )
}

/** Rewrites the config, and starts podd again. */
async function trust(podd: PoddRig, ...keys: readonly string[]): Promise<void> {
  const path = join(podd.directory, 'config.yaml')
  const config: unknown = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(path, JSON.stringify({ ...(config as object), ...configWith(keys) }))
  await podd.restartDaemon()
}

const configWith = (keys: readonly string[]) => ({
  podSecurity: { url: { level: 'privileged' } },
  sources: [
    { name: 'signed', path: signed, verify: { keys } },
    {
      name: 'fleet',
      url: `http://127.0.0.1:${port}/fleet.json`,
      checkFrequency: '300ms',
      verify: { keys },
      imagePolicy: { requireDigest: true },
    },
  ],
})

describe.skipIf(!hasMinisign)('manifests that minisign signed', () => {
  const [first, second] = hasMinisign ? [makeKey('first'), makeKey('second')] : ['', '']
  const served = new Map<string, string>()
  let server: Server | undefined
  beforeAll(async () => {
    server = createServer((request, response) => {
      const body = served.get(request.url ?? '')
      response.writeHead(body === undefined ? 404 : 200).end(body)
    })
    await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve))
  })
  afterAll(() => server?.close())

  describePodd('signatures', { config: configWith([first]) }, (rig) => {
    it('run, and keep running while what stands there is forged, stripped, swapped or replayed, by file', async () => {
      const podd = rig()
      const [one, two] = [podText(podd, 'edge', 'one'), podText(podd, 'edge', 'two')]
      const [early, late] = [1_750_000_000, 1_760_000_000]
      const putBoth = (text: string, signature: string): void => {
        put(signed, 'edge.json', text)
        put(signed, 'edge.json.minisig', signature)
      }
      put(signed, 'edge.json', one)
      await podd.untilNote(/edge\.json: is not taken: the signature .*edge\.json\.minisig is missing/u)
      expect(await podd.findPod('edge')).toBeUndefined()
      put(signed, 'edge.json.minisig', sign('first', 'edge.json', one, early))
      await until(podd, 'edge', 'one')
      putBoth(two, sign('first', 'edge.json', two, late))
      await until(podd, 'edge', 'one', 'end', 'two')
      const { uid } = (await podd.untilReady('edge')).metadata
      const evil = podText(podd, 'edge', 'evil')
      putBoth(evil, sign('first', 'edge.json', two, late))
      await podd.untilNote(/edge\.json\.minisig does not belong to this content/u)
      rmSync(join(signed, 'edge.json.minisig'))
      await podd.untilNote(/edge\.json\.minisig is missing/u)
      putBoth(evil, sign('second', 'edge.json', evil))
      await podd.untilNote(/edge\.json\.minisig is of the key \w{16}, which is not trusted here/u)
      const other = podText(podd, 'other', 'other')
      putBoth(other, sign('first', 'other.json', other))
      await podd.untilNote(/edge\.json\.minisig is for a file named other\.json/u)
      putBoth(one, sign('first', 'edge.json', one, early))
      await podd.untilNote(/edge\.json\.minisig is of 2025-06-15.*, older than .*2025-10-09/u)
      await podd.restartDaemon('SIGKILL')
      await podd.untilNote(/edge\.json\.minisig is of 2025-06-15.*, older than .*2025-10-09/u)
      expect((await podd.untilReady('edge')).metadata.uid).toBe(uid)
      await until(podd, 'edge', 'one', 'end', 'two')
      // As the docs say: to go back, sign again.
      putBoth(one, sign('first', 'edge.json', one))
      await until(podd, 'edge', 'one', 'end', 'two', 'end', 'one')
      expect(await podd.notes()).not.toContain('edge.json')
    })

    it('need a digest of each image where that is said, and may be of a new key once that is trusted, by URL', async () => {
      const podd = rig()
      const tagged = podText(podd, 'fleet', 'one')
      const digest = podd
        .ctr('images', 'ls')
        .split('\n')
        .find((line) => line.startsWith(`${shell} `))
        ?.match(/sha256:[0-9a-f]{64}/u)?.[0]
      const pinned = tagged.replaceAll(shell, `${shell.replace(/:[^:/]*$/u, '')}@${digest}`)
      podd.ctr('images', 'tag', shell, `${shell.replace(/:[^:/]*$/u, '')}@${digest}`)
      let signedAt = 1_760_000_000
      const serve = (key: string, text: string): void => {
        // A signature's time is in whole seconds, and one of the same second is not newer.
        served.set('/fleet.json.minisig', sign(key, 'fleet.json', text, signedAt++))
        served.set('/fleet.json', text)
      }
      serve('first', tagged)
      await podd.untilNote(
        /spec\.containers\[0\]\.image: .*must have a digest, as imagePolicy\.requireDigest/u,
      )
      expect(await podd.findPod('fleet')).toBeUndefined()
      serve('first', pinned)
      await until(podd, 'fleet', 'one')
      const next = pinned.replaceAll('"one"', '"two"')
      serve('second', next)
      await podd.untilNote(/fleet\.json\.minisig is of the key \w{16}, which is not trusted here/u)
      await trust(podd, first, second)
      await until(podd, 'fleet', 'one', 'end', 'two')
      await trust(podd, second)
      await podd.untilReady('fleet')
      serve('first', pinned)
      await podd.untilNote(/fleet\.json\.minisig is of the key \w{16}, which is not trusted here/u)
      await until(podd, 'fleet', 'one', 'end', 'two')
    })

    it('are checked by podd validate as by minisign', async () => {
      const podd = rig()
      const path = join(places, 'web.json')
      writeFileSync(path, podText(podd, 'web', 'one'))
      writeFileSync(`${path}.minisig`, sign('second', 'web.json', readFileSync(path, 'utf8')))
      const check = (...words: readonly string[]) => podd.ask('validate', path, ...words)
      expect(await check('--key', second)).toMatchObject({ code: 0 })
      expect(await check('--key', join(places, 'second.pub'))).toMatchObject({ code: 0 })
      const strange = await check('--key', join(places, 'first.pub'))
      expect(strange.code).toBe(1)
      expect(strange.stdout).toMatch(/is of the key \w{16}, which is not trusted here/u)
    })
  })
})

describe.skipIf(!hasRegistry)('images that programs judge', () => {
  /** Lets the images of one repository through. */
  const script = `#!/bin/sh
echo "$*" >>${places}/judged
case "$2" in
  */good:*) echo fine ;;
  *) echo "nobody vouches for $2"; exit 1 ;;
esac
`
  writeFileSync(join(verifiers, 'judge'), script, { mode: 0o755 })
  // The rig waits for a runtime that works: where this containerd can't, the setting comes later.
  const config = { serializeImagePulls: false, registryPullQPS: 0 }
  describePodd('image verifiers', { config }, (rig) => {
    let registry: TestRegistry | undefined
    beforeAll(async () => {
      registry = await TestRegistry.start(rig(), { name: 'judged' })
    })
    afterAll(() => registry?.stop())

    async function configure(podd: PoddRig, fields: object): Promise<void> {
      const path = join(podd.directory, 'config.yaml')
      const config: unknown = JSON.parse(readFileSync(path, 'utf8'))
      writeFileSync(path, JSON.stringify({ ...(config as object), ...fields }))
      await podd.stopDaemon()
      podd.launch()
    }

    it('are pulled only if all agree, by a containerd that asks them; another one is refused', async () => {
      const podd = rig()
      if (registry === undefined) throw new Error('the registry is started before the tests')
      const [good, bad] = [await registry.push(podd, 'good'), await registry.push(podd, 'bad')]
      await configure(podd, { imageVerifiers: verifiers })
      const drop = (name: string, image: string): void =>
        podd.drop(name, shellPod(name, podd.shared, 'say here; stay', { container: { image } }))
      drop('good', good)
      if (podd.install.version.startsWith('1.')) {
        const why = /imageVerifiers needs containerd 2\.1 or newer, and containerd 1\.\S+ runs/u
        await podd.untilNote(why)
        await podd.untilEvent('good', 'Failed', why)
        return
      }
      drop('bad', bad)
      await podd.untilReady('good')
      const event = await podd.untilEvent('bad', 'Failed', /Failed to pull image/u)
      expect(event.message).toContain(`nobody vouches for ${bad}`)
      expect(readFileSync(join(places, 'judged'), 'utf8')).toMatch(
        /^-name \S+\/good:1 -digest sha256:\w{64} -stdin-media-type/mu,
      )
      // containerd would pull everything now.
      rmSync(join(verifiers, 'judge'))
      drop('late', good.replace('/good', '/late'))
      await podd.untilEvent('late', 'Failed', /imageVerifiers names \S+, which is empty/u)
      await podd.untilNote(/no image is pulled: imageVerifiers names \S+, which is empty/u)
      await podd.untilReady('good')
    })
  })
})
