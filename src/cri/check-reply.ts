import type * as cri from '../cri-types/cri-v1.ts'

/**
 * What a reply must have to be accepted, as the kubelet has it (`cri-client/pkg/remote_runtime.go`, `remote_image.go`
 * and `utils.go`, Kubernetes 1.36). Each check says what is missing, or gives undefined.
 */
type Lack = string | undefined

function missing(fields: Readonly<Record<string, unknown>>): Lack {
  const absent = Object.entries(fields)
    .filter(([, value]) => value === '' || value === 0 || value === null || value === undefined)
    .map(([name]) => name)
  return absent.length === 0 ? undefined : `the runtime's reply lacks ${absent.join(', ')}`
}

export function checkVersion(reply: cri.VersionResponse): Lack {
  const { version, runtimeName, runtimeVersion, runtimeApiVersion } = reply
  return missing({ version, runtimeName, runtimeVersion, runtimeApiVersion })
}

/** The version of the runtime API that the kubelet asks for (`pkg/kubelet/kuberuntime/kuberuntime_manager.go`, 1.36). */
const apiVersion = '0.1.0'

/** Why podd can't work with a runtime that answered this to Version. */
export function apiVersionProblem({ version, runtimeName }: cri.VersionResponse): string | undefined {
  return version === apiVersion
    ? undefined
    : `${runtimeName} speaks version ${version} of the runtime API, and podd needs ${apiVersion}: install a release of it that serves CRI v1`
}

/** Both conditions must be present; they may be false. */
export function checkStatus(reply: cri.StatusResponse): Lack {
  const types = new Set(reply.status?.conditions.map((condition) => condition.type))
  const absent = ['RuntimeReady', 'NetworkReady'].filter((type) => !types.has(type))
  return absent.length === 0 ? undefined : `the runtime's status lacks the condition ${absent.join(' and ')}`
}

export function checkSandboxId(reply: cri.RunPodSandboxResponse): Lack {
  return missing({ podSandboxId: reply.podSandboxId })
}

export function checkContainerId(reply: cri.CreateContainerResponse): Lack {
  return missing({ containerId: reply.containerId })
}

export function checkStreamingUrl(reply: { readonly url: string }): Lack {
  return missing({ url: reply.url })
}

export function checkSandboxStatus({ status }: cri.PodSandboxStatusResponse): Lack {
  if (status === null) return missing({ status })
  const { id, metadata, createdAt } = status
  const { name, namespace, uid } = metadata ?? {}
  return missing({
    id,
    'metadata.name': name,
    'metadata.namespace': namespace,
    'metadata.uid': uid,
    createdAt,
  })
}

export function checkContainerStatus({ status }: cri.ContainerStatusResponse): Lack {
  if (status === null) return missing({ status })
  const { id, metadata, createdAt, image, imageRef } = status
  return missing({ id, 'metadata.name': metadata?.name, createdAt, 'image.image': image?.image, imageRef })
}

/** No image means that it doesn't exist; one without id or size is invalid. */
export function checkImageStatus({ image }: cri.ImageStatusResponse): Lack {
  return image === null ? undefined : missing({ 'image.id': image.id, 'image.size': image.size })
}

export function checkPulledImage(reply: cri.PullImageResponse): Lack {
  return missing({ imageRef: reply.imageRef })
}
