/** Where the page shows a pod. */
export function podLink(namespace: string, name: string): string {
  return `#pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
}

/** The pod that an address of the page shows; undefined for any other place. */
export function readPodLink(hash: string): { readonly namespace: string; readonly name: string } | undefined {
  const { namespace, name } = /^#pod\/(?<namespace>[^/]+)\/(?<name>[^/]+)$/u.exec(hash)?.groups ?? {}
  if (namespace === undefined || name === undefined) return undefined
  try {
    return { namespace: decodeURIComponent(namespace), name: decodeURIComponent(name) }
  } catch {
    // Malformed escapes name no pod.
    return undefined
  }
}
