import { describe, expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

const secret = 's3cr3t'

/** Everything that a container's author can write free text into. */
const container = {
  name: 'main',
  image: 'app:1',
  command: ['sh', '-c', `login ${secret}`],
  args: [secret],
  workingDir: `/${secret}`,
  env: [{ name: 'PASSWORD', value: secret }],
  terminationMessagePath: `/${secret}`,
  livenessProbe: {
    httpGet: { port: 80, path: `/${secret}`, httpHeaders: [{ name: 'Authorization', value: secret }] },
  },
  readinessProbe: { exec: { command: [secret] } },
  lifecycle: { preStop: { exec: { command: [secret] } } },
}

describe('what podd decides, as it is logged', () => {
  it('follows again from the logged facts, through a pod’s life', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(podManifest('web'))
    const made = rig.decisions
    expect(made).toBeGreaterThan(0)
    rig.fake.exitContainer('main', 1)
    await rig.settle()
    await rig.clock.advance(60_000)
    await rig.apply(podManifest('web', { containers: [{ name: 'main', image: 'app:2' }] }))
    await rig.settle()
    expect(rig.decisions).toBeGreaterThan(made + 2)
    expect(rig.decision).toContain('"image":"app:2"')
    expect(rig.failures).toEqual([])
    await rig.terminate()
  })

  it('holds no value that may be secret', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(
      podManifest(
        'web',
        {
          containers: [container],
          initContainers: [
            { ...container, name: 'init', livenessProbe: null, readinessProbe: null, lifecycle: null },
          ],
          volumes: [{ name: 'v', hostPath: { path: `/${secret}` } }],
        },
        { annotations: { note: secret }, labels: { note: secret } },
      ),
    )
    const lines = [rig.decision]
    rig.lastWords = secret
    rig.fake.exitContainer('init', 1)
    await rig.settle()
    lines.push(rig.decision)
    await rig.clock.advance(20_000)
    lines.push(rig.decision)
    expect(rig.decisions).toBeGreaterThan(2)
    expect(JSON.stringify(rig.pod('web').status)).toContain(secret)
    expect(lines.join('\n')).not.toContain(secret)
    expect(lines.join('\n')).toContain('"name":"init"')
    expect(rig.failures).toEqual([])
    await rig.terminate()
  })
})
