import type { FileHandle } from 'node:fs/promises'

/**
 * Gives a file that containers have mounted other text, in place. It is never empty in between, and needs no room that it
 * doesn't have where the text is no longer: on a full disk it says what it said before, or the new text. Throws the
 * system's error.
 */
export async function overwriteFile(file: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at, bytes.length - at, at)).bytesWritten
  await file.truncate(bytes.length)
}
