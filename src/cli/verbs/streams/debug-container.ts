import type { JsonObject } from '../../../base/json.ts'
import type { ParsedArguments } from '../../arguments/parse-arguments.ts'
import { UsageError } from '../../arguments/usage-error.ts'

/**
 * The security contexts of debugging containers (`kubectl/pkg/cmd/debug/profiles.go`, 1.36, for ephemeral containers).
 */
export const debugProfiles: Readonly<Record<string, JsonObject | undefined>> = {
  general: { capabilities: { add: ['SYS_PTRACE'] } },
  baseline: undefined,
  restricted: {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  },
  netadmin: { capabilities: { add: ['NET_ADMIN', 'NET_RAW'] } },
  sysadmin: { privileged: true },
}

const pullPolicies = ['Always', 'IfNotPresent', 'Never']

export interface DebugRequest {
  readonly name: string
  readonly image: string
  /** Empty: the image's own. */
  readonly command: readonly string[]
  readonly target: string | undefined
  readonly args: ParsedArguments
}

/** The ephemeral container of a call. Throws UsageError. */
export function debugContainer({ name, image, command, target, args }: DebugRequest): JsonObject {
  const policy = args.value('image-pull-policy')
  if (policy !== undefined && !pullPolicies.includes(policy))
    throw new UsageError(
      `no pull policy is called ${JSON.stringify(policy)}`,
      `There are ${pullPolicies.join(', ')}.`,
    )
  const profile = args.value('profile') ?? 'general'
  if (!Object.hasOwn(debugProfiles, profile))
    throw new UsageError(
      `no profile is called ${JSON.stringify(profile)}`,
      `There are ${Object.keys(debugProfiles).join(', ')}.`,
    )
  const securityContext = debugProfiles[profile]
  const env = args.flags.flatMap(({ flag, text }) => (flag === 'env' ? [readVariable(text)] : []))
  return {
    name,
    image,
    ...(command.length > 0 && { command: [...command] }),
    ...(env.length > 0 && { env }),
    ...(policy !== undefined && { imagePullPolicy: policy }),
    ...(securityContext !== undefined && { securityContext }),
    // Without a terminal the container sees the end of the input, and its output continues after that.
    ...(args.has('stdin') && { stdin: true, ...(!args.has('tty') && { stdinOnce: true }) }),
    ...(args.has('tty') && { tty: true }),
    ...(target !== undefined && { targetContainerName: target }),
  }
}

function readVariable(text: string): JsonObject {
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`--env ${JSON.stringify(text)} is not NAME=VALUE`)
  return { name: text.slice(0, equals), value: text.slice(equals + 1) }
}

/** The container as in a manifest: JSON, which is valid YAML. */
export function formatSnippet(container: JsonObject): string {
  return `  ephemeralContainers:\n  - ${JSON.stringify(container)}`
}
