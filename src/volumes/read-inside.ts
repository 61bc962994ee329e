import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { errorCode } from '../base/errors.ts'
import { handlePath, openInside } from './open-inside.ts'
import { VolumeError } from './volume-error.ts'

const maxBytes = 1024 * 1024

/** The text of a file inside a volume that containers may write to; undefined where there is none. */
export async function readInside(folder: string, path: string): Promise<string | undefined> {
  try {
    const handle = await openInside(folder, path)
    try {
      // A pipe or a device would keep podd waiting.
      const stats = await handle.stat()
      if (!stats.isFile()) throw new VolumeError('VOLUME_SETUP', `${path} is no file`)
      if (stats.size > maxBytes)
        throw new VolumeError('VOLUME_SETUP', `${path} is larger than ${maxBytes} bytes`)
      const file = await open(handlePath(handle), constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        return await file.readFile('utf8')
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
