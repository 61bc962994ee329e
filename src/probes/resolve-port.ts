import type { ContainerPort } from '../pod/schema/container-schema.ts'

export type ResolvedPort =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'invalid'; readonly message: string }

/**
 * The number behind a probe's or hook's port: itself, the declared port of that name, or the number
 * that the text spells (kubelet pkg/probe/util.go ResolveContainerPort, 1.36).
 */
export function resolvePort(reference: number | string, ports: readonly ContainerPort[]): ResolvedPort {
  const port = typeof reference === 'number' ? reference : portNumber(reference, ports)
  if (port === undefined) return { kind: 'invalid', message: `port ${reference} not found` }
  if (port > 0 && port < 65_536) return { kind: 'port', port }
  return { kind: 'invalid', message: `invalid port number: ${port}` }
}

function portNumber(name: string, ports: readonly ContainerPort[]): number | undefined {
  const named = ports.find((port) => port.name === name)
  if (named !== undefined) return named.containerPort
  return /^[+-]?\d+$/.test(name) ? Number(name) : undefined
}
