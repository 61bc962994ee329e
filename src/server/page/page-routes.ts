import { jsonResponse } from '../requests/api-request.ts'
import type { PageReader } from '../requests/readers.ts'
import type { Route } from '../requests/route.ts'

/**
 * The routes of the status page and of the data that only it shows; it gets the rest from the API, as other clients do.
 */
export function pageRoutes(page: PageReader): readonly Route[] {
  const route = (pattern: string): Route => ({
    method: 'GET',
    pattern,
    async handle({ request, names: [file = ''] }) {
      const { readPageFile } = await import('./page-files.ts')
      return readPageFile(page.directory, file, request.identity)
    },
  })
  return [
    route('/ui'),
    route('/ui/*'),
    { method: 'GET', pattern: '/podd/v1/usage', handle: () => jsonResponse(page.usage()) },
  ]
}
