import type * as cri from '../cri-types/cri-v1.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { Environment } from './environment/environment.ts'
import type { ContainerCommand } from './environment/exec-limits.ts'
import { containerAnnotations, containerLabels } from './identity/labels.ts'
import { containerLogPath } from './identity/log-path.ts'
import { containerResources } from './resources/resources.ts'
import type { ResourceFacts } from './resources/resources.ts'
import { containerSecurityContext } from './security/security-context.ts'
import type { ImageUser, SecurityFacts } from './security/security-context.ts'
import type { ContainerView, PodView } from './spec/spec-view.ts'
import { toCriSignal } from './spec/stop-signals.ts'
import type { UserRange } from './security/user-namespace.ts'

/** A container of a pod with all resolved inputs. */
export interface ContainerInput {
  readonly pod: PodView
  readonly uid: PodUid
  readonly container: ContainerView
  readonly restartCount: number
  /** See labels.ts. */
  readonly instance: string
  /** The hash to find a changed spec by; see pod/hash.ts. */
  readonly specHash: string
  /** What the image's name resolved to: the runtime's id of it. */
  readonly imageRef: string
  readonly imageUser: ImageUser
  /** Expanded already; see environment.ts. */
  readonly environment: Environment
  /** Expanded with it; see exec-limits.ts. */
  readonly command: ContainerCommand
  /** From containerMounts. */
  readonly mounts: readonly cri.MountInput[]
  readonly resources: ResourceFacts
  readonly security: SecurityFacts
  /** For a pod with a user namespace. */
  readonly userRange?: UserRange | undefined
  /** The container whose processes an ephemeral container sees. */
  readonly targetContainerId?: string | undefined
  /** Set when the pod is already terminating. */
  readonly deletionGraceSeconds?: number | undefined
}

/** `kuberuntime_container.go`, generateContainerConfig (1.36). */
export function toContainerConfig(input: ContainerInput): cri.ContainerConfigInput {
  const { pod, uid, container, restartCount, instance, environment } = input
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: { image: input.imageRef, userSpecifiedImage: container.image },
    command: input.command.command,
    args: input.command.args,
    workingDir: container.workingDir ?? '',
    envs: [...environment].map(([key, value]) => ({ key, value: Buffer.from(value) })),
    mounts: input.mounts,
    labels: containerLabels({ pod, uid, instance, container }),
    annotations: containerAnnotations({
      pod,
      container,
      specHash: input.specHash,
      restartCount,
      deletionGraceSeconds: input.deletionGraceSeconds,
    }),
    logPath: containerLogPath(container.name, restartCount),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    stopSignal: toCriSignal(container.lifecycle?.stopSignal),
    linux: {
      resources: containerResources(pod.spec, container, input.resources),
      securityContext: containerSecurityContext({
        spec: pod.spec,
        container,
        imageUser: input.imageUser,
        facts: input.security,
        targetContainerId: input.targetContainerId,
        userRange: input.userRange,
      }),
    },
  }
}
