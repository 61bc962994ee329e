import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { readRest } from '../base/read-bounded.ts'
import { parseImageName } from '../pod/values/image-name.ts'
import type { ArchiveContent } from '../decide/node/plan-image-archives.ts'

const mostListBytes = 1024 * 1024

/** Reads a list of images: a name in each line, comments from `#` on. Throws the system's errors. */
export async function readImageList(path: string): Promise<ArchiveContent> {
  const file = await open(path)
  try {
    const data = await readRest(file, mostListBytes)
    if (data.length > mostListBytes)
      return { kind: 'bad', message: `the list is larger than ${mostListBytes} bytes` }
    return parseImageList(data.toString('utf8'))
  } finally {
    await file.close()
  }
}

export function parseImageList(text: string): ArchiveContent {
  const images: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const name = line.replace(/(?:^|\s)#.*$/u, '').trim()
    if (name === '') continue
    const parsed = parseImageName(name)
    if (parsed === undefined)
      return {
        kind: 'bad',
        message: `line ${index + 1}: ${JSON.stringify(name)} is not the name of an image`,
      }
    images.push(parsed.normalized)
  }
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  // A list that is written in place ends with its last line.
  return { kind: 'archive', images: [...new Set(images)], digest, isMarked: text.endsWith('\n') }
}
