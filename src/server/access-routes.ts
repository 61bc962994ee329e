import type { NetworkApi } from './network-api.ts'
import { parseRole } from './access/roles.ts'
import { ApiError } from './requests/api-error.ts'
import { countParam } from './requests/query.ts'
import type { Route } from './requests/route.ts'

const defaultDays = 365
const mostDays = 3650

/** The routes that issue credentials for clients over the network. */
export function accessRoutes(network: Pick<NetworkApi, 'kubeconfig'> | undefined): readonly Route[] {
  return [
    {
      method: 'POST',
      pattern: '/podd/v1/kubeconfig',
      handle({ query }) {
        if (network === undefined)
          throw new ApiError(
            409,
            'podd serves its API on the unix socket alone',
            'Set api.listen in the config file, such as `api: {listen: 127.0.0.1:6443}`, and restart podd.',
          )
        const user = query.get('user') ?? 'admin'
        if (!/^[\w.@:+-]{1,64}$/u.test(user))
          throw new ApiError(400, 'user must be 1 to 64 letters, digits, or any of . _ @ : + -')
        const role = parseRole(query.get('role') ?? 'admin')
        if (role === undefined) throw new ApiError(400, 'role must be admin, edit or view')
        const days = countParam(query, 'days') ?? defaultDays
        if (days < 1 || days > mostDays) throw new ApiError(400, `days must be from 1 to ${mostDays}`)
        const server = query.get('server') ?? undefined
        if (server !== undefined && !/^https:\/\/[\w.:[\]-]+$/u.test(server))
          throw new ApiError(400, 'server must be https://HOST:PORT')
        const body = network.kubeconfig({ user, role, days, server })
        return { status: 200, contentType: 'application/yaml', body }
      },
    },
  ]
}
