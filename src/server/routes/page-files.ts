import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import { ApiError } from '../requests/api-error.ts'
import { isAnonymous } from '../requests/request.ts'
import type { ApiResponse, Identity } from '../requests/request.ts'

/** All files of the page; the empty name is the page itself. */
const files: Readonly<Record<string, readonly [name: string, contentType: string]>> = {
  '': ['index.html', 'text/html; charset=utf-8'],
  'page.css': ['page.css', 'text/css; charset=utf-8'],
  'page.js': ['page.js', 'text/javascript; charset=utf-8'],
  'icon.svg': ['icon.svg', 'image/svg+xml'],
}

/** The content security policy: only the page's own files and its API, and no framing by other sites. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const headers: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
}

/** Replaced in the page by the identity of a browser with a client certificate, so that the page asks for no token. */
const userPlace = '<meta name="podd-user" content="" />'

/** A file of the page, read as it is asked for: podd keeps none of them. Throws ApiError NotFound. */
export async function readPageFile(
  directory: string,
  file: string,
  identity: Identity,
): Promise<ApiResponse> {
  const found = Object.hasOwn(files, file) ? files[file] : undefined
  if (found === undefined)
    throw new ApiError(404, `the server could not find the requested resource /ui/${file}`)
  const [name, contentType] = found
  const text = await readText(join(directory, name))
  const body =
    file === '' && !isAnonymous(identity)
      ? text.replace(userPlace, () => userPlace.replace('""', `"${escapeAttribute(identity.name)}"`))
      : text
  return { status: 200, contentType, headers, body }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    const message = `the status page is not here: there is no ${path}`
    throw new ApiError(404, message, 'In a checkout, `npm run build` makes it.')
  }
}

function escapeAttribute(text: string): string {
  return text.replaceAll(/[&"<>]/gu, (character) => `&#${character.codePointAt(0)};`)
}
