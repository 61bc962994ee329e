import { describe, expect, it } from 'vitest'
import { completeConfig, readConfigFlags } from '../../../src/config/options.ts'

const read = (...flags: (readonly [string, string])[]) =>
  readConfigFlags(flags.map(([flag, text]) => ({ flag, text })))

describe('readConfigFlags', () => {
  it("reads the kubelet's flags", () => {
    expect(
      read(
        ['pod-manifest-path', '/srv//pods/'],
        ['manifest-url', 'https://host/pods'],
        ['node-ip', '::1'],
        ['pod-cidr', '10.1.0.0/16,fd00::/64'],
        ['container-runtime-endpoint', '/run/c.sock'],
        ['serialize-image-pulls', 'false'],
        ['sync-frequency', '10s'],
      ),
    ).toEqual({
      staticPodPath: '/srv/pods',
      staticPodUrl: 'https://host/pods',
      nodeIps: ['::1'],
      podCidrs: ['10.1.0.0/16', 'fd00::/64'],
      containerRuntimeEndpoint: 'unix:///run/c.sock',
      serializeImagePulls: false,
      syncFrequencyMs: 10_000,
    })
  })

  it('adds headers up, and takes the last of all else', () => {
    expect(
      read(
        ['manifest-url-header', 'a:1,b: 2'],
        ['manifest-url-header', 'a:3:4'],
        ['max-pods', '1'],
        ['max-pods', '2'],
      ),
    ).toEqual({ staticPodUrlHeader: { a: ['1', '3:4'], b: ['2'] }, maxPods: 2 })
  })

  it('takes headers that bear the names of objects’ own fields', () => {
    const flags = read(['manifest-url-header', 'constructor:1'], ['manifest-url-header', 'constructor:2'])
    expect(flags).toEqual({ staticPodUrlHeader: { constructor: ['1', '2'] } })
  })

  it('warns of what has no effect', () => {
    const warnings: string[] = []
    readConfigFlags([{ flag: 'system-reserved', text: 'pid=10' }], (message) => warnings.push(message))
    expect(warnings).toEqual([
      '--system-reserved: pid has no effect: podd does not count the processes of the host',
    ])
  })

  it.each([
    ['max-pods', 'x', '--max-pods must be a whole number'],
    ['run-dir', 'x', '--run-dir must be an absolute path'],
    ['manifest-url-header', 'x', '--manifest-url-header must be NAME:VALUE pairs separated by commas'],
    [
      'hostname-override',
      'My Host',
      '--hostname-override must be a lowercase host name of letters, digits, dots and dashes',
    ],
    [
      'hostname-override',
      'a..b',
      '--hostname-override must be a lowercase host name of letters, digits, dots and dashes',
    ],
    [
      'pod-cidr',
      '10.1.0.0/16,10.2.0.0/16',
      '--pod-cidr must be a network such as 10.88.0.0/16, or two of different families',
    ],
    ['nope', 'x', 'unknown flag --nope'],
  ])('refuses --%s %s', (flag, text, message) => {
    expect(() => read([flag, text])).toThrow(message)
  })
})

describe('completeConfig', () => {
  it('has the defaults where nothing is given', () => {
    const config = completeConfig({ maxPods: 5, runDir: '/run/flag' })
    expect(config).toEqual({ ...completeConfig({}), maxPods: 5, runDir: '/run/flag' })
  })

  it('lets an empty flag switch the directory of the file off', () => {
    const config = completeConfig({ staticPodPath: '/a', ...read(['pod-manifest-path', '']) })
    expect(config.staticPodPath).toBeUndefined()
  })
})
