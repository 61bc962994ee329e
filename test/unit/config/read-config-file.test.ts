import { describe, expect, it } from 'vitest'
import { ignoredKubeletFields, readConfigFile } from '../../../src/config/read-config-file.ts'
import { listOptions } from '../../../src/config/options.ts'
import { formatProblem } from '../../../src/cli/output/report-format.ts'

const podd = 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\n'
const kubelet = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'

async function problems(text: string): Promise<readonly string[]> {
  const file = await readConfigFile(text, 'c.yaml')
  return file.problems.map((problem) => `${problem.severity} ${formatProblem(problem)}`)
}

describe('readConfigFile', () => {
  it("reads a PoddConfiguration with the kubelet's fields and podd's own", async () => {
    const text = `${podd}staticPodPath: /srv/pods/
runDir: /run/other
syncFrequency: 1m30s
maxPods: 20
serializeImagePulls: false
crashLoopBackOff: {maxContainerRestartPeriod: 30s}
staticPodURLHeader: {Authorization: [Bearer x], Accept: [a, b]}
nodeIP: 10.0.0.1,fd00::1
`
    const file = await readConfigFile(text, 'c.yaml')
    expect(file.problems).toEqual([])
    expect(file.values).toEqual({
      staticPodPath: '/srv/pods',
      runDir: '/run/other',
      syncFrequencyMs: 90_000,
      maxPods: 20,
      serializeImagePulls: false,
      maxContainerRestartPeriodMs: 30_000,
      staticPodUrlHeader: { Authorization: ['Bearer x'], Accept: ['a', 'b'] },
      nodeIps: ['10.0.0.1', 'fd00::1'],
    })
  })

  it('takes a KubeletConfiguration as kubeadm writes it', async () => {
    const text = `${kubelet}authentication:
  anonymous: {enabled: false}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
fileCheckFrequency: 0s
httpCheckFrequency: 0s
staticPodPath: /etc/kubernetes/manifests
syncFrequency: 0s
crashLoopBackOff: {}
resolvConf: null
`
    const file = await readConfigFile(text, 'c.yaml')
    expect(file.values).toEqual({ cgroupDriver: 'systemd', staticPodPath: '/etc/kubernetes/manifests' })
    expect(file.problems.map(({ severity, field, place }) => [severity, field, place.line])).toEqual([
      ['warning', 'authentication', 3],
      ['warning', 'clusterDNS', 6],
      ['warning', 'cpuManagerReconcilePeriod', 8],
    ])
  })

  it('takes an empty resolvConf of a KubeletConfiguration for no DNS at all', async () => {
    const { values, problems } = await readConfigFile(`${kubelet}resolvConf: ""\n`, 'c.yaml')
    expect({ problems, has: 'resolvConf' in values, value: values.resolvConf }).toEqual({
      problems: [],
      has: true,
      value: undefined,
    })
  })

  it('takes one of each in one file', async () => {
    const file = await readConfigFile(`${kubelet}maxPods: 5\n---\n${podd}runDir: /run/x\n`, 'c.yaml')
    expect(file).toEqual({ values: { maxPods: 5, runDir: '/run/x' }, problems: [] })
  })

  it('takes JSON', async () => {
    const text = JSON.stringify({ apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration', maxPods: 5 })
    expect(await readConfigFile(text, 'c.yaml')).toEqual({ values: { maxPods: 5 }, problems: [] })
  })

  it('says nothing about an empty file', async () => {
    expect(await readConfigFile('# nothing yet\n', 'c.yaml')).toEqual({ values: {}, problems: [] })
  })

  it.each<[text: string, problem: string]>([
    [`${podd}syncFrequncy: 1m\n`, 'c.yaml:3:1: syncFrequncy: unknown field (Did you mean syncFrequency?)'],
    [`${podd}constructor: 3\n`, 'c.yaml:3:1: constructor: unknown field'],
    [`${podd}__proto__: 3\n`, 'c.yaml:3:1: __proto__: unknown field'],
    [`${kubelet}cpuCFSQuotaPeriod: 0s\n`, 'c.yaml:3:1: cpuCFSQuotaPeriod: must be from 1ms to 1s'],
    [`${podd}zzz: 1\n`, 'c.yaml:3:1: zzz: unknown field'],
    [
      `${podd}crashLoopBackOff:\n  maxContainerRestart: 1s\n`,
      'c.yaml:4:3: crashLoopBackOff.maxContainerRestart: unknown field (Did you mean maxContainerRestartPeriod?)',
    ],
    [`${podd}crashLoopBackOff: 5s\n`, 'c.yaml:3:1: crashLoopBackOff: must be a mapping'],
    [`${podd}maxPods: many\n`, 'c.yaml:3:1: maxPods: must be a whole number, not string "many"'],
    [`${podd}maxPods: -1\n`, 'c.yaml:3:1: maxPods: must be from 0 to 100000'],
    [`${podd}syncFrequency: 20\n`, 'c.yaml:3:1: syncFrequency: must be text, not number 20'],
    [
      `${podd}syncFrequency: soon\n`,
      'c.yaml:3:1: syncFrequency: must be a duration such as 500ms, 20s or 1m30s',
    ],
    [`${podd}syncFrequency: 0s\n`, 'c.yaml:3:1: syncFrequency: must be at least 1s'],
    [
      `${podd}crashLoopBackOff: {maxContainerRestartPeriod: 10m}\n`,
      'c.yaml:3:20: crashLoopBackOff.maxContainerRestartPeriod: must be from 1s to 5m',
    ],
    [`${podd}runDir: run\n`, 'c.yaml:3:1: runDir: must be an absolute path'],
    [`${podd}cgroupDriver: docker\n`, 'c.yaml:3:1: cgroupDriver: must be one of auto, cgroupfs, systemd'],
    [
      `${podd}serializeImagePulls: "no"\n`,
      'c.yaml:3:1: serializeImagePulls: must be true or false, not string "no"',
    ],
    [`${podd}staticPodURL: ftp://x\n`, 'c.yaml:3:1: staticPodURL: must be an http:// or https:// URL'],
    [`${podd}staticPodURLHeader: {a: b}\n`, 'c.yaml:3:1: staticPodURLHeader: a must be a list of texts'],
    [
      `${podd}staticPodURLHeader: {"a b": [c]}\n`,
      'c.yaml:3:1: staticPodURLHeader: "a b" is not a header name',
    ],
    [
      `${podd}podCIDR: 10.0.0.0\n`,
      'c.yaml:3:1: podCIDR: must be a network such as 10.88.0.0/16, or two of different families',
    ],
    [
      `${podd}nodeIP: 10.0.0.1,10.0.0.2\n`,
      'c.yaml:3:1: nodeIP: must be one address, or two of different families',
    ],
    [
      `${podd}containerRuntimeEndpoint: docker\n`,
      'c.yaml:3:1: containerRuntimeEndpoint: must be embedded or unix:///PATH',
    ],
    [`${podd}maxPods: 1\n---\n${kubelet}maxPods: 2\n`, 'c.yaml:7:1: maxPods: is set twice in this file'],
    [`${podd}---\n${podd}`, 'c.yaml:5:1: kind: there is another PoddConfiguration in this file'],
    [
      `${kubelet}runDir: /run/x\n`,
      'c.yaml:3:1: runDir: is no field of KubeletConfiguration (Put it into a second YAML document with apiVersion: podd.dev/v1, kind: PoddConfiguration.)',
    ],
    [
      'apiVersion: v2\nkind: PoddConfiguration\n',
      'c.yaml:1:1: apiVersion: must be podd.dev/v1 for a PoddConfiguration',
    ],
    [
      'apiVersion: v1\nkind: constructor\n',
      'c.yaml:2:1: kind: unknown kind "constructor" (Write apiVersion: podd.dev/v1, kind: PoddConfiguration; or apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration.)',
    ],
    [
      'apiVersion: v1\nkind: Pod\n',
      'c.yaml:2:1: kind: unknown kind "Pod" (Write apiVersion: podd.dev/v1, kind: PoddConfiguration; or apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration.)',
    ],
  ])('refuses %j', async (text, problem) => {
    expect(await problems(text)).toEqual([`error ${problem}`])
  })

  it('tells where text is no YAML', async () => {
    expect(await problems(`${podd}a: [`)).toEqual([expect.stringMatching(/^error c\.yaml:3:/u)])
    expect(await problems('- a\n')).toEqual([
      expect.stringContaining('must be a mapping with apiVersion and kind'),
    ])
  })
})

describe('the table of options', () => {
  it('names each field and each flag once, and none that is ignored', () => {
    const fields = listOptions().map(([, option]) => option.field)
    const flags = listOptions().flatMap(([, option]) => option.flag ?? [])
    expect(new Set(fields).size).toBe(fields.length)
    expect(new Set(flags).size).toBe(flags.length)
    expect(fields.filter((field) => ignoredKubeletFields.has(field))).toEqual([])
  })

  it('has defaults that its own types accept', () => {
    for (const [key, option] of listOptions()) {
      const shown = option.type.format(option.default)
      if (shown === '' || key === 'staticPodUrlHeader') continue
      expect(option.type.fromText(shown)).toEqual({ kind: 'ok', value: option.default })
    }
  })
})
