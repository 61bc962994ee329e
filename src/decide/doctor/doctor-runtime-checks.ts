import { cniHint } from '../../pod/state/observed.ts'
import type {
  DoctorFinding,
  EmbeddedRuntimeFacts,
  ExternalRuntimeFacts,
  HostFacts,
  HostPrograms,
} from './host-facts.ts'

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
    return problems.map((message) => ({ name, status: 'error', message, hint }))
  }
  if (registries === 0) return []
  return [{ name, status: 'ok', message: `${directory} has settings for ${registries}` }]
}

function checkContainerd(
  { containerd, ctr }: HostPrograms,
  { newerVersion }: EmbeddedRuntimeFacts,
): DoctorFinding {
  const name = 'containerd'
  const install = 'Install the package containerd (on hosts with Docker: containerd.io).'
  if (containerd === undefined) return { name, status: 'error', message: 'not installed', hint: install }
  if (ctr === undefined) {
    return {
      name,
      status: 'error',
      message: 'ctr, which comes with containerd, is not installed',
      hint: install,
    }
  }
  const [major = 0, minor = 0] = containerd.version.split('.').map((part) => Number.parseInt(part, 10))
  if (!(major > 1 || (major === 1 && minor >= 6))) {
    return {
      name,
      status: 'error',
      message: `${containerd.path} is version ${containerd.version || 'unknown'}`,
      hint: 'podd needs containerd 1.6 or newer.',
    }
  }
  if (newerVersion !== undefined) {
    return {
      name,
      status: 'warning',
      message: `${containerd.path} is version ${containerd.version}, and pods run under containerd ${newerVersion}`,
      hint: `Install containerd ${newerVersion} or newer again: podd starts no older one while these pods run.`,
    }
  }
  return { name, status: 'ok', message: `${containerd.path} ${containerd.version}` }
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
      return { name, status: 'error', message: `${asked === name ? '' : `${asked} is `}not installed`, hint }
    }
    const message = `${program.path} ${program.version}`.trim()
    const hybrid = cgroups?.hybridControllers ?? []
    if (name === 'crun' && isBefore(program.version, [1, 14, 3]) && !isBefore(containerdVersion, [2])) {
      return {
        name,
        status: 'error',
        message: `${message} starts no container of containerd ${containerdVersion}`,
        hint: 'Install crun 1.14.3 or newer, or use runc.',
      }
    }
    if (name !== 'crun' || hybrid.length === 0) return { name, status: 'ok', message }
    return {
      name,
      status: 'error',
      message: `${message} starts no container where controllers (${hybrid.join(', ')}) are in version 2 of cgroups and others in version 1`,
      hint: 'Boot with cgroup version 2 alone (systemd.unified_cgroup_hierarchy=1), or use runc.',
    }
  })
}

/** Also where the version is unknown. */
function isBefore(version: string, wanted: readonly number[]): boolean {
  const parts = version.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const differing = wanted.findIndex((part, index) => part !== (parts[index] ?? 0))
  return differing >= 0 && (parts[differing] ?? 0) < (wanted[differing] ?? 0)
}

function checkEmbeddedProcess({ pid, answers, failure, newerVersion }: EmbeddedRuntimeFacts): DoctorFinding {
  const name = 'runtime'
  if (failure !== undefined) {
    const { message, logPath, dataPath } = failure
    return {
      name,
      status: 'error',
      message: `podd runs and its containerd does not${message === '' ? '' : `: ${message}`}`,
      hint:
        newerVersion !== undefined
          ? 'podd retries: mend what is said of containerd above.'
          : `podd retries; see ${logPath}. If its data is damaged: stop podd, move ${dataPath} aside and start podd again; import images again that were imported.`,
    }
  }
  if (answers === undefined) return { name, status: 'skipped', message: 'only root can look' }
  if (pid === undefined) {
    return { name, status: 'ok', message: "podd's containerd is not running; `podd run` starts it" }
  }
  if (answers) return { name, status: 'ok', message: `podd's containerd runs (pid ${pid}) and answers` }
  return {
    name,
    status: 'error',
    message: `podd's containerd runs (pid ${pid}) and does not answer`,
    hint: `Kill it, and podd starts a new one; the pods keep running: kill ${pid}`,
  }
}

