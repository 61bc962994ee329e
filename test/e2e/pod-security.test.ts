import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import { freePort } from '../support/free-port.ts'
import { shellPod } from '../support/shell-pods.ts'
import { writeTestMarks } from '../support/test-marks.ts'

const port = await freePort()
let served: object = {}
let server: Server | undefined

function simplePod(name: string, spec: object = {}, container: object = {}): object {
  const command = ['sh', '-c', 'sleep 1000000']
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: shell, command, ...container }],
      ...spec,
    },
  }
}

const list = (...items: object[]): object => ({ apiVersion: 'v1', kind: 'PodList', items })

/** A directory of the host's that pods of the URL may have. */
const given = `/tmp/podd-e2e-given-${process.pid}`
writeTestMarks({ directory: given })

const config = {
  staticPodURL: `http://127.0.0.1:${port}/pods`,
  httpCheckFrequency: '200ms',
  podSecurity: {
    url: {
      allowedHostPaths: [given],
      allowedHostPorts: ['28080-28089'],
      allowedCapabilities: ['NET_ADMIN'],
    },
  },
}

describePodd('policy of a URL', { config }, (rig) => {
  beforeAll(async () => {
    server = createServer((_, response) => response.end(JSON.stringify(served)))
    const listening = server
    await new Promise<void>((resolve) => listening.listen(port, '127.0.0.1', resolve))
  })
  afterAll(() => {
    server?.close()
    rmSync(given, { recursive: true, force: true })
  })

  it('holds pods of the URL to baseline, names rule and setting, and leaves the directory alone', async () => {
    const podd = rig()
    served = list(
      simplePod('url-plain'),
      simplePod('url-host', { hostNetwork: true, volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] }),
      simplePod('url-privileged', {}, { securityContext: { privileged: true } }),
      simplePod(
        'url-given',
        {
          volumes: [{ name: 'given', hostPath: { path: `${given}/own`, type: 'DirectoryOrCreate' } }],
        },
        {
          securityContext: { capabilities: { add: ['NET_ADMIN'] } },
          ports: [{ containerPort: 80, hostPort: 28_080 }],
        },
      ),
      simplePod('url-port', {}, { ports: [{ containerPort: 80, hostPort: 28_090 }] }),
    )
    podd.drop(
      'file-privileged',
      shellPod('file-privileged', podd.shared, 'stay', {
        container: { securityContext: { privileged: true } },
      }),
    )
    await podd.untilReady('url-plain')
    await podd.untilReady('url-given')
    await podd.untilReady('file-privileged')
    const refusal = async (name: string) =>
      (await podd.untilPod(name, 'its refusal', ({ status }) => status.reason === 'PodSecurity')).status
    expect(await refusal('url-host')).toMatchObject({
      phase: 'Pending',
      message:
        'forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true), hostPath volumes (volume "etc" mounts /etc). ' +
        "Allowed by a lower podSecurity.url.level in podd's config; Allowed by podSecurity.url.allowedHostPaths: [/etc]",
    })
    expect(await podd.cliOk('get', 'pods', 'url-host')).toMatch(/^url-host +0\/1 +Blocked /mu)
    expect((await refusal('url-privileged')).message).toContain(
      'privileged (container "main" must not set securityContext.privileged=true)',
    )
    expect((await refusal('url-port')).message).toContain(
      'Allowed by podSecurity.url.allowedHostPorts: [28090]',
    )
    await podd.untilEvent('url-privileged', 'PodSecurity')
  })

  it('keeps the pod that runs when its new version is forbidden', async () => {
    const podd = rig()
    const { metadata } = await podd.untilReady('url-plain')
    served = list(simplePod('url-plain', { hostPID: true }))
    await podd.until('the problem', async () =>
      (await podd.status()).problems.some(({ message }) =>
        /the old one keeps running: forbidden: .*hostPID=true/u.test(message),
      ),
    )
    const pod = await podd.untilReady('url-plain')
    expect(pod.metadata.uid).toBe(metadata.uid)
    expect(containerOf(pod, 'main').restartCount).toBe(0)
    // What was refused stays refused when podd is started again, and what runs runs on.
    await podd.restartDaemon('SIGKILL')
    expect((await podd.untilReady('url-plain')).metadata.uid).toBe(metadata.uid)
    await podd.untilGone('url-privileged')
  })
})

const strict = {
  podSecurity: {
    file: { level: 'restricted', allowedRegistries: ['localhost/podd-test'], allowedHostPaths: ['/tmp'] },
  },
}

describePodd('a restricted directory', { config: strict }, (rig) => {
  it('runs what keeps the level restricted, and nothing else', async () => {
    const podd = rig()
    const securityContext = {
      runAsNonRoot: true,
      runAsUser: 1001,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    }
    podd.drop('tame', simplePod('tame', {}, { securityContext }))
    podd.drop('wild', simplePod('wild'))
    await podd.untilReady('tame')
    const { status } = await podd.untilPod(
      'wild',
      'its refusal',
      (pod) => pod.status.reason === 'PodSecurity',
    )
    for (const rule of [
      'allowPrivilegeEscalation != false',
      'unrestricted capabilities',
      'runAsNonRoot != true',
      'seccompProfile',
    ])
      expect(status.message).toContain(rule)
  })

  it('takes images of the registries that it names alone, also in place', async () => {
    const podd = rig()
    const securityContext = {
      runAsNonRoot: true,
      runAsUser: 1001,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    }
    podd.drop('foreign', simplePod('foreign', {}, { securityContext, image: 'docker.io/library/busybox:1' }))
    const { status } = await podd.untilPod(
      'foreign',
      'its refusal',
      (pod) => pod.status.reason === 'PodSecurity',
    )
    expect(status.message).toContain('image registry (container "main" uses an image of docker.io)')
    const { metadata } = await podd.untilReady('tame')
    podd.drop('tame', simplePod('tame', {}, { securityContext, image: 'docker.io/library/busybox:1' }))
    await podd.until('the problem', async () =>
      (await podd.status()).problems.some(({ message }) =>
        /keeps running: forbidden: image registry/u.test(message),
      ),
    )
    const pod = await podd.untilReady('tame')
    expect(pod.metadata.uid).toBe(metadata.uid)
    expect(containerOf(pod, 'main').image).toContain('podd-test/shell')
  })
})
