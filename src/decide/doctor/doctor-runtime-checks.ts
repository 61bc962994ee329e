import { cniHint } from '../../pod/state/observed.ts'
import { error, ok, skipped, warning } from './doctor-finding.ts'
import type { DoctorFinding } from './doctor-finding.ts'
import type { EmbeddedRuntimeFacts, ExternalRuntimeFacts, HostFacts, HostPrograms } from './host-facts.ts'

/** The container runtime, its programs, its network and its sandbox image. */
export function checkRuntime(facts: HostFacts): readonly DoctorFinding[] {
  return facts.runtime.kind === 'embedded'
    ? checkEmbedded(facts.runtime, facts)
    : checkExternal(facts.runtime, facts)
}

function checkEmbedded(runtime: EmbeddedRuntimeFacts, facts: HostFacts): readonly DoctorFinding[] {
  return [
    checkContainerd(facts.programs, runtime),
    ...checkOciRuntimes(facts),
    checkEmbeddedProcess(runtime),
    checkCniPlugins(runtime),
    checkSubnet(runtime),
    checkPauseProgram(runtime),
    ...checkRegistryHosts(runtime.registryHosts),
  ]
}

/** containerd reports settings that it cannot read only in its log. */
function checkRegistryHosts({
  directory,
  registries,
  problems,
}: EmbeddedRuntimeFacts['registryHosts']): readonly DoctorFinding[] {
  const name = 'registries'
  if (problems.length > 0) {
    const hint = 'Mend the file; it counts from the next pull on.'
    return problems.map((message) => error(name, message, hint))
  }
  if (registries === 0) return []
  return [ok(name, `${directory} has settings for ${registries}`)]
}

function checkContainerd(
  { containerd, ctr }: HostPrograms,
  { newerVersion }: EmbeddedRuntimeFacts,
): DoctorFinding {
  const name = 'containerd'
  const install = 'Install the package containerd (on hosts with Docker: containerd.io).'
  if (containerd === undefined) return error(name, 'not installed', install)
  if (ctr === undefined) {
    return error(name, 'ctr, which comes with containerd, is not installed', install)
  }
  const [major = 0, minor = 0] = containerd.version.split('.').map((part) => Number.parseInt(part, 10))
  if (!(major > 1 || (major === 1 && minor >= 6))) {
    return error(
      name,
      `${containerd.path} is version ${containerd.version || 'unknown'}`,
      'podd needs containerd 1.6 or newer.',
    )
  }
  if (newerVersion !== undefined) {
    return warning(
      name,
      `${containerd.path} is version ${containerd.version}, and pods run under containerd ${newerVersion}`,
      `Install containerd ${newerVersion} or newer again: podd starts no older one while these pods run.`,
    )
  }
  return ok(name, `${containerd.path} ${containerd.version}`)
}

function checkOciRuntimes({ programs, cgroups }: HostFacts): readonly DoctorFinding[] {
  const containerdVersion = programs.containerd?.version ?? ''
  return programs.ociRuntimes.map(({ name: asked, program }) => {
    const name = asked.slice(asked.lastIndexOf('/') + 1)
    if (program === undefined) {
      const hint =
        asked === 'runc'
          ? 'Install the package runc.'
          : `Install ${asked}, or name another OCI runtime in ociRuntimes.`
      return error(name, `${asked === name ? '' : `${asked} is `}not installed`, hint)
    }
    const message = `${program.path} ${program.version}`.trim()
    const hybrid = cgroups?.hybridControllers ?? []
    if (name === 'crun' && isBefore(program.version, [1, 14, 3]) && !isBefore(containerdVersion, [2])) {
      return error(
        name,
        `${message} starts no container of containerd ${containerdVersion}`,
        'Install crun 1.14.3 or newer, or use runc.',
      )
    }
    if (name !== 'crun' || hybrid.length === 0) return ok(name, message)
    return error(
      name,
      `${message} starts no container where controllers (${hybrid.join(', ')}) are in version 2 of cgroups and others in version 1`,
      'Boot with cgroup version 2 alone (systemd.unified_cgroup_hierarchy=1), or use runc.',
    )
  })
}

/** Also where the version is unknown. */
function isBefore(version: string, wanted: readonly number[]): boolean {
  const parts = version.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const differences = wanted.map((part, index) => (parts[index] ?? 0) - part)
  return (differences.find((difference) => difference !== 0) ?? 0) < 0
}

function checkEmbeddedProcess({ pid, answers, failure, newerVersion }: EmbeddedRuntimeFacts): DoctorFinding {
  const name = 'runtime'
  if (failure !== undefined) {
    const { message, logPath, dataPath } = failure
    return error(
      name,
      `podd runs and its containerd does not${message === '' ? '' : `: ${message}`}`,
      newerVersion !== undefined
        ? 'podd retries: mend what is said of containerd above.'
        : `podd retries; see ${logPath}. If its data is damaged: stop podd, move ${dataPath} aside and start podd again; import images again that were imported.`,
    )
  }
  if (answers === undefined) return skipped(name, 'only root can look')
  if (pid === undefined) {
    return ok(name, "podd's containerd is not running; `podd run` starts it")
  }
  if (answers) return ok(name, `podd's containerd runs (pid ${pid}) and answers`)
  return error(
    name,
    `podd's containerd runs (pid ${pid}) and does not answer`,
    `Kill it, and podd starts a new one; the pods keep running: kill ${pid}`,
  )
}

