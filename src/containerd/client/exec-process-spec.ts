import { PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'

/** How large a terminal is, in characters. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** The fields in which a command differs from the container's own process. */
export interface ExecChoices {
  readonly command: readonly string[]
  readonly terminal: boolean
  readonly size?: TerminalSize | undefined
}

/**
 * The OCI process of a command that is run in a container: the container's own process (user, groups, capabilities,
 * environment, working directory, limits) with another command line, as `kubectl exec` has it
 * (containerd `internal/cri/server/container_execsync.go` execInternal, 2.1). Both are JSON text.
 * Throws PoddError EXEC_FAILED for a spec that has no process.
 */
export function makeExecProcess(containerSpec: string, choices: ExecChoices): string {
  const spec: unknown = JSON.parse(quoteLargeNumbers(containerSpec))
  const own = isJsonObject(spec) ? spec['process'] : undefined
  if (!isJsonObject(own)) throw new PoddError('EXEC_FAILED', 'the container has no process of its own')
  const { consoleSize: _size, commandLine: _line, ...kept } = own
  const process = {
    ...kept,
    args: choices.command,
    terminal: choices.terminal,
    ...(choices.terminal ? { env: terminalEnv(own) } : {}),
    ...(choices.terminal && choices.size !== undefined
      ? { consoleSize: { width: choices.size.columns, height: choices.size.rows } }
      : {}),
  }
  return unquoteLargeNumbers(JSON.stringify(process))
}

function terminalEnv(own: JsonObject): readonly string[] {
  const env: readonly unknown[] = Array.isArray(own['env']) ? own['env'] : []
  const others = env
    .filter((entry) => typeof entry === 'string')
    .filter((entry) => !entry.startsWith('TERM='))
  return [...others, 'TERM=xterm']
}

/**
 * A limit of `unlimited` is 2^64 - 1, which no JavaScript number holds: such numbers are kept as marked text. The mark
 * cannot occur in a spec by itself, since no environment or path holds a zero character.
 */
const mark = '\\u0000'

function quoteLargeNumbers(json: string): string {
  return json.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\d[\d.eE+-]*/gsu, (token) =>
    /^-?\d{16,}$/u.test(token) ? `"${mark}${token}"` : token,
  )
}

function unquoteLargeNumbers(json: string): string {
  return json.replaceAll(/"\\u0000(-?\d+)"/gu, '$1')
}
