import { isIP } from 'node:net'
import { optionalPath } from './option-type.ts'
import type { Decoded, OptionType } from './option-type.ts'
import { option } from './option.ts'

/** An address of this host, and a TCP port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** `127.0.0.1:6443`, `[::1]:6443`; empty for none. */
const listenAddress: OptionType<ListenAddress | undefined> = {
  label: 'IP:PORT',
  fromText: readAddress,
  fromFile: (json) =>
    typeof json === 'string'
      ? readAddress(json)
      : { kind: 'bad', message: 'must be text such as 127.0.0.1:6443' },
  format: (address) => {
    if (address === undefined) return ''
    const { host, port } = address
    return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
  },
}

function readAddress(text: string): Decoded<ListenAddress | undefined> {
  if (text === '') return { kind: 'ok', value: undefined }
  const {
    v4,
    v6,
    digits = '',
  } = /^(?:(?<v4>[\d.]+)|\[(?<v6>[\da-f:.]+)\]):(?<digits>\d{1,5})$/iu.exec(text)?.groups ?? {}
  const host = v4 ?? v6 ?? ''
  const port = Number(digits)
  if (isIP(host) !== (v4 === undefined ? 6 : 4) || port < 1 || port > 65_535)
    return {
      kind: 'bad',
      message:
        'must be an IP address and a port, such as 127.0.0.1:6443 or [::1]:6443; 0.0.0.0 means all addresses',
    }
  return { kind: 'ok', value: { host, port } }
}

/** The API beyond the unix socket; a part of the table in options.ts. */
export const apiOptions = {
  apiListen: option({
    field: 'api.listen',
    flag: 'api-listen',
    type: listenAddress,
    default: undefined,
    defaultText: 'the unix socket alone',
    owner: 'podd',
    doc: 'Where podd serves its API over TLS, for kubectl and other clients of Kubernetes. `podd kubeconfig` prints how they log in.',
  }),
  apiTokenFile: option({
    field: 'api.tokenFile',
    flag: 'api-token-file',
    type: optionalPath,
    default: undefined,
    owner: 'podd',
    doc: 'A file of bearer tokens for the API, mode 0600, each line `token,user,uid,"group1,group2"`. The groups `podd:view`, `podd:edit` and `system:masters` give the roles view, edit and admin.',
  }),
} as const