function checkCniPlugins({ cniDirectories }: EmbeddedRuntimeFacts): DoctorFinding {
  const name = 'cni-plugins'
  const whole = cniDirectories.find(({ missing }) => missing.length === 0)
  if (whole !== undefined) return { name, status: 'ok', message: whole.path }
  const best = [...cniDirectories].sort((a, b) => a.missing.length - b.missing.length)[0]
  const places = cniDirectories.map(({ path }) => path).join(', ')
  return {
    name,
    status: 'error',
    message:
      best === undefined || !best.hasAny
        ? `not installed; looked in ${places}`
        : `${best.path} lacks ${best.missing.join(', ')}`,
    hint: 'Install the package containernetworking-plugins, or unpack the plugins into /opt/cni/bin.',
  }
}

function checkSubnet({ subnet, networkFaults }: EmbeddedRuntimeFacts): DoctorFinding {
  if (networkFaults !== '') {
    return {
      name: 'pod-network',
      status: 'error',
      message: networkFaults,
      hint: 'podd restores the network within seconds while it and containerd run; `podd status` shows why it could not.',
    }
  }
  if (subnet !== undefined) return { name: 'pod-network', status: 'ok', message: subnet }
  return {
    name: 'pod-network',
    status: 'error',
    message: "the host's routes leave no subnet free for pods",
    hint: 'Choose one: podCIDR in the config file, or --pod-cidr.',
  }
}

function checkPauseProgram({ pauseProgram }: EmbeddedRuntimeFacts): DoctorFinding {
  if (pauseProgram !== undefined) {
    return { name: 'sandbox-image', status: 'ok', message: `made from ${pauseProgram}` }
  }
  return {
    name: 'sandbox-image',
    status: 'error',
    message: 'no static program to make it from',
    hint: 'Install the package catatonit, or busybox-static.',
  }
}

function checkExternal(runtime: ExternalRuntimeFacts, facts: HostFacts): readonly DoctorFinding[] {
  if (runtime.failure !== undefined) {
    const { message, hint } = runtime.failure
    return [{ name: 'runtime', status: 'error', message, hint }]
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
      ? { name: 'runtime', status: 'ok', message: `${name} at ${runtime.endpoint}` }
      : {
          name: 'runtime',
          status: 'error',
          message: `${name} is not ready: ${ready?.message ?? 'it does not say why'}`,
          hint: 'See its log (journalctl -u containerd).',
        },
    network?.status === true
      ? { name: 'cni-network', status: 'ok', message: runtime.cniConfDir ?? 'ready' }
      : {
          name: 'cni-network',
          status: 'error',
          message: `no pod network: ${network?.message ?? 'the runtime does not say why'}`,
          hint: cniHint(runtime),
        },
  ]
}

function checkRuntimeDriver(
  runtime: ExternalRuntimeFacts,
  { cgroups, hasSystemd }: HostFacts,
): DoctorFinding {
  const name = 'cgroup-driver'
  const { cgroupDriver } = runtime
  if (cgroupDriver === undefined) {
    return { name, status: 'skipped', message: 'the runtime does not report which one it uses' }
  }
  if (cgroups !== undefined && cgroups.driver !== cgroupDriver) {
    return {
      name,
      status: 'error',
      message: `the runtime uses ${cgroupDriver}, podd is configured to use ${cgroups.driver}`,
      hint: `Set cgroupDriver: ${cgroupDriver} (or auto) in podd's config.`,
    }
  }
  if (cgroupDriver === 'cgroupfs' && hasSystemd && cgroups?.version === 2) {
    return {
      name,
      status: 'warning',
      message: 'the runtime manages cgroups by itself (cgroupfs) on a host where systemd manages them',
      hint: "Set SystemdCgroup = true in containerd's config, while no pods run.",
    }
  }
  return { name, status: 'ok', message: cgroupDriver }
}

function checkSandboxImage({ sandboxImage }: ExternalRuntimeFacts): DoctorFinding {
  const name = 'sandbox-image'
  if (sandboxImage === undefined) {
    return { name, status: 'skipped', message: 'the runtime does not report which one it uses' }
  }
  if (sandboxImage.present) return { name, status: 'ok', message: sandboxImage.name }
  return {
    name,
    status: 'warning',
    message: `${sandboxImage.name} is not present; the first pod pulls it, which fails offline`,
    hint: `Pull it while there is a network: ctr -n k8s.io images pull ${sandboxImage.name}`,
  }
}
