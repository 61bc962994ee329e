import { describe, expect, it } from 'vitest'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { isSupportedVersion, parseContainerdVersion } from '../../../src/runtime/containerd/version.ts'
import { formatContainerdConfig, isSameConfig } from '../../../src/runtime/embedded-setup.ts'
import type { ContainerdConfigInput } from '../../../src/runtime/embedded-setup.ts'

const v16 = { major: 1, minor: 6, patch: 20, text: '1.6.20~ds1' }
const v21 = { major: 2, minor: 1, patch: 9, text: '2.1.9' }

function input(change: Partial<ContainerdConfigInput> = {}): ContainerdConfigInput {
  return {
    version: v16,
    places: containerdPlaces('/var/lib/podd', '/run/podd'),
    sandboxImage: 'localhost/podd-pause:1',
    cniBinDirs: ['/usr/lib/cni', '/opt/cni/bin'],
    cgroupDriver: 'cgroupfs',
    canLowerOomScore: true,
    snapshotter: 'overlayfs',
    ociRuntimes: ['runc'],
    registryConfigDir: '/etc/podd/certs.d',
    pullStallMs: 1_800_000,
    ...change,
  }
}

/** The lines under a heading, up to the next one. */
function section(toml: string, heading: string): readonly string[] {
  const [, after = ''] = toml.split(`\n[${heading}]\n`)
  return (after.split('\n[')[0] ?? '').split('\n').filter((line) => line !== '')
}

const legacyCri = 'plugins."io.containerd.grpc.v1.cri"'
const modernRuntime = 'plugins."io.containerd.cri.v1.runtime"'
const modernImages = 'plugins."io.containerd.cri.v1.images"'

