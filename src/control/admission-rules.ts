import type { PoddConfig } from '../config/options.ts'
import { computeAllocatable } from '../decide/allocatable.ts'
import type { HostInfo } from '../host/host-info.ts'
import type { AdmissionRules } from './pod-admission.ts'

/** Which pods may run here, by the config and the machine. */
export function admissionRules(
  config: PoddConfig,
  hostInfo: Pick<HostInfo, 'cpus' | 'memoryBytes' | 'hugePagesBytes' | 'appArmor'>,
): AdmissionRules {
  const { cpus, memoryBytes, hugePagesBytes, appArmor } = hostInfo
  return {
    limits: {
      maxPods: config.maxPods,
      allocatable: computeAllocatable({ cpus, memoryBytes, hugePagesBytes }, [
        config.systemReserved,
        config.kubeReserved,
      ]),
    },
    allowedUnsafeSysctls: config.allowedUnsafeSysctls,
    appArmor,
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    policies: {
      file: {
        settings: 'podSecurity.file',
        policy: {
          level: config.directorySecurityLevel,
          allowedHostPaths: config.directoryAllowedHostPaths,
          allowedCapabilities: config.directoryAllowedCapabilities,
          allowedHostPorts: config.directoryAllowedHostPorts,
          allowedRegistries: config.directoryAllowedRegistries,
        },
      },
      http: {
        settings: 'podSecurity.url',
        policy: {
          level: config.urlSecurityLevel,
          allowedHostPaths: config.urlAllowedHostPaths,
          allowedCapabilities: config.urlAllowedCapabilities,
          allowedHostPorts: config.urlAllowedHostPorts,
          allowedRegistries: config.urlAllowedRegistries,
        },
      },
    },
  }
}
