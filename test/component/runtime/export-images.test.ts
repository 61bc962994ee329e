import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { exportImages } from '../../../src/runtime/embedded-images.ts'

const name = 'registry.example/web:2'
const version = { major: 2, minor: 1, patch: 9, text: '2.1.9' }
let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-export-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** What an export gives by a `ctr` that has this status of the image. */
async function exported(status: string): Promise<string> {
  const ctrPath = join(directory, 'ctr')
  const line = `${name} application/vnd.oci.image.manifest.v1+json sha256:0 ${status} true`
  const script = `#!/bin/sh
case "$*" in
*'images check name=="${name}"') echo 'REF TYPE DIGEST STATUS SIZE UNPACKED'; echo '${line}' ;;
*'images export --local - ${name}') echo archive ;;
*) exit 1 ;;
esac
`
  writeFileSync(ctrPath, script)
  chmodSync(ctrPath, 0o755)
  const target = { ctrPath, socketPath: '/run/none.sock', version }
  const chunks: Buffer[] = []
  for await (const chunk of exportImages(target, [name], new AbortController().signal)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('an export of an image', () => {
  it('gives its archive where all of it is stored', async () => {
    expect(await exported('complete (3/3) 1.2 MiB/1.2 MiB')).toBe('archive\n')
  })

  it('is refused where layers are gone, and says what to do', async () => {
    await expect(exported('incomplete (2/3) 1.0 KiB/1.2 MiB')).rejects.toMatchObject({
      code: 'IMAGE_EXPORT',
      message: `cannot export ${name}: containerd has only 2 of its 3 blobs; the layers of an image that was pulled are deleted once they are unpacked`,
      hint: expect.stringContaining('skopeo copy'),
    })
  })
})