describe('formatContainerdConfig', () => {
  it.each([
    [v16, 'version = 2'],
    [{ ...v16, minor: 7 }, 'version = 2'],
    [v21, 'version = 3'],
  ])('%o gets the file version it reads', (version, line) => {
    expect(formatContainerdConfig(input({ version })).split('\n')[0]).toBe(line)
  })

  it.each([
    ['1.x', v16, legacyCri],
    ['2.x', v21, modernImages],
  ])('lets %s end a pull that podd does not see hang', (_, version, heading) => {
    expect(section(formatContainerdConfig(input({ version })), heading)).toContain(
      'image_pull_progress_timeout = "1800000ms"',
    )
  })

  it.each([v16, v21])('keeps all of $text in its own places', (version) => {
    const toml = formatContainerdConfig(input({ version }))
    expect(toml).toContain('root = "/var/lib/podd/containerd"')
    expect(toml).toContain('state = "/run/podd/containerd/state"')
    expect(section(toml, 'grpc')).toEqual(['address = "/run/podd/containerd/containerd.sock"'])
    expect(toml).toContain('Root = "/run/podd/containerd/runc"')
    expect(toml).toContain('"io.containerd.internal.v1.opt"')
    expect(toml).toContain('"io.containerd.nri.v1.nri"')
    expect(toml).not.toMatch(/"\/opt\/containerd/)
    expect(toml).not.toMatch(/"\/var\/run/)
  })

  it.each([
    ['1.x', v16, ['"io.containerd.grpc.v1.cri"']],
    [
      '2.x',
      v21,
      ['"io.containerd.grpc.v1.cri"', '"io.containerd.cri.v1.images"', '"io.containerd.cri.v1.runtime"'],
    ],
  ])('makes %s fail rather than run without CRI', (_, version, plugins) => {
    const toml = formatContainerdConfig(input({ version }))
    expect(toml).toContain(`required_plugins = [ ${plugins.join(', ')} ]`)
  })

  it('has CRI pull by the service that asks image verifiers, all of them, where there are some', () => {
    const toml = formatContainerdConfig(input({ version: v21, imageVerifiers: '/etc/podd/verifiers' }))
    expect(section(toml, modernImages)).toContain('use_local_image_pull = false')
    // With either CRI would pull by itself, and ask none.
    expect(toml).not.toMatch(/discard_unpacked_layers|image_pull_with_sync_fs/u)
    expect(section(toml, 'plugins."io.containerd.image-verifier.v1.bindir"')).toEqual([
      'bin_dir = "/etc/podd/verifiers"',
      'max_verifiers = -1',
      'per_verifier_timeout = "60s"',
    ])
    expect(toml).toMatch(
      /\[\[plugins\."io\.containerd\.transfer\.v1\.local"\.unpack_config\]\]\nplatform = "linux\/\w+"\nsnapshotter = "overlayfs"/u,
    )
    const without = formatContainerdConfig(input({ version: v21 }))
    expect(section(without, modernImages)).toContain('use_local_image_pull = true')
    expect(without).not.toContain('max_verifiers')
  })

  it('gives 1.x the first plugin directory and 2.x all of them', () => {
    expect(section(formatContainerdConfig(input()), `${legacyCri}.cni`)).toContain('bin_dir = "/usr/lib/cni"')
    const modern = formatContainerdConfig(input({ version: v21 }))
    expect(section(modern, `${modernRuntime}.cni`)).toContain('bin_dirs = [ "/usr/lib/cni", "/opt/cni/bin" ]')
  })

  it.each([
    [v16, legacyCri, `${legacyCri}.containerd.runtimes.runc.options`],
    [v21, modernRuntime, `${modernRuntime}.containerd.runtimes.runc.options`],
  ])('turns capability and driver into settings of %o', (version, cri, options) => {
    const able = formatContainerdConfig(input({ version }))
    expect(able).toContain('oom_score = -999')
    expect(section(able, cri)).toContain('restrict_oom_score_adj = false')
    expect(section(able, options)).toContain('SystemdCgroup = false')
    const other = formatContainerdConfig(input({ version, canLowerOomScore: false, cgroupDriver: 'systemd' }))
    expect(other).toContain('oom_score = 0')
    expect(section(other, cri)).toContain('restrict_oom_score_adj = true')
    expect(section(other, options)).toContain('SystemdCgroup = true')
  })

  it.each([
    [v16, `${legacyCri}.containerd`],
    [v21, `${modernRuntime}.containerd`],
  ])('has %o run pods by the first OCI runtime, with a handler for each', (version, heading) => {
    const options = (toml: string, name: string) => section(toml, `${heading}.runtimes.${name}.options`)
    const stock = formatContainerdConfig(input({ version }))
    expect(stock).not.toContain('default_runtime_name')
    expect(stock).not.toContain('BinaryName')
    const toml = formatContainerdConfig(input({ version, ociRuntimes: ['/opt/bin/crun', 'youki', 'runc'] }))
    expect(section(toml, heading)).toContain('default_runtime_name = "crun"')
    expect(options(toml, 'crun')).toContain('BinaryName = "/opt/bin/crun"')
    expect(options(toml, 'youki')).toContain('BinaryName = "youki"')
    expect(options(toml, 'runc').join(' ')).not.toContain('BinaryName')
    for (const name of ['crun', 'youki', 'runc'])
      expect(options(toml, name)).toContain('Root = "/run/podd/containerd/runc"')
    const own = formatContainerdConfig(input({ version, ociRuntimes: ['/opt/runc'] }))
    expect(options(own, 'runc')).toContain('BinaryName = "/opt/runc"')
  })

  it('names the sandbox image where each version looks', () => {
    expect(section(formatContainerdConfig(input()), legacyCri)).toContain(
      'sandbox_image = "localhost/podd-pause:1"',
    )
    const modern = formatContainerdConfig(input({ version: v21 }))
    expect(section(modern, `${modernImages}.pinned_images`)).toEqual(['sandbox = "localhost/podd-pause:1"'])
  })

  it('syncs layers to the disk where the version can', () => {
    const modern = formatContainerdConfig(input({ version: v21 }))
    expect(section(modern, 'plugins."io.containerd.service.v1.diff-service"')).toContain('sync_fs = true')
    expect(formatContainerdConfig(input())).not.toContain('sync_fs')
  })
})

describe('containerdPlaces', () => {
  it('gives the default instance plain names', () => {
    expect(containerdPlaces('/var/lib/podd', '/run/podd')).toMatchObject({
      networkName: 'podd',
      bridgeName: 'podd0',
      unitName: 'podd-containerd',
    })
  })

  it('gives other instances names of their own that the kernel takes', () => {
    const one = containerdPlaces('/tmp/a', '/tmp/a/run')
    const two = containerdPlaces('/tmp/b', '/tmp/b/run')
    expect(one.bridgeName).toMatch(/^podd-[0-9a-f]{8}$/)
    expect(one.bridgeName.length).toBeLessThanOrEqual(15)
    expect(one.networkName).not.toBe(two.networkName)
    expect(one.unitName).not.toBe(two.unitName)
    expect(containerdPlaces('/elsewhere', '/tmp/a/run').networkName).toBe(one.networkName)
  })
})

describe('isSameConfig', () => {
  const config = formatContainerdConfig(input())

  it('takes another form of the same config for no change, which would restart containerd', () => {
    const other = config.replaceAll(/\[ (.*) \]$/gmu, '[$1]').replaceAll(/^(?=\[)/gmu, '\n')
    expect(other).not.toBe(config)
    expect(isSameConfig(other, config)).toBe(true)
  })

  it.each([config.replace('-999', '-998'), config.slice(0, -5), ''])('sees a change', (other) => {
    expect(isSameConfig(other, config)).toBe(false)
  })
})

describe('parseContainerdVersion', () => {
  it.each([
    ['containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n', 1, 6, 20],
    ['containerd github.com/containerd/containerd/v2 2.1.9+unknown \n', 2, 1, 9],
    ['containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da', 1, 7, 27],
    [
      'containerd github.com/containerd/containerd/v2 v2.0.4 1a43cb6a1035441f9aca8f5666a9b3ef9e70ab20',
      2,
      0,
      4,
    ],
  ])('reads %j', (output, major, minor, patch) => {
    expect(parseContainerdVersion(output)).toMatchObject({ major, minor, patch })
  })

  it.each(['', 'containerd', 'runc version 1.1.5'])('reads no version from %j', (output) => {
    expect(parseContainerdVersion(output)).toBeUndefined()
  })

  it.each([
    [1, 5, false],
    [1, 6, true],
    [2, 0, true],
    [0, 9, false],
  ])('takes %i.%i: %s', (major, minor, expected) => {
    expect(isSupportedVersion({ major, minor, patch: 0, text: '' })).toBe(expected)
  })
})
