import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import {
  dockerConfigJson,
  hasImage,
  hasRegistry,
  makeCertificates,
  pullSecret,
  TestRegistry,
} from '../support/private-registry.ts'
import { proves } from '../support/proves.ts'
import { shellPod } from '../support/shell-pods.ts'

const mediaType = 'application/vnd.oci.image.manifest.v1+json'

/** Of the config, which is written before the rig knows its directory. */
const places = mkdtempSync('/tmp/podd-credentials-')
const certsDir = join(places, 'certs.d')
const plugins = join(places, 'bin')
const pluginConfig = join(places, 'providers.yaml')

afterAll(() => rmSync(places, { recursive: true, force: true }))

const config = {
  serializeImagePulls: false,
  registryPullQPS: 0,
  registryConfigDir: certsDir,
  imageCredentialProviderConfig: pluginConfig,
  imageCredentialProviderBinDir: plugins,
}

function writePluginConfig(address: string): void {
  mkdirSync(plugins, { recursive: true })
  const provider = {
    name: 'give-grace',
    matchImages: [`${address}/plugin`],
    defaultCacheDuration: '0s',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    env: [{ name: 'REGISTRY', value: address }],
  }
  const head = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig' }
  writeFileSync(pluginConfig, JSON.stringify({ ...head, providers: [provider] }))
}

const pluginScript = `#!/bin/sh
cat >/dev/null
cat <<END
{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image",
 "auth":{"$REGISTRY":{"username":"grace","password":"squash"}}}
END
`

function writeHosts(address: string, ...lines: readonly string[]): void {
  mkdirSync(join(certsDir, address), { recursive: true })
  writeFileSync(join(certsDir, address, 'hosts.toml'), lines.join('\n'))
}

interface PodOptions {
  readonly image: string
  readonly secrets?: readonly string[]
  readonly policy?: 'Always' | 'IfNotPresent' | 'Never'
}

function pullingPod(rig: PoddRig, name: string, options: PodOptions): object {
  const { image, secrets = [], policy = 'IfNotPresent' } = options
  return shellPod(name, rig.shared, 'stay', {
    container: { image, imagePullPolicy: policy },
    spec: { imagePullSecrets: secrets.map((secret) => ({ name: secret })) },
  })
}

function waitingReason(pod: PodObject): string {
  return pod.status.containerStatuses?.[0]?.state.waiting?.reason ?? ''
}

async function untilRefused(rig: PoddRig, name: string): Promise<void> {
  await rig.untilPod(name, 'its image refused', (pod) =>
    /^(ErrImagePull|ImagePullBackOff|ErrImageNeverPull)$/u.test(waitingReason(pod)),
  )
}

