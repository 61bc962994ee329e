import type { FileHandle } from 'node:fs/promises'

/**
 * Overwrites a file that containers have mounted, in place. It is never empty in between, and needs no additional room
 * where the text is not longer: on a full disk it has the old text or the new one. Throws the system's error.
 */
export async function overwriteFile(file: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at, bytes.length - at, at)).bytesWritten
  await file.truncate(bytes.length)
}
