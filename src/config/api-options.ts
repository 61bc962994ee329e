import { isIP } from 'node:net'
import { bad, ok, flag, integer, optionalPath, kubeletOption, poddOption, textual } from './option-type.ts'
import type { Decoded } from './option-type.ts'

/** An address of this host, and a TCP port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** `127.0.0.1:6443`, `[::1]:6443`; empty for none. */
const listenAddress = textual('IP:PORT', readAddress, (address) =>
  address === undefined ? '' : formatAddress(address),
)

export function formatAddress({ host, port }: ListenAddress): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}

function readAddress(text: string): Decoded<ListenAddress | undefined> {
  if (text === '') return ok(undefined)
  const {
    v4,
    v6,
    digits = '',
  } = /^(?:(?<v4>[\d.]+)|\[(?<v6>[\da-f:.]+)\]):(?<digits>\d{1,5})$/iu.exec(text)?.groups ?? {}
  const host = v4 ?? v6 ?? ''
  const port = Number(digits)
  if (isIP(host) !== (v4 === undefined ? 6 : 4) || port < 1 || port > 65_535)
    return bad(
      'must be an IP address and a port, such as 127.0.0.1:6443 or [::1]:6443; 0.0.0.0 means all addresses',
    )
  return ok({ host, port })
}

const listenHost = textual('IP', readHost, String)

function readHost(text: string): Decoded<string> {
  return isIP(text) === 0 ? bad('must be an IP address, such as 127.0.0.1 or ::1') : ok(text)
}

/** The API beyond the unix socket; a part of the table in options.ts. */
export const apiOptions = {
  apiListen: poddOption('api.listen', undefined, listenAddress, {
    flag: 'api-listen',
    defaultText: 'the unix socket alone',
    secret: false,
    doc: 'Where podd serves its API over TLS, for kubectl and other clients of Kubernetes. `podd kubeconfig` prints how they log in.',
  }),
  apiTokenFile: poddOption('api.tokenFile', undefined, optionalPath, {
    flag: 'api-token-file',
    secret: false,
    doc: 'A file of bearer tokens for the API, mode 0600, each line `token,user,uid,"group1,group2"`. The groups `podd:view`, `podd:edit` and `system:masters` give the roles view, edit and admin.',
  }),
  apiPage: poddOption('api.page', false, flag, {
    flag: 'api-page',
    doc: 'Serves a status page at `/ui` of the API: pods, logs, events, sources, and what the host and its pods used over the last hour, which podd then measures every 30 s. Its users log in with a bearer token of `api.tokenFile`, or a client certificate in the browser.',
  }),
  readOnlyPort: kubeletOption('readOnlyPort', 0, integer(0, 65_535), {
    flag: 'read-only-port',
    doc: "A port that serves, without TLS and to everybody who reaches it, what the kubelet's read-only port serves: `/metrics`, `/metrics/resource`, `/metrics/cadvisor`, `/metrics/probes`, `/stats/summary`, `/pods`, `/runningpods` and `/healthz`. 0 for none.",
  }),
  address: kubeletOption('address', '127.0.0.1', listenHost, {
    flag: 'address',
    secret: false,
    zeroIsDefault: true,
    doc: 'The address of this host that `readOnlyPort` is served on; `0.0.0.0` or `::` for all. (The default of a kubelet is all addresses.)',
  }),
} as const