function checkCniPlugins({ cniDirectories }: EmbeddedRuntimeFacts): DoctorFinding {
  const name = 'cni-plugins'
  const whole = cniDirectories.find(({ missing }) => missing.length === 0)
  if (whole !== undefined) return ok(name, whole.path)
  const best = [...cniDirectories].sort((a, b) => a.missing.length - b.missing.length)[0]
  const places = cniDirectories.map(({ path }) => path).join(', ')
  return error(
    name,
    best === undefined || !best.hasAny
      ? `not installed; looked in ${places}`
      : `${best.path} lacks ${best.missing.join(', ')}`,
    'Install the package containernetworking-plugins, or unpack the plugins into /opt/cni/bin.',
  )
}

function checkSubnet({ subnet, networkFaults }: EmbeddedRuntimeFacts): DoctorFinding {
  if (networkFaults !== '') {
    return error(
      'pod-network',
      networkFaults,
      'podd restores the network within seconds while it and containerd run; `podd status` shows why it could not.',
    )
  }
  if (subnet !== undefined) return ok('pod-network', subnet)
  return error(
    'pod-network',
    "the host's routes leave no subnet free for pods",
    'Choose one: podCIDR in the config file, or --pod-cidr.',
  )
}

function checkPauseProgram({ pauseProgram }: EmbeddedRuntimeFacts): DoctorFinding {
  if (pauseProgram !== undefined) {
    return ok('sandbox-image', `made from ${pauseProgram}`)
  }
  return error(
    'sandbox-image',
    'no static program to make it from',
    'Install the package catatonit, or busybox-static.',
  )
}

function checkExternal(runtime: ExternalRuntimeFacts, facts: HostFacts): readonly DoctorFinding[] {
  if (runtime.failure !== undefined) {
    const { message, hint } = runtime.failure
    return [error('runtime', message, hint)]
  }
  return [...checkConditions(runtime), checkRuntimeDriver(runtime, facts), checkSandboxImage(runtime)]
}

/** The conditions that CRI's Status must have; others belong to the runtime. */
function checkConditions(runtime: ExternalRuntimeFacts): readonly DoctorFinding[] {
  const ready = runtime.conditions.find(({ type }) => type === 'RuntimeReady')
  const network = runtime.conditions.find(({ type }) => type === 'NetworkReady')
  const name = `${runtime.name} ${runtime.version}`
  return [
    ready?.status === true
      ? ok('runtime', `${name} at ${runtime.endpoint}`)
      : error(
          'runtime',
          `${name} is not ready: ${ready?.message ?? 'it does not say why'}`,
          'See its log (journalctl -u containerd).',
        ),
    network?.status === true
      ? ok('cni-network', runtime.cniConfDir ?? 'ready')
      : error(
          'cni-network',
          `no pod network: ${network?.message ?? 'the runtime does not say why'}`,
          cniHint(runtime),
        ),
  ]
}

function checkRuntimeDriver(
  runtime: ExternalRuntimeFacts,
  { cgroups, hasSystemd }: HostFacts,
): DoctorFinding {
  const name = 'cgroup-driver'
  const { cgroupDriver } = runtime
  if (cgroupDriver === undefined) {
    return skipped(name, 'the runtime does not report which one it uses')
  }
  if (cgroups !== undefined && cgroups.driver !== cgroupDriver) {
    return error(
      name,
      `the runtime uses ${cgroupDriver}, podd is configured to use ${cgroups.driver}`,
      `Set cgroupDriver: ${cgroupDriver} (or auto) in podd's config.`,
    )
  }
  if (cgroupDriver === 'cgroupfs' && hasSystemd && cgroups?.version === 2) {
    return warning(
      name,
      'the runtime manages cgroups by itself (cgroupfs) on a host where systemd manages them',
      "Set SystemdCgroup = true in containerd's config, while no pods run.",
    )
  }
  return ok(name, cgroupDriver)
}

function checkSandboxImage({ sandboxImage }: ExternalRuntimeFacts): DoctorFinding {
  const name = 'sandbox-image'
  if (sandboxImage === undefined) {
    return skipped(name, 'the runtime does not report which one it uses')
  }
  if (sandboxImage.present) return ok(name, sandboxImage.name)
  return warning(
    name,
    `${sandboxImage.name} is not present; the first pod pulls it, which fails offline`,
    `Pull it while there is a network: ctr -n k8s.io images pull ${sandboxImage.name}`,
  )
}
