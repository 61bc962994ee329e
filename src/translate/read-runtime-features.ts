import type { Json } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import { cniHint } from '../pod/state/observed.ts'
import type { CniPlaces, HandlerFeatures, RuntimeFeatures } from '../pod/state/observed.ts'

/**
 * Reads a verbose Status reply. containerd 2.0 and later list their handlers with their features; from older ones only
 * the names are known, from their reported configuration, and they lack the features that later ones report.
 */
export function readRuntimeFeatures(
  version: { readonly runtimeName: string; readonly runtimeVersion: string },
  status: Pick<cri.StatusResponse, 'runtimeHandlers' | 'features' | 'info'>,
): RuntimeFeatures {
  const isContainerd = version.runtimeName === 'containerd'
  const release = releaseNumber(version.runtimeVersion)
  return {
    runtime: `${version.runtimeName} ${version.runtimeVersion.replace(/^v/u, '').replace(/~.*$/u, '')}`,
    handlers:
      status.runtimeHandlers.length > 0
        ? listedHandlers(status.runtimeHandlers)
        : configuredHandlers(status.info),
    supplementalGroupsPolicy: status.features?.supplementalGroupsPolicy ?? false,
    // No runtime reports these. Another one than containerd that lacks images as volumes fails to mount them; one that
    // lacks the signal would ignore it.
    imageVolumes: !isContainerd || release >= 2001,
    imageSubPaths: !isContainerd || release >= 2002,
    stopSignals: isContainerd && release >= 2003,
  }
}

/** 2003 is 2.3. */
function releaseNumber(version: string): number {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/u.exec(version) ?? []
  return Number(major) * 1000 + Number(minor)
}

function listedHandlers(handlers: readonly cri.RuntimeHandler[]): ReadonlyMap<string, HandlerFeatures> {
  return new Map(
    handlers.map(({ name, features }) => [
      name,
      {
        userNamespaces: features?.userNamespaces ?? false,
        recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
      },
    ]),
  )
}

const oldHandler: HandlerFeatures = { userNamespaces: false, recursiveReadOnlyMounts: false }

/** `info.config` of containerd 1.x: its CRI plugin's configuration as JSON. */
function configuredHandlers(
  info: Readonly<Record<string, string>>,
): ReadonlyMap<string, HandlerFeatures> | undefined {
  const config = parseJson(info['config'])
  const containerd = isJsonObject(config) ? config['containerd'] : undefined
  const runtimes = isJsonObject(containerd) ? containerd['runtimes'] : undefined
  if (!isJsonObject(runtimes)) return undefined
  return new Map(['', ...Object.keys(runtimes)].map((name) => [name, oldHandler]))
}

/** Why the runtime takes no pods at all, in the kubelet's words (`pkg/kubelet/kubelet.go` updateRuntimeUp, 1.36). */
export function readRuntimeProblem(status: cri.StatusResponse): string | undefined {
  const problem = conditionProblem(status, 'RuntimeReady')
  return problem === undefined ? undefined : `container runtime not ready: ${problem}`
}

/** Why the runtime takes none with a network of their own, and what to do about it. */
export function readNetworkProblem(status: cri.StatusResponse): string | undefined {
  const problem = conditionProblem(status, 'NetworkReady')
  return problem === undefined
    ? undefined
    : `container runtime network not ready: ${problem}. ${cniHint(readCniPlaces(status.info))}`
}

function conditionProblem({ status }: cri.StatusResponse, wanted: string): string | undefined {
  const condition = status?.conditions.find(({ type }) => type === wanted)
  if (condition === undefined || condition.status) return undefined
  return `${wanted}=false reason:${condition.reason} message:${condition.message}`
}

/** From a verbose Status reply. */
export function readCniPlaces(info: cri.StatusResponse['info']): CniPlaces {
  const config = parseJson(info['config'])
  const cni = isJsonObject(config) ? config['cni'] : undefined
  const confDir = isJsonObject(cni) ? cni['confDir'] : undefined
  const network = parseJson(info['cniconfig'])
  const dirs = isJsonObject(network) ? network['PluginDirs'] : undefined
  return {
    cniConfDir: typeof confDir === 'string' && confDir !== '' ? confDir : undefined,
    cniPluginDirs: Array.isArray(dirs) ? dirs.filter((dir) => typeof dir === 'string') : [],
  }
}

function parseJson(text: string | undefined): Json | undefined {
  try {
    const value: Json | undefined = text === undefined ? undefined : JSON.parse(text)
    return value
  } catch {
    // A runtime that tells something else than JSON does not tell it.
    return undefined
  }
}
