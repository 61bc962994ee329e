import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import { handlePath, openInside } from './open-inside.ts'
import { VolumeError } from './volume-error.ts'

const maxBytes = 1024 * 1024

/**
 * The text of a file inside a volume that containers may write to; undefined where there is none.
 * @throws VolumeError where it is no file, or larger than a mebibyte
 */
export async function readInside(directory: string, path: string): Promise<string | undefined> {
  try {
    const handle = await openInside(directory, path)
    try {
      // A pipe or a device could block.
      const stats = await handle.stat()
      if (!stats.isFile()) throw new VolumeError('VOLUME_SETUP', `${path} is no file`)
      const file = await open(handlePath(handle), constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        const text = await readBounded(file)
        if (text === undefined)
          throw new VolumeError('VOLUME_SETUP', `${path} is larger than ${maxBytes} bytes`)
        return text
      } finally {
        await file.close()
      }
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The content of a file that may grow meanwhile; undefined where it exceeds `maxBytes`. */
async function readBounded(file: FileHandle): Promise<string | undefined> {
  const { size } = await file.stat()
  if (size > maxBytes) return undefined
  const bytes = Buffer.alloc(maxBytes + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length)
    if (bytesRead === 0) return bytes.toString('utf8', 0, length)
    length += bytesRead
    if (length > maxBytes) return undefined
  }
}