describe.skipIf(!hasRegistry)('private registries', () => {
  describePodd('image credentials', { config }, (rig) => {
    let open: TestRegistry | undefined
    let registry: TestRegistry | undefined

    beforeAll(async () => {
      registry = await TestRegistry.start(rig(), { name: 'private', allowed: ['ada', 'grace'] })
      open = await TestRegistry.start(rig(), { name: 'open' })
      writePluginConfig(registry.address)
    })

    afterAll(() => {
      registry?.stop()
      open?.stop()
    })

    const push = (repository: string): Promise<string> => {
      if (registry === undefined) throw new Error('the registry is started before the tests')
      return registry.push(rig(), repository)
    }
    const right = (user: 'ada' | 'grace' = 'ada') => dockerConfigJson(registry?.address ?? '', user)
    const wrong = () => dockerConfigJson(registry?.address ?? '', 'ada', 'hunter2')

    it.concurrent(
      'pulls with the Secret of a pod, of the older type too',
      proves('pull-secrets', 'PodSpec: imagePullSecrets', 'LocalObjectReference: name'),
      async () => {
        const podd = rig()
        const image = await push('right')
        const older = {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'older' },
          type: 'kubernetes.io/dockercfg',
          stringData: { '.dockercfg': JSON.stringify((JSON.parse(right()) as { auths: object }).auths) },
        }
        podd.drop('right-secrets', pullSecret('right', right()), older)
        podd.drop('right', pullingPod(podd, 'right', { image, secrets: ['right'] }))
        await podd.untilReady('right')
        podd.drop('cfg', pullingPod(podd, 'cfg', { image, secrets: ['older'], policy: 'Always' }))
        await podd.untilReady('cfg')
        await podd.untilEvent('cfg', 'Pulled', /Successfully pulled image/u)
        const json = await podd.cliOk('get', 'pod', 'right', '-o', 'json')
        expect(JSON.parse(json)).toMatchObject({ spec: { imagePullSecrets: [{ name: 'right' }] } })
      },
    )

    it.concurrent('is refused without credentials, and says so', async () => {
      const podd = rig()
      const image = await push('anonymous')
      podd.drop('anonymous', pullingPod(podd, 'anonymous', { image }))
      await untilRefused(podd, 'anonymous')
      const event = await podd.untilEvent('anonymous', 'Failed', /Failed to pull image/u)
      expect(event.message).toMatch(/401|authorization|no basic auth credentials/iu)
    })

    it.concurrent('uses a changed Secret at once', async () => {
      const podd = rig()
      const image = await push('changed')
      podd.drop('changed-secret', pullSecret('changed', wrong()))
      podd.drop('changed', pullingPod(podd, 'changed', { image, secrets: ['changed'] }))
      await podd.untilPod('changed', 'backing off', (pod) => waitingReason(pod) === 'ImagePullBackOff')
      podd.drop('changed-secret', pullSecret('changed', right()))
      await podd.untilReady('changed')
      const events = await podd.events('changed')
      expect(JSON.stringify(events)).not.toContain('hunter2')
      expect(readFileSync(join(podd.directory, 'podd.log'), 'utf8')).not.toContain('hunter2')
    })

    it.concurrent('goes on without a Secret that is missing, and uses it when it is there', async () => {
      const podd = rig()
      const image = await push('missing')
      podd.drop('missing', pullingPod(podd, 'missing', { image, secrets: ['late'] }))
      await podd.untilEvent(
        'missing',
        'FailedToRetrieveImagePullSecret',
        /^Unable to retrieve some image pull secrets \(late\); attempting to pull the image may not succeed\.$/u,
      )
      await untilRefused(podd, 'missing')
      podd.drop('late-secret', pullSecret('late', right()))
      expect(waitingReason(await podd.untilReady('missing'))).toBe('')
    })

    it.concurrent('tries each Secret that fits', async () => {
      const podd = rig()
      const image = await push('second')
      podd.drop('second-secrets', pullSecret('first', wrong()), pullSecret('second', right('grace')))
      podd.drop('second', pullingPod(podd, 'second', { image, secrets: ['first', 'second'] }))
      expect(waitingReason(await podd.untilReady('second'))).toBe('')
      expect((await podd.events('second')).map(({ reason }) => reason)).not.toContain('Failed')
    })

    it.concurrent("pulls with the node's docker config, as it is now", async () => {
      const podd = rig()
      const image = await push('node/app')
      podd.drop('by-node', pullingPod(podd, 'by-node', { image }))
      await untilRefused(podd, 'by-node')
      const location = `${registry?.address}/node`
      writeFileSync(join(podd.rootDir, 'config.json'), dockerConfigJson(location, 'ada'), { mode: 0o600 })
      await podd.untilReady('by-node')
      podd.drop('by-node-2', pullingPod(podd, 'by-node-2', { image }))
      await podd.untilReady('by-node-2')
      expect((await podd.events('by-node-2')).map(({ reason }) => reason)).not.toContain('Pulling')
      const listed = await push('node/listed')
      writeFileSync(join(podd.rootDir, 'images/private.txt'), `${listed}\n`)
      await podd.until('the listed image', () => hasImage(podd, listed.replace(/:1$/u, '')))
    })

    it.concurrent('pulls with what a credential provider plugin gives', async () => {
      const podd = rig()
      const image = await push('plugin/app')
      const program = join(plugins, 'give-grace')
      writeFileSync(program, '#!/bin/sh\necho hunter2; echo "no metadata server" >&2; exit 3\n', {
        mode: 0o755,
      })
      podd.drop('by-plugin', pullingPod(podd, 'by-plugin', { image }))
      await podd.untilEvent('by-plugin', 'FailedCredentialProvider', /give-grace.* exited with 3$/u)
      writeFileSync(program, pluginScript, { mode: 0o755 })
      await podd.untilReady('by-plugin')
      const log = readFileSync(join(podd.directory, 'podd.log'), 'utf8')
      expect(log).toContain('no metadata server')
      expect(log).not.toContain('hunter2')
    })

    it.concurrent('passes by a mirror that is dead, and pulls from one where there is no registry', async () => {
      const podd = rig()
      const upstream = open?.address ?? ''
      const image = (await open?.push(podd, 'mirrored')) ?? ''
      const mirror = await TestRegistry.start(podd, { name: 'mirror' })
      try {
        await mirror.push(podd, 'mirrored')
        // Nothing listens there.
        const dead = '[host."http://127.0.0.1:1"]\n  capabilities = ["pull", "resolve"]'
        writeHosts(upstream, `server = "http://${upstream}"`, dead)
        podd.drop('past-dead', pullingPod(podd, 'past-dead', { image, policy: 'Always' }))
        await podd.untilReady('past-dead')
        // The upstream is not asked: what works is the mirror.
        const lost = `127.0.0.1:2`
        const works = `[host."http://${mirror.address}"]\n  capabilities = ["pull", "resolve"]`
        writeHosts(lost, 'server = "http://127.0.0.1:2"', works)
        const only = pullingPod(podd, 'by-mirror', { image: `${lost}/mirrored:1` })
        podd.drop('by-mirror', only)
        await podd.untilReady('by-mirror')
        expect(await hasImage(podd, `${lost}/mirrored`)).toBe(true)
      } finally {
        mirror.stop()
      }
    })

    it.concurrent('runs nothing that a mirror gives under the digest of another image', async () => {
      const podd = rig()
      const image = (await open?.push(podd, 'digest')) ?? ''
      const digest = `sha256:${'0'.repeat(63)}1`
      const liar = createServer((request, response) => {
        const manifest = JSON.stringify({ schemaVersion: 2, mediaType, layers: [], config: {} })
        response.setHeader('content-type', mediaType)
        response.setHeader('docker-content-digest', digest)
        response.setHeader('content-length', Buffer.byteLength(manifest))
        response.end(request.method === 'HEAD' ? undefined : manifest)
      })
      await new Promise<void>((resolve) => liar.listen(0, '127.0.0.1', resolve))
      try {
        const { port } = liar.address() as AddressInfo
        const lied = '127.0.0.1:3'
        const host = `[host."http://127.0.0.1:${port}"]\n  capabilities = ["pull", "resolve"]`
        writeHosts(lied, 'server = "http://127.0.0.1:3"', host)
        const name = image.replace(open?.address ?? '', lied).replace(/:1$/u, '')
        podd.drop('lied', pullingPod(podd, 'lied', { image: `${name}@${digest}` }))
        const event = await podd.untilEvent('lied', 'Failed', /Failed to pull image/u)
        expect(event.message).toMatch(/digest/u)
        expect(await hasImage(podd, name)).toBe(false)
      } finally {
        liar.close()
      }
    })

    it.concurrent('reaches a registry whose certificate an authority of its own has signed', async () => {
      const podd = rig()
      const directory = join(podd.directory, 'tls')
      mkdirSync(directory)
      const { ca, certificate, key } = makeCertificates(directory)
      await open?.push(podd, 'sealed')
      const tls = await TestRegistry.start(podd, { name: 'tls', tls: { certificate, key }, like: 'open' })
      try {
        const image = `${tls.address}/sealed:1`
        const server = `server = "https://${tls.address}"`
        const host = `[host."https://${tls.address}"]`
        writeHosts(tls.address, server, host)
        podd.drop('sealed', pullingPod(podd, 'sealed', { image }))
        await podd.untilEvent('sealed', 'Failed', /certificate/u)
        writeHosts(tls.address, server, host, `  ca = "${ca}"`)
        expect(waitingReason(await podd.untilReady('sealed'))).toBe('')
      } finally {
        tls.stop()
      }
    })

    // Kubernetes' own cases (test/e2e_node/image_credential_pulls.go, "pulling images with credentials"), 1.36.
    describe('images that a Secret has pulled', () => {
      const can = /already present on machine and can be accessed by the pod/u
      const cases = [
        // id: pulled-without-secret
        ['pod without PullSecret accessing previously pulled private image', 'without', [], false],
        [
          // id: pulled-invalid-secret
          'pod with invalid PullSecret accessing previously pulled private image',
          'invalid',
          ['other'],
          false,
        ],
        // id: pulled-same-secret
        ['pod with the same PullSecret accessing previously pulled image', 'same', ['owner'], true],
        [
          // id: pulled-copied-secret
          'pod with the same credentials in a different secret accessing previously pulled image',
          'copied',
          ['copy'],
          true,
        ],
      ] as const
      const refusals = {
        IfNotPresent: { reason: 'Failed', message: /^Failed to pull image|can be accessed/u },
        Never: {
          reason: 'ErrImageNeverPull',
          message: /is not present with pull policy of Never$|can be accessed/u,
        },
      } as const
      let image = ''

      beforeAll(async () => {
        const podd = rig()
        image = await push('verified')
        const secrets = [
          pullSecret('owner', right()),
          pullSecret('copy', right()),
          pullSecret('other', wrong()),
        ]
        podd.drop('verified-secrets', ...secrets)
        podd.drop('owner', pullingPod(podd, 'owner', { image, secrets: ['owner'], policy: 'Always' }))
        await podd.untilReady('owner')
        // What was pulled is known to the next podd, too.
        await podd.restartDaemon('SIGKILL')
        await podd.untilReady('owner')
      })

      for (const policy of ['IfNotPresent', 'Never'] as const)
        it.concurrent.each(cases)(`${policy}: %s`, async (_, label, secrets, mayUse) => {
          const podd = rig()
          const name = `${label}-${policy.toLowerCase()}`
          podd.drop(name, pullingPod(podd, name, { image, secrets, policy }))
          if (mayUse) await podd.untilReady(name)
          else await untilRefused(podd, name)
          const refusal = refusals[policy]
          const { message } = await podd.untilEvent(name, mayUse ? 'Pulled' : refusal.reason, refusal.message)
          expect(message).toContain(image)
          expect((await podd.events(name)).some((event) => can.test(event.message))).toBe(mayUse)
        })

      it.concurrent('are on record without a credential, for root alone', () => {
        const directory = join(rig().rootDir, 'image-pulls/pulled')
        const names = readdirSync(directory).filter((name) => name.endsWith('.json'))
        expect(names.length).toBeGreaterThan(0)
        for (const name of names) {
          expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
          expect(readFileSync(join(directory, name), 'utf8')).not.toMatch(/smash|squash|hunter2/u)
        }
      })
    })
  })
})
