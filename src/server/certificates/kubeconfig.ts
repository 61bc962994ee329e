/** A kubeconfig with one cluster, one user and one context, all data inline. */
export function formatKubeconfig(parts: {
  readonly server: string
  readonly trusted: string
  readonly user: string
  readonly certificate: string
  readonly key: string
}): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  return `apiVersion: v1
kind: Config
clusters:
  - name: podd
    cluster:
      server: ${JSON.stringify(parts.server)}
      certificate-authority-data: ${base64(parts.trusted)}
users:
  - name: ${JSON.stringify(parts.user)}
    user:
      client-certificate-data: ${base64(parts.certificate)}
      client-key-data: ${base64(parts.key)}
contexts:
  - name: podd
    context:
      cluster: podd
      user: ${JSON.stringify(parts.user)}
current-context: podd
`
}
