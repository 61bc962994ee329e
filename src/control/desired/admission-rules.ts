import type { PoddConfig } from '../../config/options.ts'
import { computeAllocatable } from '../../decide/admission/admit-pod.ts'
import type { ObjectRules } from '../../decide/sources/merge-snapshots.ts'
import type { HostInfo } from '../../host/facts/host-info.ts'
import type { SourceKind } from '../../pod/values/ids.ts'
import { configNames, sourceKinds } from '../../pod/values/ids.ts'
import type { AdmissionRules } from './pod-admission.ts'

/** Which pods may run here, by the config and the machine. */
export function admissionRules(
  config: PoddConfig,
  hostInfo: Pick<HostInfo, 'cpus' | 'memoryBytes' | 'hugePagesBytes' | 'appArmor'>,
  /** Of the disk that pods write to; undefined where that is unknown. */
  diskBytes: number | undefined,
): AdmissionRules {
  const { cpus, memoryBytes, hugePagesBytes, appArmor } = hostInfo
  return {
    limits: {
      maxPods: config.maxPods,
      allocatable: {
        ...computeAllocatable({ cpus, memoryBytes, hugePagesBytes }, [
          config.systemReserved,
          config.kubeReserved,
        ]),
        ...(diskBytes !== undefined && { 'ephemeral-storage': String(diskBytes) }),
      },
    },
    allowedUnsafeSysctls: config.allowedUnsafeSysctls,
    appArmor,
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    policies: {
      file: {
        level: config.directorySecurityLevel,
        allowedHostPaths: config.directoryAllowedHostPaths,
        allowedCapabilities: config.directoryAllowedCapabilities,
        allowedHostPorts: config.directoryAllowedHostPorts,
        allowedRegistries: config.directoryAllowedRegistries,
      },
      http: {
        level: config.urlSecurityLevel,
        allowedHostPaths: config.urlAllowedHostPaths,
        allowedCapabilities: config.urlAllowedCapabilities,
        allowedHostPorts: config.urlAllowedHostPorts,
        allowedRegistries: config.urlAllowedRegistries,
      },
      api: {
        level: config.apiSecurityLevel,
        allowedHostPaths: config.apiAllowedHostPaths,
        allowedCapabilities: config.apiAllowedCapabilities,
        allowedHostPorts: config.apiAllowedHostPorts,
        allowedRegistries: config.apiAllowedRegistries,
      },
    },
  }
}

/** Which objects count, and for whose pods, by the config. */
export function objectRules(config: PoddConfig): ObjectRules {
  return {
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    policies: {
      file: { readsObjectsOf: toSources(config.directoryReadsObjectsOf), givesClusterObjects: true },
      http: {
        readsObjectsOf: toSources(config.urlReadsObjectsOf),
        givesClusterObjects: config.urlGivesClusterObjects,
      },
      api: { readsObjectsOf: toSources(config.apiReadsObjectsOf), givesClusterObjects: true },
    },
  }
}

function toSources(named: readonly string[]): readonly SourceKind[] {
  return sourceKinds.filter((kind) => named.includes(configNames[kind]))
}
