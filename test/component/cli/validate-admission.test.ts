import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { callCli } from '../../support/cli-rig.ts'

let directory: string
let config: string

const container = { name: 'main', image: 'web:1' }
const onPort = { containers: [{ ...container, ports: [{ containerPort: 80, hostPort: 8080 }] }] }

function pod(spec: JsonObject, name = 'web'): JsonObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [container], ...spec } }
}

function priorityClass(name: string, value: number): JsonObject {
  const metadata = { name }
  return { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata, value, globalDefault: true }
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-admission-'))
  config = join(directory, 'config.yaml')
  const pods = join(directory, 'pods')
  await mkdir(pods)
  const settings = {
    staticPodPath: pods,
    ignoreKinds: ['ServiceMonitor'],
    podSecurity: { file: { level: 'baseline', allowedHostPorts: [8080] } },
  }
  await writeFile(
    config,
    JSON.stringify({ apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', ...settings }),
  )
  await writeFile(join(pods, 'holder.yaml'), JSON.stringify(pod(onPort, 'holder')))
  await writeFile(join(pods, 'usual.yaml'), JSON.stringify(priorityClass('usual', 7)))
})
afterAll(() => rm(directory, { recursive: true }))

/** What it says of a document behind its place. */
async function validate(document: JsonObject, ...flags: readonly string[]): Promise<string> {
  const path = join(directory, 'new.yaml')
  await writeFile(path, JSON.stringify(document))
  const { exitCode, stdout } = await callCli(['validate', path, ...flags])
  return `${exitCode} ${stdout
    .replaceAll(path, '')
    .replace(/^(?::\d+:\d+)?: (?:spec\S*: )?/u, '')
    .trim()}`
}

describe('podd validate, on a machine that has a config', () => {
  const usual = (...flags: readonly string[]) =>
    callCli(['validate', join(directory, 'new.yaml'), ...flags], {
      usual: { configPath: config, runDir: directory },
    })

  it('judges by the rules of the config, and this host only where it is asked to', async () => {
    await writeFile(join(directory, 'new.yaml'), JSON.stringify(pod(onPort)))
    expect(await usual()).toMatchObject({ exitCode: 0, stdout: '' })
    expect((await usual('--host')).stdout).toContain('host port 8080/TCP is held by pod default/holder')
    await writeFile(
      join(directory, 'new.yaml'),
      JSON.stringify(pod({ hostPID: true, priorityClassName: 'usual' })),
    )
    const { exitCode, stdout } = await usual()
    expect([exitCode, stdout]).toEqual([1, expect.stringContaining('PodSecurity: forbidden')])
  })
})

describe('podd validate, with the config of the host', () => {
  it.each([
    ['Deployment', 'apps/v1', (template: JsonObject): JsonObject => ({ template })],
    [
      'CronJob',
      'batch/v1',

      (template: JsonObject): JsonObject => ({ schedule: '0 0 1 1 *', jobTemplate: { spec: { template } } }),
    ],
  ])('says what would be said of the pods of a %s', async (kind, apiVersion, specOf) => {
    const spec = { ...onPort, ...(kind === 'CronJob' && { restartPolicy: 'Never' }) }
    const template = { metadata: { labels: { app: 'web' } }, spec }
    const selector = kind === 'Deployment' ? { selector: { matchLabels: { app: 'web' } } } : {}
    const manifest = {
      apiVersion,
      kind,
      metadata: { name: 'web' },
      spec: { ...selector, ...specOf(template) },
    }
    const said = await validate(manifest, '--config', config)
    expect(said).toMatch(/^1 /u)
    expect(said).toContain('8080')
    expect(said).toContain('holder')
    expect(await validate({ ...manifest, metadata: { name: 'other' } })).toMatch(/^0/u)
  })

  it('takes the custom objects that ignoreKinds names, with a warning', async () => {
    const monitor = {
      apiVersion: 'monitoring.example/v1',
      kind: 'ServiceMonitor',
      metadata: { name: 'web' },
    }
    expect(await validate(monitor, '--config', config)).toBe(
      '0 warning: taken without effect, as nothing on one host goes by it: ServiceMonitor web',
    )
    expect(await validate({ ...monitor, kind: 'Certificate' }, '--config', config)).toMatch(
      /^1 .*ignoreKinds/u,
    )
  })

  it.each<[string, JsonObject, RegExp]>([
    ['nothing wrong', pod({ priorityClassName: 'usual', priority: 7 }), /^0 $/u],
    [
      'another priority than its class has',
      pod({ priorityClassName: 'usual', priority: 5 }),
      /^1 FailedCreate: the integer value of priority \(5\) must not be provided in pod spec; .* computed 7/u,
    ],
    [
      'an unknown PriorityClass',
      pod({ priorityClassName: 'none' }),
      /^1 FailedCreate: no PriorityClass with name none was found; there are .*usual$/u,
    ],
    [
      'an unknown RuntimeClass',
      pod({ runtimeClassName: 'kata' }),
      /^1 FailedCreate: RuntimeClass "kata" not found; there are none\./u,
    ],
    [
      'overhead of no RuntimeClass',
      pod({ overhead: { cpu: '1' } }),
      /^1 FailedCreate: pod rejected: Pod Overhead set without corresponding RuntimeClass/u,
    ],
    [
      'an unsafe sysctl',
      pod({ securityContext: { sysctls: [{ name: 'net.core.rmem_max', value: '1' }] } }),
      /^1 (?:PodSecurity: forbidden: .*sysctl|SysctlForbidden: )/u,
    ],
    [
      'what the policy of its source forbids',
      pod({ hostPID: true }),
      /^1 PodSecurity: forbidden: violates PodSecurity "baseline:latest": .*Allowed by a lower podSecurity\.file\.level/u,
    ],
    [
      'a port of a pod that is there',
      pod(onPort),
      /^1 Blocked: host port 8080\/TCP is held by pod default\/holder$/u,
    ],
    ['a port of its own earlier version', pod(onPort, 'holder'), /^0 $/u],
    [
      'more than the host has',
      pod({ containers: [{ ...container, resources: { requests: { cpu: '5000' } } }] }),
      /^1 Blocked: Node didn't have enough resource: cpu, requested: 5000000/u,
    ],
    [
      'a second default class',
      priorityClass('other', 8),
      /^1 PriorityClass usual in .*usual\.yaml is already marked as default; only one default can exist/u,
    ],
  ])('of %s says what the daemon’s admission would say', async (_what, document, expected) => {
    expect(await validate(document, '--config', config)).toMatch(expected)
  })

  it('says where the field stands that it is about, also in a list', async () => {
    const path = join(directory, 'placed.yaml')
    const lines = (name: string, ...spec: readonly string[]): string =>
      [
        'apiVersion: v1',
        'kind: Pod',
        `metadata: {name: ${name}}`,
        'spec:',
        '  containers:',
        '  - name: main',
        '    image: web:1',
        ...spec,
        '',
      ].join('\n')
    const documents = [
      lines('a', '    ports:', '    - {containerPort: 80,', '       hostPort: 8080}'),
      lines('b', '  priorityClassName: none'),
      lines('c', '    resources:', '      requests: {cpu: 5000}'),
      lines('d', '    securityContext:', '      privileged: true', '  hostPID: true'),
      lines('e', '  overhead: {cpu: 1}'),
    ]
    const indented = lines('f', '  runtimeClassName: none').trimEnd().replaceAll('\n', '\n  ')
    const list = `apiVersion: v1\nkind: List\nitems:\n- ${indented}\n`
    await writeFile(path, [...documents, list].join('---\n'))
    const { stdout } = await callCli(['validate', path, '--config', config])
    const found = stdout.trimEnd().split('\n')
    expect(found.map((line) => line.replace(`${path}:`, '').split(': ').slice(0, 3).join(': '))).toEqual([
      '10:8: spec.containers[0].ports[0].hostPort: Blocked',
      '19:3: spec.priorityClassName: FailedCreate',
      '29:18: spec.containers[0].resources.requests[cpu]: Blocked',
      '40:3: spec.hostPID: PodSecurity',
      '49:3: spec.overhead: FailedCreate',
      '61:5: spec.runtimeClassName: FailedCreate',
    ])
  })

  it('leaves to the daemon what the runtime and the node have', async () => {
    const limits = { 'example.com/gpu': '2' }
    const wanted = pod({ containers: [{ ...container, resources: { limits } }] })
    expect(await validate(wanted, '--config', config)).toMatch(
      /^0 warning: .*podd hands out no devices[^\n]*$/u,
    )
    const lifecycle = { stopSignal: 'SIGINT' }
    const wanting = pod({ os: { name: 'linux' }, containers: [{ ...container, lifecycle }] })
    expect(await validate(wanting, '--config', config)).toBe('0 ')
  })

  it('holds the pods of one file against each other', async () => {
    const list = { apiVersion: 'v1', kind: 'PodList', items: [pod(onPort, 'a'), pod(onPort, 'b')] }
    await rm(join(directory, 'pods/holder.yaml'))
    expect(await validate(list, '--config', config)).toMatch(
      /host port 8080\/TCP is held by pod default\/a$/u,
    )
  })

  it('counts what podNameSuffix adds to names', async () => {
    const path = join(directory, 'suffix.yaml')
    const settings = { podNameSuffix: 'node', hostnameOverride: 'box' }
    await writeFile(
      path,
      JSON.stringify({ apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', ...settings }),
    )
    expect(await validate(pod({}, 'n'.repeat(206)), '--config', path)).toBe('0 ')
    const tooLong = pod({}, 'n'.repeat(207))
    expect(await validate(tooLong, '--config', path)).toMatch(
      /^1 .*metadata\.name: not supported: with the suffix "-box" of podNameSuffix, .* these have 218: /u,
    )
    expect(await validate(pod({}, 'n'.repeat(211)))).toMatch(
      /^1 .*metadata\.name: not supported: a pod's name and namespace may have 217 characters together, and these have 218: /u,
    )
  })

  it('fails where that config cannot be read', async () => {
    expect(await validate(pod({}), '--config', join(directory, 'none.yaml'))).toMatch(/^1 $/u)
  })
})
