import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'

interface Listed {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
}

/**
 * The objects of a list as they are once that `holds`, by one watch of it: asked of those that are there and, after each
 * change, of those that are there then. Undefined where the watch ends before; rejects where there is no server,
 * and where the signal aborts.
 */
export async function watchUntil<T extends Listed>(
  socketPath: string,
  path: string,
  holds: (objects: readonly T[]) => boolean,
  signal: AbortSignal,
): Promise<readonly T[] | undefined> {
  const query = 'watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan'
  const response = await open(socketPath, `${path}${path.includes('?') ? '&' : '?'}${query}`, signal)
  const objects = new Map<string, T>()
  let isComplete = false
  let rest = ''
  for await (const chunk of response.setEncoding('utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { type, object }: { readonly type: string; readonly object: T } = JSON.parse(line)
      if (type === 'ERROR') return undefined
      const { name, annotations } = object.metadata
      if (type === 'BOOKMARK') isComplete ||= annotations?.['k8s.io/initial-events-end'] === 'true'
      else if (type === 'DELETED') objects.delete(name)
      else objects.set(name, object)
      const list = [...objects.values()]
      if (isComplete && holds(list)) return list
    }
  }
  return undefined
}

function open(socketPath: string, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path, agent: false, signal }, resolve).once('error', reject).end()
  })
}
