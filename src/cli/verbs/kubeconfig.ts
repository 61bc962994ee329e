import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'

export const kubeconfigVerb: Verb = {
  usage: 'kubeconfig [--user NAME] [--role admin|edit|view] [--days N] [--server URL]',
  help: `Prints a kubeconfig with which kubectl and other clients of Kubernetes reach this podd. It has the certificate of
podd's own authority and a client certificate, made for this call, that cannot be revoked before it ends: handle it like
a password. podd must listen beyond its socket (api.listen in the config file).

The role says what the user may do: admin everything; edit to change pods, ConfigMaps, Secrets and claims and to run
commands in containers, which makes it as good as root on this host; view to look at all but Secrets.`,
  flags: [
    { name: 'user', label: 'NAME', doc: 'The name that requests are made under; admin unless given.' },
    { name: 'role', label: 'ROLE', doc: 'admin, edit or view; admin unless given.' },
    { name: 'days', label: 'N', doc: 'How long the client certificate is valid; 365 days unless given.' },
    {
      name: 'server',
      label: 'URL',
      doc: 'Where clients reach podd, https://HOST:PORT, if not at the address of api.listen.',
    },
  ],
  examples: [
    ['kubeconfig > ~/.kube/config', 'let kubectl reach this podd'],
    ['kubeconfig --user ann --role view --days 30', 'for read-only access'],
  ],
  async run({ args, client, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`kubeconfig takes no argument ${JSON.stringify(extra)}`)
    const role = args.value('role') ?? 'admin'
    if (!['admin', 'edit', 'view'].includes(role))
      throw new UsageError(`no role is called ${JSON.stringify(role)}`, 'There are admin, edit and view.')
    args.count('days', 1)
    const query = new URLSearchParams()
    for (const name of ['user', 'role', 'days', 'server']) {
      const value = args.value(name)
      if (value !== undefined) query.set(name, value)
    }
    const chunks = client.stream(`/podd/v1/kubeconfig?${query.toString()}`, signal, 'POST')
    return { kind: 'chunks', chunks }
  },
}
