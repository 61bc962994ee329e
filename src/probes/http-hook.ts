import type { AttemptBounds } from './bound-attempt.ts'
import { joinHostPort } from './go-words.ts'
import { sendHttpGet } from './http-get.ts'
import { buildHttpRequest } from './http-request.ts'
import type { HttpGetAction } from './http-request.ts'
import type { ProbeTarget } from './probe-outcome.ts'

export interface HttpHookOptions {
  readonly action: HttpGetAction
  readonly target: Pick<ProbeTarget, 'podIps' | 'ports'>
  /** Where the manifest's headers name none: `kube-lifecycle/<version>`. */
  readonly userAgent: string
  /** The kubelet sets no limit of its own: pass the remaining grace period, or a signal. */
  readonly bounds: AttemptBounds
}

export type HttpHookResult =
  /** It was answered. `warning`: it took HTTP where HTTPS was asked for; the text of a `LifecycleHTTPFallback` event. */
  | { readonly kind: 'done'; readonly warning: string | undefined }
  | { readonly kind: 'failed'; readonly message: string }

/**
 * A lifecycle hook's GET. Any response counts as success, whatever its status; an HTTPS hook whose server speaks plain
 * HTTP is sent again so, without its Authorization header (kubelet pkg/kubelet/lifecycle/handlers.go runHTTPHandler,
 * 1.36). Never rejects.
 */
export async function runHttpHook(options: HttpHookOptions): Promise<HttpHookResult> {
  const { action, target, userAgent, bounds } = options
  const built = buildHttpRequest(action, target, userAgent)
  if (built.kind === 'invalid') return { kind: 'failed', message: built.message }
  const got = await sendHttpGet(built.request, bounds)
  if (got.kind === 'response' || got.during === 'body') return { kind: 'done', warning: undefined }
  if (got.tlsMismatch) {
    const headers = built.request.headers.filter(([name]) => name.toLowerCase() !== 'authorization')
    const plain = await sendHttpGet({ ...built.request, scheme: 'http', headers }, bounds)
    if (plain.kind === 'response' || plain.during === 'body') {
      const at = joinHostPort(built.request.host, built.request.port)
      return {
        kind: 'done',
        warning: `request to HTTPS lifecycle hook ${at} got HTTP response, retry with HTTP succeeded`,
      }
    }
  }
  return { kind: 'failed', message: got.message }
}
